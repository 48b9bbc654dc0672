/* What many sessions on one model cost: sessions_bench MODEL.gguf
 *
 * Prints a JSON object a line with what is asked and what was measured:
 *   sessions_per_gib   real memory of sessions of 100 to 1,100 tokens (600 on average) against a
 *                      contiguous cache of 8,192 tokens for each
 *   fork               of a session of 4,000 tokens: time, and KV bytes before and after
 *   shared_prefix      time to the first token of a prompt whose first 2,000 tokens another session
 *                      has computed, against the same without
 */
#include <optima/optima.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
  kSessions = 16,
  kContext = 8192,
  kForkTokens = 4000,
  kForks = 101,
  kSharedTokens = 2000,
  kTailTokens = 8,
  kRounds = 3,
  kTokensMax = 4096
};

typedef struct bench {
  optima_engine* engine;
  optima_model* model;
  optima_model_info info;
} bench;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
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

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  return values[count / 2];
}

/* Tokens that begin like no others but those of the same salt. */
static void fill(int32_t* ids, int count, int32_t vocabulary, int salt) {
  int i;
  for (i = 0; i < count; ++i)
    ids[i] = (int32_t)(((int64_t)i * 7919 + (int64_t)salt * 104729 + 13) % vocabulary);
}

/* Computes the tokens in the session; the nanoseconds to its first token, negative on failure. */
static double run(optima_session* session, const int32_t* ids, int count, int64_t max_tokens) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_counters counters = OPTIMA_COUNTERS_INIT;
  optima_result* result = NULL;
  optima_error* error = NULL;
  double first_token_ns = -1;
  desc.prompt_ids = ids;
  desc.prompt_id_count = (size_t)count;
  desc.max_tokens = max_tokens;
  desc.flags = OPTIMA_REQUEST_IGNORE_EOS | (max_tokens == 0 ? OPTIMA_REQUEST_PROMPT_ONLY : 0u);
  if (optima_generate(session, &desc, &result, &error) != OPTIMA_OK ||
      optima_result_counters(result, &counters, &error) != OPTIMA_OK) {
    fail("generate", error);
  } else {
    first_token_ns = (double)counters.first_token_ns;
  }
  optima_result_destroy(result);
  return first_token_ns;
}

static int sessions_per_gib(bench* b) {
  optima_session* sessions[kSessions] = {NULL};
  optima_memory before = OPTIMA_MEMORY_INIT, after = OPTIMA_MEMORY_INIT;
  optima_error* error = NULL;
  int32_t ids[kTokensMax];
  int64_t tokens = 0;
  double contiguous, paged;
  int i, code = 0;
  /* One that comes and goes first: what every engine has once is not a session's. */
  optima_session* warm = NULL;
  fill(ids, 64, b->info.vocabulary, 900);
  if (optima_session_create(b->model, NULL, &warm, &error) != OPTIMA_OK)
    return fail("session", error);
  run(warm, ids, 64, 0);
  optima_session_destroy(warm);
  optima_mem_query(b->engine, &before, NULL);
  for (i = 0; i < kSessions && code == 0; ++i) {
    const int count = 100 + 1000 * i / (kSessions - 1);
    fill(ids, count, b->info.vocabulary, i);
    if (optima_session_create(b->model, NULL, &sessions[i], &error) != OPTIMA_OK) {
      code = fail("session", error);
    } else {
      code = run(sessions[i], ids, count, 0) < 0;
      tokens += count;
    }
  }
  optima_mem_query(b->engine, &after, NULL);
  for (i = 0; i < kSessions; ++i) optima_session_destroy(sessions[i]);
  if (code != 0) return code;
  /* K and V of f16 in every layer. */
  contiguous = (double)kContext * b->info.layers * b->info.kv_heads * b->info.head_dim * 2 * 2;
  paged = (double)(after.used_bytes - before.used_bytes) / kSessions;
  printf(
      "{\"row\": \"sessions_per_gib\", \"asked\": \"ratio >= 8\", \"ratio\": %.2f, "
      "\"sessions_per_gib\": %.1f, \"contiguous\": %.1f, \"mean_tokens\": %.0f, "
      "\"bytes_per_session\": %.0f}\n",
      contiguous / paged, (double)(1 << 30) / paged, (double)(1 << 30) / contiguous,
      (double)tokens / kSessions, paged);
  return 0;
}

