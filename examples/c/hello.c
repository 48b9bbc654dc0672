/* The shortest way to an answer: hello MODEL.gguf ["prompt"]
 *
 *   cc -std=c99 hello.c $(pkg-config --cflags --libs sits-optima) -o hello
 */
#include <optima/optima.h>
#include <stdio.h>

/* Prints why a call failed, frees the error, and gives the exit code. */
static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

static int answer(optima_session* session, const char* prompt) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_result* result = NULL;
  optima_error* error = NULL;
  desc.prompt = prompt;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.max_tokens = 32;
  if (optima_generate(session, &desc, &result, &error) != OPTIMA_OK) {
    return fail("generate", error);
  }
  printf("%s%s\n", prompt, optima_result_text(result, NULL));
  optima_result_destroy(result);
  return 0;
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
    code = answer(session, prompt);
  }
  optima_session_destroy(session);
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
