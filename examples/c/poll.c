/* Several answers at once from one event loop, as a game or a server would: poll MODEL.gguf
 *
 *   cc -std=c99 poll.c $(pkg-config --cflags --libs sits-optima) -o poll
 */
#include <optima/optima.h>
#include <stdio.h>

enum { kAnswers = 3, kEvents = 8, kTextBytes = 1024 };

static const char* const kPrompts[kAnswers] = {"The capital of France is", "Once upon a time",
                                               "The sea is"};

/* One answer in progress; its address travels as the request's user data. */
typedef struct answer {
  optima_session* session;
  optima_request* request;
  char text[kTextBytes];
  size_t text_bytes;
  int done;
} answer;

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

static int start(optima_model* model, const char* prompt, answer* a) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_error* error = NULL;
  if (optima_session_create(model, NULL, &a->session, &error) != OPTIMA_OK) {
    return fail("session", error);
  }
  desc.prompt = prompt;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.max_tokens = 24;
  desc.user = a;
  if (optima_submit(a->session, &desc, &a->request, &error) != OPTIMA_OK) {
    return fail("submit", error);
  }
  return 0;
}

static void take(const optima_event* event) {
  answer* a = event->user;
  if (event->type == OPTIMA_EVENT_TOKEN) {
    int64_t i;
    for (i = 0; i < event->text_bytes && a->text_bytes + 1 < kTextBytes; ++i) {
      a->text[a->text_bytes++] = event->text[i];
    }
    a->text[a->text_bytes] = '\0';
  }
  if (event->type == OPTIMA_EVENT_DONE) {
    a->done = 1;
    printf("%s: %s%s\n",
           event->status == OPTIMA_OK ? optima_finish_name(event->finish)
                                      : optima_status_name(event->status),
           kPrompts[event->request_id - 1], a->text);
  }
}

/* One round of the host's loop: other work could stand between two rounds. */
static int turn(optima_engine* engine, int* running) {
  optima_event events[kEvents];
  optima_error* error = NULL;
  size_t count = 0;
  size_t i;
  if (optima_poll(engine, events, kEvents, sizeof events[0], 100, &count, &error) != OPTIMA_OK) {
    return fail("poll", error);
  }
  for (i = 0; i < count; ++i) {
    take(&events[i]);
    if (events[i].type == OPTIMA_EVENT_DONE) --*running;
    optima_event_release(&events[i]);
  }
  return 0;
}

int main(int argc, char** argv) {
  static answer answers[kAnswers];
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_error* error = NULL;
  int running = 0;
  int code = 0;
  int i;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
    return 2;
  }
  if (optima_engine_create(NULL, &engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(engine, argv[1], OPTIMA_NTS, NULL, &model, &error)) {
    code = fail(argv[1], error);
  }
  for (i = 0; i < kAnswers && code == 0; ++i) {
    code = start(model, kPrompts[i], &answers[i]);
    if (code == 0) ++running;
  }
  while (running > 0 && code == 0) code = turn(engine, &running);
  for (i = 0; i < kAnswers; ++i) {
    optima_request_destroy(answers[i].request);
    optima_session_destroy(answers[i].session);
  }
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
