/* A story that branches: fork_tree MODEL.gguf ["beginning"]
 *
 * Each session is forked in two; the forks share the memory of what was told so far, and each goes
 * on with a seed of its own. Prints the tree, and what it costs in memory.
 *
 *   cc -std=c99 fork_tree.c $(pkg-config --cflags --libs sits-optima) -o fork_tree
 */
#include <optima/optima.h>
#include <stdio.h>

enum { kDepth = 3, kBranches = 2 };

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

/* Continues the session by a few tokens and prints them at their depth. */
static int tell(optima_session* session, int depth, uint64_t seed) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_result* result = NULL;
  optima_error* error = NULL;
  desc.prompt = ""; /* nothing is added to what the session holds */
  desc.flags = OPTIMA_REQUEST_APPEND;
  desc.max_tokens = 10;
  desc.temperature = 0.9f;
  desc.seed = seed;
  if (optima_generate(session, &desc, &result, &error) != OPTIMA_OK) {
    return fail("generate", error);
  }
  printf("%*s%s\n", 2 * depth, "", optima_result_text(result, NULL));
  optima_result_destroy(result);
  return 0;
}

static int grow(const optima_session* from, int depth, uint64_t seed) {
  int i;
  for (i = 0; i < kBranches && depth < kDepth; ++i) {
    const uint64_t branch_seed = seed * kBranches + (uint64_t)i;
    optima_session* branch = NULL;
    optima_error* error = NULL;
    int code;
    if (optima_session_fork(from, &branch, &error) != OPTIMA_OK) return fail("fork", error);
    code = tell(branch, depth + 1, branch_seed);
    if (code == 0) code = grow(branch, depth + 1, branch_seed);
    optima_session_destroy(branch);
    if (code != 0) return code;
  }
  return 0;
}

static int tree(optima_engine* engine, optima_session* root, const char* beginning) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_memory memory = OPTIMA_MEMORY_INIT;
  optima_error* error = NULL;
  int code;
  desc.prompt = beginning;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.flags = OPTIMA_REQUEST_PROMPT_ONLY;
  if (optima_generate(root, &desc, NULL, &error) != OPTIMA_OK) return fail("beginning", error);
  printf("%s\n", beginning);
  code = grow(root, 0, 1);
  if (code != 0) return code;
  if (optima_mem_query(engine, &memory, &error) != OPTIMA_OK) return fail("memory", error);
  printf("KV now: %lld bytes held, %lld kept for later\n", (long long)memory.kv_bytes,
         (long long)memory.kv_cached_bytes);
  return 0;
}

int main(int argc, char** argv) {
  const char* beginning = argc > 2 ? argv[2] : "Once upon a time";
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  optima_error* error = NULL;
  int code = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.gguf [\"beginning\"]\n", argv[0]);
    return 2;
  }
  if (optima_engine_create(NULL, &engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(engine, argv[1], OPTIMA_NTS, NULL, &model, &error)) {
    code = fail(argv[1], error);
  } else if (optima_session_create(model, NULL, &session, &error) != OPTIMA_OK) {
    code = fail("session", error);
  } else {
    code = tree(engine, session, beginning);
  }
  optima_session_destroy(session);
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
