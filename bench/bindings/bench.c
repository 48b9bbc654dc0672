/* What an event costs a host that is written in C: the measure of the other languages' overhead.
 *
 *   bench MODEL.gguf [ROUNDS]
 *
 * The workload, which the programs of the other languages repeat: one computing thread, the prompt
 * "a", greedy, end-of-generation tokens ignored, kTokens tokens a request, kRequests requests a
 * round, each in the same session after a reset. Two ways:
 *   callback   the engine is driven by the host (OPTIMA_DRIVE_HOST), so that all happens on one
 *              thread; optima_generate with an on_event that counts the text's bytes
 *   poll       the engine is driven by the library; optima_submit, then optima_poll with room for
 *              one event, waiting, until the done event; counts the text's bytes
 * A round's time over its token events is its ns per event, computing included. Prints one line of
 * JSON: of each way the least and the median over the rounds. compare.py makes differences of it.
 */
#include <inttypes.h>
#include <optima/optima.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kTokens = 250, kRequests = 4, kRoundsDefault = 20, kRoundsMax = 1000 };

typedef struct tally {
  int64_t tokens;
  int64_t bytes;
} tally;

typedef struct bench {
  optima_engine* engine;
  optima_model* model;
  optima_session* session;
} bench;

typedef int (*way)(bench* b, tally* counted);

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void count(tally* counted, const optima_event* event) {
  counted->tokens += event->type == OPTIMA_EVENT_TOKEN;
  counted->bytes += event->text_bytes;
}

static int32_t on_event(void* user, const optima_event* event) {
  count(user, event);
  return OPTIMA_CONTINUE;
}

static optima_request_desc workload(void) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  desc.prompt = "a";
  desc.prompt_bytes = OPTIMA_NTS;
  desc.flags = OPTIMA_REQUEST_IGNORE_EOS;
  desc.max_tokens = kTokens;
  return desc;
}

static int with_callback(bench* b, tally* counted) {
  optima_request_desc desc = workload();
  optima_error* error = NULL;
  desc.on_event = on_event;
  desc.user = counted;
  if (optima_generate(b->session, &desc, NULL, &error) != OPTIMA_OK) return fail("generate", error);
  return 0;
}

static int with_poll(bench* b, tally* counted) {
  optima_request_desc desc = workload();
  optima_request* request = NULL;
  optima_error* error = NULL;
  int done = 0;
  if (optima_submit(b->session, &desc, &request, &error) != OPTIMA_OK) return fail("submit", error);
  while (!done) {
    optima_event event = OPTIMA_EVENT_INIT;
    size_t events = 0;
    if (optima_poll(b->engine, &event, 1, sizeof event, -1, &events, &error) != OPTIMA_OK) {
      optima_request_destroy(request);
      return fail("poll", error);
    }
    if (events == 0) continue;
    count(counted, &event);
    done = event.type == OPTIMA_EVENT_DONE;
    optima_event_release(&event);
  }
  optima_request_destroy(request);
  return 0;
}

static int open_bench(bench* b, const char* model, optima_drive drive) {
  optima_engine_options options = OPTIMA_ENGINE_OPTIONS_INIT;
  optima_error* error = NULL;
  options.threads = 1;
  options.drive = drive;
  if (optima_engine_create(&options, &b->engine, &error) != OPTIMA_OK) return fail("engine", error);
  if (optima_model_open_path(b->engine, model, OPTIMA_NTS, NULL, &b->model, &error) != OPTIMA_OK) {
    return fail(model, error);
  }
  if (optima_session_create(b->model, NULL, &b->session, &error) != OPTIMA_OK) {
    return fail("session", error);
  }
  return 0;
}

static void close_bench(bench* b) {
  optima_session_destroy(b->session);
  optima_model_destroy(b->model);
  optima_engine_destroy(b->engine);
}

/* Sorted ns per event of the rounds. The first round, which warms up, is not counted. */
static int measure(bench* b, way run, double* ns, int rounds, tally* last) {
  int round, i;
  for (round = -1; round < rounds; ++round) {
    const tally none = {0, 0};
    double spent = 0;
    *last = none;
    for (i = 0; i < kRequests; ++i) {
      optima_error* error = NULL;
      double begin;
      if (optima_session_reset(b->session, &error) != OPTIMA_OK) return fail("reset", error);
      begin = now_ns();
      if (run(b, last) != 0) return 1;
      spent += now_ns() - begin;
    }
    if (last->tokens != (int64_t)kTokens * kRequests) {
      fprintf(stderr, "%" PRId64 " tokens instead of %d\n", last->tokens, kTokens * kRequests);
      return 1;
    }
    if (round >= 0) ns[round] = spent / (double)last->tokens;
  }
  qsort(ns, (size_t)rounds, sizeof *ns, ascending);
  return 0;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    optima_drive drive;
    way run;
  } ways[] = {{"callback", OPTIMA_DRIVE_HOST, with_callback},
              {"poll", OPTIMA_DRIVE_LIBRARY, with_poll}};
  static double ns[kRoundsMax];
  const int rounds = argc > 2 ? atoi(argv[2]) : kRoundsDefault;
  tally last = {0, 0};
  size_t i;
  if (argc < 2 || rounds < 1 || rounds > kRoundsMax) {
    fprintf(stderr, "usage: %s MODEL.gguf [ROUNDS of 1..%d]\n", argv[0], kRoundsMax);
    return 2;
  }
  printf("{\"language\": \"c\", \"rounds\": %d", rounds);
  for (i = 0; i < sizeof ways / sizeof *ways; ++i) {
    bench b = {NULL, NULL, NULL};
    const int code =
        open_bench(&b, argv[1], ways[i].drive) || measure(&b, ways[i].run, ns, rounds, &last);
    close_bench(&b);
    if (code != 0) return code;
    printf(", \"%s_ns_per_event\": %.0f, \"%s_ns_per_event_median\": %.0f", ways[i].name, ns[0],
           ways[i].name, ns[rounds / 2]);
  }
  printf(", \"tokens\": %" PRId64 ", \"bytes\": %" PRId64 "}\n", last.tokens, last.bytes);
  return 0;
}
