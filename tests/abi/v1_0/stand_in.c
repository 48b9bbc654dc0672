/* A library as release 1.0 was, as far as the test of newer hosts needs one: its version, its
 * function table, its lengths of the structs. Engine and session are there and do nothing. */
#include "optima.h"

#include <stdlib.h>
#include <string.h>

struct optima_error {
  optima_status code;
};

static const char* version(void) {
  return "1.0.0";
}

static const char* status_name(optima_status status) {
  return status == OPTIMA_E_UNSUPPORTED ? "UNSUPPORTED" : "?";
}

static optima_status error_code(const optima_error* error) {
  return error == NULL ? OPTIMA_OK : error->code;
}

static const char* error_message(const optima_error* error) {
  return error == NULL ? "" : "engine options: a byte is set that this version does not know";
}

static int64_t no_number(const optima_error* error) {
  (void)error;
  return -1;
}

static void error_destroy(optima_error* error) {
  free(error);
}

/* Bytes beyond the struct of 1.0 must be zero. */
static optima_status engine_create(const optima_engine_options* options, optima_engine** out,
                                   optima_error** err) {
  const unsigned char* bytes = (const unsigned char*)options;
  size_t i;
  *out = NULL;
  for (i = sizeof *options; i < options->struct_size; ++i) {
    if (bytes[i] == 0) continue;
    *err = malloc(sizeof **err);
    if (*err != NULL) (*err)->code = OPTIMA_E_UNSUPPORTED;
    return OPTIMA_E_UNSUPPORTED;
  }
  *out = (optima_engine*)malloc(1);
  return *out == NULL ? OPTIMA_E_OOM_HOST : OPTIMA_OK;
}

static void engine_destroy(optima_engine* engine) {
  free(engine);
}

static optima_status model_open_path(optima_engine* engine, const char* path, size_t path_bytes,
                                     const optima_model_options* options, optima_model** out,
                                     optima_error** err) {
  (void)engine, (void)path, (void)path_bytes, (void)options, (void)err;
  *out = (optima_model*)malloc(1);
  return *out == NULL ? OPTIMA_E_OOM_HOST : OPTIMA_OK;
}

static void model_destroy(optima_model* model) {
  free(model);
}

static optima_status session_create(optima_model* model, const optima_session_options* options,
                                    optima_session** out, optima_error** err) {
  (void)model, (void)options, (void)err;
  *out = (optima_session*)malloc(1);
  return *out == NULL ? OPTIMA_E_OOM_HOST : OPTIMA_OK;
}

static void session_destroy(optima_session* session) {
  free(session);
}

const optima_api_v1* optima_get_api(uint32_t abi) {
  static optima_api_v1 table;
  if (abi != 1) return NULL;
  table.struct_size = (uint32_t)sizeof table;
  table.abi = 1;
  table.version = version;
  table.status_name = status_name;
  table.error_code = error_code;
  table.error_message = error_message;
  table.error_wanted = table.error_available = table.error_limit = no_number;
  table.error_destroy = error_destroy;
  table.engine_create = engine_create;
  table.engine_destroy = engine_destroy;
  table.model_open_path = model_open_path;
  table.model_destroy = model_destroy;
  table.session_create = session_create;
  table.session_destroy = session_destroy;
  return &table;
}