static int64_t kv_bytes(const bench* b) {
  optima_memory memory = OPTIMA_MEMORY_INIT;
  optima_mem_query(b->engine, &memory, NULL);
  return memory.kv_bytes;
}

static int fork_bench(bench* b) {
  static double us[kForks];
  static int32_t ids[kTokensMax];
  optima_session* session = NULL;
  optima_session* fork = NULL;
  optima_error* error = NULL;
  int64_t before, forked, written;
  int i, code = 0;
  fill(ids, kForkTokens, b->info.vocabulary, 100);
  if (optima_session_create(b->model, NULL, &session, &error) != OPTIMA_OK) {
    return fail("session", error);
  }
  code = run(session, ids, kForkTokens, 0) < 0;
  before = forked = written = kv_bytes(b);
  for (i = 0; i < kForks && code == 0; ++i) {
    const double begin = now_us();
    if (optima_session_fork(session, &fork, &error) != OPTIMA_OK) {
      code = fail("fork", error);
      break;
    }
    us[i] = now_us() - begin;
    forked = kv_bytes(b);
    if (i + 1 < kForks) optima_session_destroy(fork);
  }
  if (code == 0) {
    ids[kForkTokens] = 1;
    code = run(fork, ids, kForkTokens + 1, 1) < 0;
    written = kv_bytes(b);
  }
  if (code == 0) {
    const double p50 = median(us, kForks);
    printf(
        "{\"row\": \"fork\", \"asked\": \"< 100 us, 0 bytes copied\", \"us_p50\": %.1f, "
        "\"us_max\": %.1f, \"kv_bytes\": %lld, \"bytes_copied\": %lld, "
        "\"bytes_after_first_write\": %lld}\n",
        p50, us[kForks - 1], (long long)before, (long long)(forked - before),
        (long long)(written - before));
  }
  optima_session_destroy(fork);
  optima_session_destroy(session);
  return code;
}

static int shared_prefix(bench* b) {
  static int32_t ids[kTokensMax];
  double cold[kRounds], warm[kRounds];
  optima_error* error = NULL;
  int round, which, i;
  for (round = 0; round < kRounds; ++round) {
    for (which = 0; which < 2; ++which) {
      optima_session* session = NULL;
      double ns;
      fill(ids, kSharedTokens, b->info.vocabulary, 200 + round);
      for (i = 0; i < kTailTokens; ++i) ids[kSharedTokens + i] = 20 + 10 * which + i;
      if (optima_session_create(b->model, NULL, &session, &error) != OPTIMA_OK) {
        return fail("session", error);
      }
      ns = run(session, ids, kSharedTokens + kTailTokens, 1);
      optima_session_destroy(session);
      if (ns < 0) return 1;
      *(which == 0 ? &cold[round] : &warm[round]) = ns / 1e6;
    }
  }
  {
    const double cold_ms = median(cold, kRounds), warm_ms = median(warm, kRounds);
    printf(
        "{\"row\": \"shared_prefix\", \"asked\": \"cold >= 50 warm\", \"ratio\": %.1f, "
        "\"cold_ms\": %.1f, \"warm_ms\": %.2f}\n",
        cold_ms / warm_ms, cold_ms, warm_ms);
  }
  return 0;
}

int main(int argc, char** argv) {
  bench b = {NULL, NULL, OPTIMA_MODEL_INFO_INIT};
  optima_error* error = NULL;
  int code = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
    return 2;
  }
  if (optima_engine_create(NULL, &b.engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(b.engine, argv[1], OPTIMA_NTS, NULL, &b.model, &error)) {
    code = fail(argv[1], error);
  } else if (optima_model_get_info(b.model, &b.info, &error) != OPTIMA_OK) {
    code = fail("model", error);
  } else {
    code = sessions_per_gib(&b);
    if (code == 0) code = fork_bench(&b);
    if (code == 0) code = shared_prefix(&b);
  }
  optima_model_destroy(b.model);
  optima_engine_destroy(b.engine);
  return code;
}
