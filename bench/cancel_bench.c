/* How long a blocking optima_generate takes to return after its cancel latch was triggered in the
 * middle of a long prefill: cancel_bench MODEL.gguf [rounds]. Prints a JSON object; the latency is
 * taken from the trigger on one thread to the return on the other. */
#include <optima/optima.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kPromptTokens = 4096, kRoundsDefault = 200, kRoundsMax = 100000 };

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void sleep_ms(double ms) {
  struct timespec t;
  t.tv_sec = 0;
  t.tv_nsec = (long)(ms * 1e6);
  nanosleep(&t, NULL);
}

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

struct round {
  optima_session* session;
  optima_cancel* cancel;
  const int32_t* ids;
  optima_finish finish;
  optima_error* error;
  double returned_ms;
};

static void* prefill(void* user) {
  struct round* round = user;
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_result* result = NULL;
  desc.prompt_ids = round->ids;
  desc.prompt_id_count = kPromptTokens;
  desc.flags = OPTIMA_REQUEST_PROMPT_ONLY;
  desc.cancel = round->cancel;
  optima_generate(round->session, &desc, &result, &round->error);
  round->returned_ms = now_ms();
  round->finish = optima_result_finish(result);
  optima_result_destroy(result);
  return NULL;
}

/* The latency of one cancelled prefill; negative when it could not be measured. */
static double measure(optima_session* session, const int32_t* ids, double delay_ms) {
  struct round round = {session, NULL, ids, 0, NULL, 0};
  pthread_t thread;
  double triggered = 0;
  if (optima_session_reset(session, NULL) != OPTIMA_OK) return -1;
  if (optima_cancel_create(&round.cancel, NULL) != OPTIMA_OK) return -1;
  if (pthread_create(&thread, NULL, prefill, &round) != 0) {
    optima_cancel_destroy(round.cancel);
    return -1;
  }
  sleep_ms(delay_ms);
  triggered = now_ms();
  optima_cancel_trigger(round.cancel);
  pthread_join(thread, NULL);
  optima_cancel_destroy(round.cancel);
  if (round.error != NULL) fail("generate", round.error);
  if (round.finish != OPTIMA_FINISH_CANCELLED) return -1;
  return round.returned_ms - triggered;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int run(optima_session* session, int32_t vocabulary, int rounds) {
  int32_t* ids = malloc(kPromptTokens * sizeof *ids);
  double* latencies = malloc((size_t)rounds * sizeof *latencies);
  int i, measured = 0;
  if (ids == NULL || latencies == NULL) return 1;
  for (i = 0; i < kPromptTokens; ++i) ids[i] = (int32_t)(((int64_t)i * 7919 + 13) % vocabulary);
  for (i = 0; i < rounds; ++i) {
    /* From the first layers to the middle of the prompt. */
    const double latency = measure(session, ids, 5.0 + (double)((i * 37) % 400));
    if (latency >= 0) latencies[measured++] = latency;
  }
  if (measured > 0) {
    qsort(latencies, (size_t)measured, sizeof *latencies, ascending);
    printf("{\"rounds\": %d, \"cancelled\": %d, \"p50_ms\": %.2f, \"p99_ms\": %.2f, "
           "\"max_ms\": %.2f}\n",
           rounds, measured, latencies[measured / 2], latencies[(measured * 99) / 100],
           latencies[measured - 1]);
  }
  free(ids);
  free(latencies);
  return measured == rounds ? 0 : 1;
}

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? atoi(argv[2]) : kRoundsDefault;
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  optima_error* error = NULL;
  optima_model_info info = OPTIMA_MODEL_INFO_INIT;
  int code = 1;
  if (argc < 2 || rounds < 1 || rounds > kRoundsMax) {
    fprintf(stderr, "usage: %s MODEL.gguf [rounds]\n", argv[0]);
    return 2;
  }
  if (optima_engine_create(NULL, &engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(engine, argv[1], OPTIMA_NTS, NULL, &model, &error)) {
    code = fail(argv[1], error);
  } else if (optima_model_get_info(model, &info, &error) != OPTIMA_OK) {
    code = fail("model", error);
  } else if (optima_session_create(model, NULL, &session, &error) != OPTIMA_OK) {
    code = fail("session", error);
  } else {
    code = run(session, info.vocabulary, rounds);
  }
  optima_session_destroy(session);
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
