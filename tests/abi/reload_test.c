/* Loads and unloads the library 100 times, with a generation each time: descriptors, threads and
 * memory stay flat, and nothing is ever written to fds 1 and 2. reload_test LIBRARY MODEL */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <optima/optima.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The sanitizers keep freed memory for a while. */
#ifdef OPTIMA_TEST_SANITIZED
enum { kFreedMemoryReturns = 0 };
#else
enum { kFreedMemoryReturns = 1 };
#endif
enum { kWarmUp = 10, kRounds = 100, kPagesMore = 1024 };
/* Of the heap in use; the loader itself keeps some bytes a round. */
enum { kHeapBytesMore = kRounds * 1024 };

static int report_fd = -1; /* The real stderr. */

static int fail(const char* what, long value) {
  char line[256];
  const int bytes = snprintf(line, sizeof line, "reload_test: %s (%ld)\n", what, value);
  if (write(report_fd, line, (size_t)bytes) != bytes) return 2;
  return 1;
}

static int entries(const char* folder) {
  int count = 0;
  DIR* dir = opendir(folder);
  if (dir == NULL) return -1;
  while (readdir(dir) != NULL) ++count;
  closedir(dir);
  return count;
}

/* Without what is freed and kept in the heaps of ended threads, which varies by megabytes. */
static long resident_pages(void) {
  long size = 0;
  long resident = 0;
  FILE* statm = fopen("/proc/self/statm", "r");
  malloc_trim(0);
  if (statm == NULL) return -1;
  if (fscanf(statm, "%ld %ld", &size, &resident) != 2) resident = -1;
  fclose(statm);
  return resident;
}

static long heap_bytes(void) {
  return (long)mallinfo2().uordblks;
}

static int run(const optima_api_v1* api, const char* path) {
  optima_engine_options options = OPTIMA_ENGINE_OPTIONS_INIT;
  optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_engine* engine = NULL;
  optima_model* model = NULL;
  optima_session* session = NULL;
  optima_model* missing = NULL;
  int failed = 1;
  options.threads = 2;
  desc.prompt = "old market";
  desc.prompt_bytes = OPTIMA_NTS;
  desc.max_tokens = 2;
  if (api->engine_create(&options, &engine, NULL) != OPTIMA_OK) return 1;
  if (api->model_open_path(engine, "/nowhere", OPTIMA_NTS, NULL, &missing, NULL) == OPTIMA_E_IO &&
      api->model_open_path(engine, path, OPTIMA_NTS, NULL, &model, NULL) == OPTIMA_OK &&
      api->session_create(model, NULL, &session, NULL) == OPTIMA_OK) {
    failed = api->generate(session, &desc, NULL, NULL) != OPTIMA_OK;
  }
  api->session_destroy(session);
  api->model_destroy(model);
  api->engine_destroy(engine);
  return failed;
}

static int load_and_run(const char* library, const char* model) {
  typedef const optima_api_v1* (*get_api_fn)(uint32_t);
  get_api_fn get_api;
  const optima_api_v1* api;
  void* symbol;
  int failed;
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return fail(dlerror(), 0);
  symbol = dlsym(handle, "optima_get_api");
  memcpy(&get_api, &symbol, sizeof get_api);
  api = symbol == NULL ? NULL : get_api(1);
  failed = api == NULL || run(api, model);
  if (dlclose(handle) != 0) return fail("dlclose", 0);
  if (dlopen(library, RTLD_NOW | RTLD_NOLOAD) != NULL) return fail("still loaded", 0);
  return failed ? fail("a call failed", 0) : 0;
}

static int rounds(const char* library, const char* model) {
  long pages = 0;
  long heap = 0;
  int descriptors = 0;
  int threads = 0;
  int i;
  for (i = 0; i < kWarmUp + kRounds; ++i) {
    if (i == kWarmUp) {
      descriptors = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
      pages = resident_pages();
      heap = heap_bytes();
    }
    if (load_and_run(library, model) != 0) return fail("round", i);
  }
  if (entries("/proc/self/fd") != descriptors) return fail("descriptors were", descriptors);
  if (entries("/proc/self/task") != threads) return fail("threads were", threads);
  if (kFreedMemoryReturns && heap_bytes() - heap > kHeapBytesMore) {
    return fail("heap grew", heap_bytes() - heap);
  }
  if (kFreedMemoryReturns && resident_pages() - pages > kPagesMore) {
    return fail("pages grew", resident_pages() - pages);
  }
  return 0;
}

int main(int argc, char** argv) {
  char out_path[] = "/tmp/optima_reload_test_XXXXXX";
  struct stat written;
  int out;
  if (argc != 3) return 2;
  report_fd = dup(2);
  out = mkstemp(out_path);
  if (out < 0 || unlink(out_path) != 0) return fail("mkstemp", out);
  if (dup2(out, 1) != 1 || dup2(out, 2) != 2) return fail("dup2", 0);
  if (rounds(argv[1], argv[2]) != 0) return 1;
  if (fstat(out, &written) != 0) return fail("fstat", 0);
  if (written.st_size != 0) return fail("bytes on fds 1 and 2", (long)written.st_size);
  return 0;
}
