/* A program of release 1.0, as it was then: built against that release's header (beside this file)
 * and run with today's library. It fills options, reads out-structs with a canary behind each,
 * takes events both ways, and calls through the function table too. Prints the golden's token ids
 * three times: from optima_generate, from optima_poll, through the table. client MODEL "PROMPT"
 * TOKENS */
#include "optima.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCanary = 0x5A, kCanaryBytes = 64, kIdsMax = 64 };

/* An out-struct of 1.0 and what the library must not touch. */
#define GUARDED(type, name)             \
  struct {                              \
    type value;                         \
    unsigned char canary[kCanaryBytes]; \
  } name

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "client of 1.0: %s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

static int intact(const unsigned char* canary) {
  int i;
  for (i = 0; i < kCanaryBytes; ++i)
    if (canary[i] != kCanary) return 0;
  return 1;
}

#define PREPARE(guarded)                                      \
  (memset(&(guarded).value, 0, sizeof(guarded).value),        \
   memset((guarded).canary, kCanary, sizeof(guarded).canary), \
   (guarded).value.struct_size = (uint32_t)sizeof(guarded).value)

typedef struct ids {
  int32_t token[kIdsMax];
  int count;
  int released;
} ids;

static void add(ids* seen, const optima_event* event) {
  if (event->type == OPTIMA_EVENT_TOKEN && seen->count < kIdsMax)
    seen->token[seen->count++] = event->token;
}

static int32_t on_event(void* user, const optima_event* event) {
  add((ids*)user, event);
  return OPTIMA_CONTINUE;
}

static void on_release(void* user) {
  ++((ids*)user)->released;
}

static int print(const char* way, const ids* seen) {
  int i;
  printf("%s", way);
  for (i = 0; i < seen->count; ++i) printf(" %d", (int)seen->token[i]);
  printf("\n");
  if (seen->released == 1) return 0;
  fprintf(stderr, "client of 1.0: %s: released %d times\n", way, seen->released);
  return 1;
}

static optima_request_desc ask(const char* prompt, int64_t tokens) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  desc.prompt = prompt;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.max_tokens = tokens;
  desc.flags = OPTIMA_REQUEST_IGNORE_EOS;
  desc.release = on_release;
  return desc;
}

static int by_callback(optima_session* session, const char* prompt, int64_t tokens) {
  optima_request_desc desc = ask(prompt, tokens);
  optima_result* result = NULL;
  optima_error* error = NULL;
  GUARDED(optima_counters, counters);
  ids seen = {{0}, 0, 0};
  int64_t count = 0;
  const int32_t* token_ids;
  desc.on_event = on_event;
  desc.user = &seen;
  if (optima_generate(session, &desc, &result, &error) != OPTIMA_OK) return fail("generate", error);
  PREPARE(counters);
  if (optima_result_counters(result, &counters.value, &error) != OPTIMA_OK) {
    return fail("counters", error);
  }
  token_ids = optima_result_token_ids(result, &count);
  if (!intact(counters.canary) || counters.value.output_tokens != tokens || count != seen.count ||
      memcmp(token_ids, seen.token, (size_t)count * sizeof *token_ids) != 0 ||
      optima_result_finish(result) != OPTIMA_FINISH_LENGTH) {
    return fail("the result is another", NULL);
  }
  optima_result_destroy(result);
  return print("generate", &seen);
}

static int by_poll(optima_engine* engine, optima_session* session, const char* prompt,
                   int64_t tokens) {
  optima_request_desc desc = ask(prompt, tokens);
  optima_request* request = NULL;
  optima_error* error = NULL;
  ids seen = {{0}, 0, 0};
  int done = 0;
  desc.user = &seen;
  if (optima_submit(session, &desc, &request, &error) != OPTIMA_OK) return fail("submit", error);
  while (!done) {
    GUARDED(optima_event, event);
    size_t count = 0;
    PREPARE(event);
    if (optima_poll(engine, &event.value, 1, sizeof event.value, -1, &count, &error) != OPTIMA_OK) {
      return fail("poll", error);
    }
    if (!intact(event.canary)) return fail("poll wrote behind its event", NULL);
    if (count == 0) continue;
    if (event.value.user != &seen || event.value.request_id != optima_request_id(request)) {
      return fail("an event of nobody", NULL);
    }
    add(&seen, &event.value);
    done = event.value.type == OPTIMA_EVENT_DONE;
    optima_event_release(&event.value);
  }
  optima_request_destroy(request);
  return print("poll", &seen);
}

