/* Several answers to one prompt, of which the most probable is shown: best_of MODEL.gguf ["prompt"]
 *
 * The prompt is computed once. Each answer continues in a fork of its session: forks share the
 * prompt's memory, and the library computes their tokens side by side.
 *
 *   cc -std=c99 best_of.c $(pkg-config --cflags --libs sits-optima) -o best_of
 */
#include <optima/optima.h>
#include <stdio.h>

enum { kAnswers = 4 };

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

static int compute_prompt(optima_session* session, const char* prompt) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_error* error = NULL;
  desc.prompt = prompt;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.flags = OPTIMA_REQUEST_PROMPT_ONLY;
  return optima_generate(session, &desc, NULL, &error) == OPTIMA_OK ? 0 : fail("prompt", error);
}

/* The forks may go as soon as their requests are done. */
static int start(optima_session* from, uint64_t seed, optima_session** fork,
                 optima_request** request) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_error* error = NULL;
  if (optima_session_fork(from, fork, &error) != OPTIMA_OK) return fail("fork", error);
  desc.prompt = ""; /* nothing is added to what the session holds */
  desc.flags = OPTIMA_REQUEST_APPEND;
  desc.max_tokens = 24;
  desc.temperature = 0.9f;
  desc.seed = seed;
  return optima_submit(*fork, &desc, request, &error) == OPTIMA_OK ? 0 : fail("submit", error);
}

static double mean_logprob(const optima_result* result) {
  int64_t count = 0;
  int64_t i;
  double sum = 0;
  const float* logprobs = optima_result_logprobs(result, &count);
  for (i = 0; i < count; ++i) sum += logprobs[i];
  return count > 0 ? sum / (double)count : -1e30;
}

/* Keeps the better of *best and the request's result. */
static int take(optima_request* request, optima_result** best) {
  optima_result* result = NULL;
  optima_error* error = NULL;
  if (optima_request_wait(request, -1, NULL, &error) != OPTIMA_OK ||
      optima_request_result(request, &result, &error) != OPTIMA_OK) {
    return fail("answer", error);
  }
  printf("%8.3f %s\n", mean_logprob(result), optima_result_text(result, NULL));
  if (*best == NULL || mean_logprob(result) > mean_logprob(*best)) {
    optima_result_destroy(*best);
    *best = result;
  } else {
    optima_result_destroy(result);
  }
  return 0;
}

static int best_of(optima_session* session, const char* prompt) {
  optima_session* forks[kAnswers] = {NULL};
  optima_request* requests[kAnswers] = {NULL};
  optima_result* best = NULL;
  int code = compute_prompt(session, prompt);
  int i;
  for (i = 0; i < kAnswers && code == 0; ++i) {
    code = start(session, (uint64_t)i + 1, &forks[i], &requests[i]);
  }
  for (i = 0; i < kAnswers && code == 0; ++i) code = take(requests[i], &best);
  if (code == 0) printf("%s%s\n", prompt, optima_result_text(best, NULL));
  optima_result_destroy(best);
  for (i = 0; i < kAnswers; ++i) {
    optima_request_destroy(requests[i]);
    optima_session_destroy(forks[i]);
  }
  return code;
}

int main(int argc, char** argv) {
  const char* prompt = argc > 2 ? argv[2] : "The capital of France is";
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  optima_error* error = NULL;
  int code = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.gguf [\"prompt\"]\n", argv[0]);
    return 2;
  }
  if (optima_engine_create(NULL, &engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(engine, argv[1], OPTIMA_NTS, NULL, &model, &error)) {
    code = fail(argv[1], error);
  } else if (optima_session_create(model, NULL, &session, &error) != OPTIMA_OK) {
    code = fail("session", error);
  } else {
    code = best_of(session, prompt);
  }
  optima_session_destroy(session);
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
