/* Sixteen conversations on one model, driven by one poll loop: many_sessions MODEL.gguf
 *
 * All begin with the same instructions, which are computed once. Each conversation has two turns;
 * the second is asked as soon as the first is answered, whatever the others do. The loop sleeps in
 * poll(2) on the engine's descriptor, beside which it could wait for sockets and timers.
 *
 *   cc -std=c99 many_sessions.c $(pkg-config --cflags --libs sits-optima) -o many_sessions
 */
#define _POSIX_C_SOURCE 200809L
#include <optima/optima.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { kConversations = 16, kTurns = 2, kEvents = 32 };

static const char* const kInstructions =
    "You are the keeper of a small museum. Answer each visitor in one short sentence.\n";
static const char* const kQuestions[kTurns] = {"Visitor: What is in room %d?\nKeeper:",
                                               "\nVisitor: And behind it?\nKeeper:"};

/* One conversation; its address travels as the request's user data. */
typedef struct conversation {
  int number;
  int turn;
  optima_session* session;
  optima_request* request;
  int64_t cached_tokens;
} conversation;

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

/* Asks the conversation's next question: the first behind the instructions, the others behind what
 * the session holds by then. */
static int ask(conversation* c) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_error* error = NULL;
  char prompt[256];
  int bytes = 0;
  if (c->turn == 0) bytes = snprintf(prompt, sizeof prompt, "%s", kInstructions);
  snprintf(prompt + bytes, sizeof prompt - (size_t)bytes, kQuestions[c->turn], c->number);
  desc.prompt = prompt;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.flags = c->turn == 0 ? 0 : OPTIMA_REQUEST_APPEND;
  desc.max_tokens = 12;
  desc.user = c;
  optima_request_destroy(c->request);
  c->request = NULL;
  if (optima_submit(c->session, &desc, &c->request, &error) != OPTIMA_OK) {
    return fail("submit", error);
  }
  return 0;
}

/* Prints the answer of a request that is done. */
static int finish(conversation* c) {
  optima_counters counters = OPTIMA_COUNTERS_INIT;
  optima_result* result = NULL;
  optima_error* error = NULL;
  if (optima_request_result(c->request, &result, &error) != OPTIMA_OK ||
      optima_result_counters(result, &counters, &error) != OPTIMA_OK) {
    optima_result_destroy(result);
    return fail("answer", error);
  }
  c->cached_tokens += counters.cached_tokens;
  printf("%2d.%d %s\n", c->number, c->turn + 1, optima_result_text(result, NULL));
  optima_result_destroy(result);
  return 0;
}

/* Takes what has happened; `open` is the number of conversations that have turns left. What does
 * not fit into `events` leaves the descriptor readable. */
static int turn(optima_engine* engine, int* open) {
  optima_event events[kEvents];
  optima_error* error = NULL;
  size_t count = 0;
  size_t i;
  int code = 0;
  if (optima_poll(engine, events, kEvents, sizeof events[0], 0, &count, &error) != OPTIMA_OK) {
    return fail("poll", error);
  }
  for (i = 0; i < count; ++i) {
    conversation* c = events[i].user;
    const int done = events[i].type == OPTIMA_EVENT_DONE;
    optima_event_release(&events[i]);
    if (!done || code != 0) continue;
    code = finish(c);
    if (code == 0 && ++c->turn < kTurns) {
      code = ask(c);
    } else {
      --*open;
    }
  }
  return code;
}

static int talk(optima_engine* engine, optima_model* model) {
  static conversation all[kConversations];
  optima_error* error = NULL;
  int64_t cached_tokens = 0;
  struct pollfd wakeup = {-1, POLLIN, 0};
  int open = 0;
  int code = 0;
  int i;
  if (optima_engine_wakeup_fd(engine, &wakeup.fd, &error) != OPTIMA_OK) {
    return fail("wakeup", error);
  }
  for (i = 0; i < kConversations && code == 0; ++i) {
    all[i].number = i + 1;
    if (optima_session_create(model, NULL, &all[i].session, &error) != OPTIMA_OK) {
      code = fail("session", error);
    } else {
      code = ask(&all[i]);
      if (code == 0) ++open;
    }
  }
  while (open > 0 && code == 0) {
    if (poll(&wakeup, 1, -1) == 1) code = turn(engine, &open);
  }
  for (i = 0; i < kConversations; ++i) {
    cached_tokens += all[i].cached_tokens;
    optima_request_destroy(all[i].request);
    optima_session_destroy(all[i].session);
  }
  close(wakeup.fd);
  if (code == 0) printf("%lld prompt tokens were not computed again\n", (long long)cached_tokens);
  return code;
}

int main(int argc, char** argv) {
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_error* error = NULL;
  int code = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
    return 2;
  }
  if (optima_engine_create(NULL, &engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(engine, argv[1], OPTIMA_NTS, NULL, &model, &error)) {
    code = fail(argv[1], error);
  } else {
    code = talk(engine, model);
  }
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
