/* Libraries beside each other in one process, known by dlopen and optima_get_api alone, each with
 * its own threads, at the same time: copies_test MODEL "PROMPT" TOKENS LIBRARY... Prints the token
 * ids of each library in a line. */
#include <dlfcn.h>
#include <optima/optima.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLibrariesMax = 4, kTokensMax = 64, kRounds = 8 };

typedef struct copy {
  const char* path;
  const char* model;
  const char* prompt;
  int64_t tokens;
  const optima_api_v1* api;
  int32_t ids[kTokensMax];
  int64_t count;
  const char* failed;
} copy;

static void open_copy(copy* c) {
  const optima_api_v1* (*get_api)(uint32_t) = NULL;
  void* symbol;
  void* handle = dlopen(c->path, RTLD_NOW | RTLD_LOCAL);
  c->failed = handle == NULL ? dlerror() : NULL;
  if (handle == NULL) return;
  symbol = dlsym(handle, "optima_get_api");
  memcpy(&get_api, &symbol, sizeof get_api);
  if (symbol != NULL) c->api = get_api(1);
  if (c->api == NULL) c->failed = "no table";
}

static void generate(copy* c, optima_session* session) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_result* result = NULL;
  const int32_t* ids;
  desc.prompt = c->prompt;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.max_tokens = c->tokens;
  desc.flags = OPTIMA_REQUEST_IGNORE_EOS;
  if (c->api->generate(session, &desc, &result, NULL) != OPTIMA_OK) {
    c->failed = "generate failed";
    return;
  }
  ids = c->api->result_token_ids(result, &c->count);
  if (c->count > kTokensMax) c->count = kTokensMax;
  memcpy(c->ids, ids, (size_t)c->count * sizeof *ids);
  c->api->result_destroy(result);
}

static void* run(void* user) {
  copy* c = user;
  int round;
  for (round = 0; round < kRounds && c->failed == NULL; ++round) {
    optima_engine_options options = OPTIMA_ENGINE_OPTIONS_INIT;
    optima_engine* engine = NULL;
    optima_model* model = NULL;
    optima_session* session = NULL;
    options.threads = 2;
    if (c->api->engine_create(&options, &engine, NULL) != OPTIMA_OK ||
        c->api->model_open_path(engine, c->model, OPTIMA_NTS, NULL, &model, NULL) != OPTIMA_OK ||
        c->api->session_create(model, NULL, &session, NULL) != OPTIMA_OK) {
      c->failed = "create failed";
    } else {
      generate(c, session);
    }
    c->api->session_destroy(session);
    c->api->model_destroy(model);
    c->api->engine_destroy(engine);
  }
  return NULL;
}

int main(int argc, char** argv) {
  static copy copies[kLibrariesMax];
  pthread_t threads[kLibrariesMax];
  const int count = argc - 4;
  int i, code = 0;
  if (count < 2 || count > kLibrariesMax) return 2;
  for (i = 0; i < count; ++i) {
    copies[i].path = argv[4 + i];
    copies[i].model = argv[1];
    copies[i].prompt = argv[2];
    copies[i].tokens = atoi(argv[3]);
    open_copy(&copies[i]);
    if (i > 0 && copies[i].api == copies[0].api) copies[i].failed = "it is the same library";
  }
  for (i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, run, &copies[i]) != 0) return 2;
  }
  for (i = 0; i < count; ++i) {
    int64_t k;
    pthread_join(threads[i], NULL);
    for (k = 0; k < copies[i].count; ++k) printf("%s%d", k == 0 ? "" : " ", (int)copies[i].ids[k]);
    printf("\n");
    if (copies[i].failed == NULL) continue;
    fprintf(stderr, "%s: %s\n", copies[i].path, copies[i].failed);
    code = 1;
  }
  return code;
}
