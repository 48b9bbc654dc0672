/* Text as it is made, Ctrl-C to stop, a chat template: stream MODEL.gguf ["question"]
 *
 *   cc -std=c99 stream.c $(pkg-config --cflags --libs sits-optima) -o stream
 */
#include <optima/optima.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static optima_cancel* cancel; /* The handler's only way to it. */

static void on_interrupt(int number) {
  (void)number;
  optima_cancel_trigger(cancel); /* Async-signal-safe. */
}

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

/* Each text event holds whole characters. */
static int32_t on_event(void* user, const optima_event* event) {
  FILE* out = user;
  if (event->type != OPTIMA_EVENT_TOKEN) return OPTIMA_CONTINUE;
  if (fwrite(event->text, 1, (size_t)event->text_bytes, out) != (size_t)event->text_bytes) {
    return OPTIMA_STOP;
  }
  return fflush(out) == 0 ? OPTIMA_CONTINUE : OPTIMA_STOP;
}

/* The question as a JSON message list; quotes, backslashes and controls are escaped. */
static int write_messages(char* out, size_t capacity, const char* question) {
  size_t at = (size_t)snprintf(out, capacity, "[{\"role\":\"user\",\"content\":\"");
  for (; *question != '\0'; ++question) {
    const unsigned char c = (unsigned char)*question;
    if (at + 16 > capacity) return 0;
    if (c == '"' || c == '\\') {
      out[at++] = '\\';
      out[at++] = (char)c;
    } else if (c < 0x20) {
      at += (size_t)snprintf(out + at, 7, "\\u%04x", c);
    } else {
      out[at++] = (char)c;
    }
  }
  memcpy(out + at, "\"}]", 4);
  return 1;
}

/* The prompt of a model with a chat template; *prompt is NULL for a model without one. */
static int render(optima_model* model, const char* question, optima_buffer** prompt) {
  optima_chat_desc chat = OPTIMA_CHAT_DESC_INIT;
  optima_error* error = NULL;
  char messages[4096];
  int64_t template_bytes = 0;
  optima_model_chat_template(model, &template_bytes);
  if (template_bytes == 0) return 0;
  if (!write_messages(messages, sizeof messages, question)) {
    fprintf(stderr, "the question is too long\n");
    return 1;
  }
  chat.messages_json = messages;
  chat.messages_json_bytes = OPTIMA_NTS;
  if (optima_model_render(model, &chat, prompt, &error) != OPTIMA_OK) {
    return fail("chat template", error);
  }
  return 0;
}

static int answer(optima_model* model, optima_session* session, const char* question) {
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_counters counters = OPTIMA_COUNTERS_INIT;
  optima_buffer* prompt = NULL;
  optima_result* result = NULL;
  optima_error* error = NULL;
  optima_status status;
  if (render(model, question, &prompt) != 0) return 1;
  desc.prompt = prompt != NULL ? optima_buffer_text(prompt, NULL) : question;
  desc.prompt_bytes = OPTIMA_NTS;
  if (prompt != NULL) desc.flags = OPTIMA_REQUEST_NO_ADD_SPECIAL; /* The template wrote them. */
  desc.max_tokens = 128;
  desc.cancel = cancel;
  desc.on_event = on_event;
  desc.user = stdout;
  status = optima_generate(session, &desc, &result, &error);
  optima_buffer_destroy(prompt);
  if (status != OPTIMA_OK) return fail("generate", error);
  optima_result_counters(result, &counters, NULL);
  printf("\n[%s after %lld tokens, first one after %.0f ms]\n",
         optima_finish_name(optima_result_finish(result)), (long long)counters.output_tokens,
         (double)counters.first_token_ns * 1e-6);
  optima_result_destroy(result);
  return 0;
}

int main(int argc, char** argv) {
  const char* question = argc > 2 ? argv[2] : "Why is the sky blue?";
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  optima_error* error = NULL;
  int code = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.gguf [\"question\"]\n", argv[0]);
    return 2;
  }
  if (optima_cancel_create(&cancel, &error) != OPTIMA_OK) return fail("cancel", error);
  signal(SIGINT, on_interrupt);
  if (optima_engine_create(NULL, &engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(engine, argv[1], OPTIMA_NTS, NULL, &model, &error)) {
    code = fail(argv[1], error);
  } else if (optima_session_create(model, NULL, &session, &error) != OPTIMA_OK) {
    code = fail("session", error);
  } else {
    code = answer(model, session, question);
  }
  signal(SIGINT, SIG_DFL);
  optima_session_destroy(session);
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  optima_cancel_destroy(cancel);
  return code;
}