/* What the table of 1.0 has must be where it was. */
static int by_table(const char* model_path, const char* prompt, int64_t tokens) {
  const optima_api_v1* api = optima_get_api(1);
  optima_engine_options options;
  optima_request_desc desc = ask(prompt, tokens);
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  optima_error* error = NULL;
  ids seen = {{0}, 0, 0};
  desc.on_event = on_event;
  desc.user = &seen;
  if (api == NULL || api->abi != 1 || api->struct_size < sizeof *api) {
    return fail("the table is shorter than that of 1.0", NULL);
  }
  api->engine_options_init(&options, sizeof options);
  options.threads = 1;
  options.drive = OPTIMA_DRIVE_HOST;
  if (api->engine_create(&options, &engine, &error) != OPTIMA_OK ||
      api->model_open_path(engine, model_path, OPTIMA_NTS, NULL, &model, &error) != OPTIMA_OK ||
      api->session_create(model, NULL, &session, &error) != OPTIMA_OK ||
      api->generate(session, &desc, NULL, &error) != OPTIMA_OK) {
    return fail("through the table", error);
  }
  api->session_destroy(session);
  api->model_destroy(model);
  api->engine_destroy(engine);
  return print("table", &seen);
}

/* Out-structs of model and engine: as long as they were. */
static int read_structs(const optima_engine* engine, const optima_model* model) {
  optima_error* error = NULL;
  GUARDED(optima_model_info, info);
  GUARDED(optima_memory, memory);
  GUARDED(optima_metadata, metadata);
  PREPARE(info);
  PREPARE(memory);
  PREPARE(metadata);
  if (optima_model_get_info(model, &info.value, &error) != OPTIMA_OK ||
      optima_mem_query(engine, &memory.value, &error) != OPTIMA_OK ||
      optima_model_metadata_find(model, "general.architecture", OPTIMA_NTS, &metadata.value,
                                 &error) != OPTIMA_OK) {
    return fail("out-structs", error);
  }
  if (!intact(info.canary) || !intact(memory.canary) || !intact(metadata.canary)) {
    return fail("written behind an out-struct", NULL);
  }
  if (info.value.layers <= 0 || info.value.vocabulary <= 0 || info.value.tensor_count <= 0 ||
      metadata.value.kind != OPTIMA_METADATA_STRING || memory.value.weights_mapped_bytes <= 0) {
    return fail("out-structs have other values", NULL);
  }
  return 0;
}

int main(int argc, char** argv) {
  optima_engine_options engine_options = OPTIMA_ENGINE_OPTIONS_INIT;
  optima_model_options model_options = OPTIMA_MODEL_OPTIONS_INIT;
  optima_session_options session_options = OPTIMA_SESSION_OPTIONS_INIT;
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  optima_error* error = NULL;
  int64_t tokens;
  int code;
  if (argc != 4) return 2;
  tokens = atoi(argv[3]);
  engine_options.threads = 1;
  session_options.context_tokens = 200;
  session_options.path = OPTIMA_PATH_REFERENCE;
  if (optima_engine_create(&engine_options, &engine, &error) != OPTIMA_OK ||
      optima_model_open_path(engine, argv[1], OPTIMA_NTS, &model_options, &model, &error) !=
          OPTIMA_OK ||
      optima_session_create(model, &session_options, &session, &error) != OPTIMA_OK) {
    return fail("create", error);
  }
  code = optima_session_context_tokens(session) != 200 || read_structs(engine, model) ||
         by_callback(session, argv[2], tokens) || by_poll(engine, session, argv[2], tokens) ||
         by_table(argv[1], argv[2], tokens);
  optima_session_destroy(session);
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
