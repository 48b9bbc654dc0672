/* How alike texts are, by the angle between their embeddings: embed MODEL [TEXT TEXT...]
 *
 *   cc -std=c99 embed.c $(pkg-config --cflags --libs sits-optima) -o embed
 */
#include <optima/optima.h>
#include <stdio.h>

enum { kTexts = 3 };

static const char* const kDefaultTexts[kTexts] = {"A ship on the sea", "A boat sails the ocean",
                                                  "The price of bread"};

static int fail(const char* what, optima_error* error) {
  fprintf(stderr, "%s: %s\n", what, optima_error_message(error));
  optima_error_destroy(error);
  return 1;
}

/* Of vectors of length 1 the cosine is the sum of the products. */
static double cosine(const float* a, const float* b, int64_t width) {
  double sum = 0;
  int64_t i;
  for (i = 0; i < width; ++i) sum += (double)a[i] * (double)b[i];
  return sum;
}

/* One row of floats for each text. */
static void print(const float* rows, int64_t width, const char* const* texts, int count) {
  int i;
  for (i = 1; i < count; ++i) {
    printf("%6.3f  %s | %s\n", cosine(rows, rows + i * width, width), texts[0], texts[i]);
  }
}

static int embed(optima_model* model, const char* const* texts, int count) {
  optima_session_options options = OPTIMA_SESSION_OPTIONS_INIT;
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_session* session = NULL;
  optima_buffer* buffer = NULL;
  optima_error* error = NULL;
  int code = 0;
  options.output = OPTIMA_OUTPUT_EMBEDDING;
  desc.normalise = OPTIMA_NORMALISE_L2;
  if (optima_session_create(model, &options, &session, &error) != OPTIMA_OK) {
    code = fail("session", error);
  } else if (optima_embed_texts(session, &desc, texts, NULL, (size_t)count, &buffer, &error) !=
             OPTIMA_OK) {
    code = fail("embed", error);
  } else {
    int64_t floats = 0;
    const float* rows = optima_buffer_floats(buffer, &floats);
    print(rows, floats / count, texts, count);
  }
  optima_buffer_destroy(buffer);
  optima_session_destroy(session);
  return code;
}

int main(int argc, char** argv) {
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_error* error = NULL;
  int code = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL [TEXT TEXT...]\n", argv[0]);
    return 2;
  }
  if (optima_engine_create(NULL, &engine, &error) != OPTIMA_OK) {
    code = fail("engine", error);
  } else if (optima_model_open_path(engine, argv[1], OPTIMA_NTS, NULL, &model, &error)) {
    code = fail(argv[1], error);
  } else if (argc == 2) {
    code = embed(model, kDefaultTexts, kTexts);
  } else {
    code = embed(model, (const char* const*)(argv + 2), argc - 2);
  }
  optima_model_destroy(model);
  optima_engine_destroy(engine);
  return code;
}
