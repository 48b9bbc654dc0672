/* A program of the next release (next_header.py writes its header) with today's library: what it
 * does not use works, what it does use is refused with a clear error, and a function that is not
 * there is told by the table. next_client LIBRARY MODEL
 *
 * With NEXT_LINKED it calls the new function itself: then the loader has to refuse it. */
#include "optima.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef NEXT_LINKED

int main(void) {
  return optima_next_call() == 1 ? 0 : 1;
}

#else

static int fail(const char* what, const char* message) {
  fprintf(stderr, "next_client: %s: %s\n", what, message);
  return 1;
}

/* How a host of dlopen asks for a function that older libraries have not. */
#define HAS(api, row) \
  ((size_t)((const char*)&(api)->row - (const char*)(api)) + sizeof(api)->row <= (api)->struct_size)

static int options(const optima_api_v1* api, optima_engine** engine) {
  optima_engine_options wanted = OPTIMA_ENGINE_OPTIONS_INIT;
  optima_error* error = NULL;
  int code = 1;
  wanted.threads = 1;
  wanted.next_option = 1;
  if (api->engine_create(&wanted, engine, &error) != OPTIMA_E_UNSUPPORTED || *engine != NULL) {
    return fail("next_option", "it was not refused");
  }
  if (strstr(api->error_message(error), "engine options") != NULL &&
      strstr(api->error_message(error), "this version knows") != NULL) {
    printf("refused: %s\n", api->error_message(error));
    code = 0;
  }
  api->error_destroy(error);
  if (code != 0) return fail("next_option", "the error does not say what was refused");
  wanted.next_option = 0;
  return api->engine_create(&wanted, engine, NULL) == OPTIMA_OK ? 0 : fail("engine", "refused");
}

/* Events are longer than the library knows: what it does not know is zero. */
static int events(const optima_api_v1* api, optima_engine* engine, optima_session* session) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_request* request = NULL;
  int done = 0;
  int tokens = 0;
  desc.prompt = "a";
  desc.prompt_bytes = OPTIMA_NTS;
  desc.flags = OPTIMA_REQUEST_IGNORE_EOS;
  desc.max_tokens = 5;
  if (api->submit(session, &desc, &request, NULL) != OPTIMA_OK) return fail("submit", "refused");
  while (!done) {
    optima_event polled[3];
    size_t count = 0, i;
    memset(polled, 0xEE, sizeof polled);
    if (api->poll(engine, polled, 3, sizeof *polled, -1, &count, NULL) != OPTIMA_OK) {
      return fail("poll", "failed");
    }
    for (i = 0; i < count; ++i) {
      if (polled[i].next_option != 0) return fail("poll", "an unknown field is not zero");
      tokens += polled[i].type == OPTIMA_EVENT_TOKEN;
      done |= polled[i].type == OPTIMA_EVENT_DONE;
      api->event_release(&polled[i]);
    }
  }
  api->request_destroy(request);
  return tokens == 5 ? 0 : fail("events", "tokens are missing");
}

int main(int argc, char** argv) {
  const optima_api_v1* (*get_api)(uint32_t) = NULL;
  const optima_api_v1* api;
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  void* handle;
  void* symbol;
  int code;
  if (argc != 3) return 2;
  handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return fail(argv[1], dlerror());
  symbol = dlsym(handle, "optima_get_api");
  memcpy(&get_api, &symbol, sizeof get_api);
  api = symbol == NULL ? NULL : get_api(OPTIMA_ABI_VERSION);
  if (api == NULL) return fail(argv[1], "no table");
  if (get_api(OPTIMA_ABI_VERSION + 1) != NULL) return fail("get_api", "an ABI of the future");
  if (!HAS(api, engine_wakeup_fd)) return fail("table", "shorter than today's");
  if (HAS(api, next_call)) return fail("table", "longer than today's");
  printf("absent: optima_next_call is not in libsitsoptima %s\n", api->version());
  code = options(api, &engine);
  if (code == 0 && (api->model_open_path(engine, argv[2], OPTIMA_NTS, NULL, &model, NULL) ||
                    api->session_create(model, NULL, &session, NULL))) {
    code = fail(argv[2], "refused");
  }
  if (code == 0) code = events(api, engine, session);
  api->session_destroy(session);
  api->model_destroy(model);
  api->engine_destroy(engine);
  return code;
}

#endif
