// Manners in the host's process: memory through the host's allocator and within its limit, log and
// release hooks, flat descriptors, threads and memory over many engines, fork.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "fixture.h"

namespace optima_test {
namespace {

// The sanitizers keep freed memory for a while.
#ifdef OPTIMA_TEST_SANITIZED
constexpr bool kFreedMemoryReturns = false;
#else
constexpr bool kFreedMemoryReturns = true;
#endif

int entries(const char* folder) {
  DIR* dir = opendir(folder);
  int count = 0;
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

long resident_pages() {
  std::ifstream statm("/proc/self/statm");
  long size = 0;
  long resident = 0;
  statm >> size >> resident;
  return resident;
}

// A host allocator that counts and can be told to fail.
struct HostHeap {
  std::atomic<int64_t> blocks{0};
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> fail_at{-1};
  std::atomic<int> released{0};

  optima_engine_options options() {
    auto options = sized<optima_engine_options>();
    options.alloc = [](void* user, size_t bytes, size_t alignment) -> void* {
      auto& heap = *static_cast<HostHeap*>(user);
      EXPECT_EQ(heap.released, 0);
      if (heap.calls++ == heap.fail_at) return nullptr;
      ++heap.blocks;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    };
    options.free = [](void* user, void* memory, size_t) {
      auto& heap = *static_cast<HostHeap*>(user);
      EXPECT_EQ(heap.released, 0);
      --heap.blocks;
      std::free(memory);
    };
    options.alloc_user = this;
    options.alloc_release = [](void* user) { ++static_cast<HostHeap*>(user)->released; };
    return options;
  }
};

optima_status run_once(const Engine& engine) {
  optima_model* raw_model = nullptr;
  const std::string path = tiny_path("llama-f32.gguf");
  optima_status status =
      optima_model_open_path(engine.get(), path.c_str(), OPTIMA_NTS, nullptr, &raw_model, nullptr);
  if (status != OPTIMA_OK) return status;
  const Model model(raw_model);
  optima_session* raw_session = nullptr;
  status = optima_session_create(model.get(), nullptr, &raw_session, nullptr);
  if (status != OPTIMA_OK) return status;
  const Session session(raw_session);
  const auto desc = ask("old market", 3);
  return optima_generate(session.get(), &desc, nullptr, nullptr);
}

TEST(HostTest, AllMemoryGoesBackToTheHost) {
  HostHeap heap;
  {
    const Engine engine = make_engine(heap.options());
    EXPECT_EQ(run_once(engine), OPTIMA_OK);
    EXPECT_GT(heap.calls, 0);
    EXPECT_EQ(heap.released, 0);
  }
  EXPECT_EQ(heap.blocks, 0);
  EXPECT_EQ(heap.released, 1);
}

TEST(HostTest, EveryAllocationMayFail) {
  HostHeap counting;
  {
    const Engine engine = make_engine(counting.options());
    ASSERT_EQ(run_once(engine), OPTIMA_OK);
  }
  int failures = 0;
  for (int64_t n = 0; n < counting.calls; ++n) {
    HostHeap heap;
    heap.fail_at = n;
    const Engine engine = make_engine(heap.options());
    const optima_status status = run_once(engine);  // A smaller block may do instead.
    EXPECT_TRUE(status == OPTIMA_E_OOM_HOST || status == OPTIMA_OK) << "allocation " << n;
    failures += status == OPTIMA_E_OOM_HOST;
    EXPECT_EQ(run_once(engine), OPTIMA_OK) << "the engine is usable after allocation " << n;
  }
  EXPECT_GT(failures, 0);
}

TEST(HostTest, MemoryLimit) {
  auto options = sized<optima_engine_options>();
  options.memory_limit_bytes = 4096;
  const Engine engine = make_engine(options);
  EXPECT_EQ(run_once(engine), OPTIMA_E_OOM_HOST);
  auto memory = sized<optima_memory>();
  ASSERT_EQ(optima_mem_query(engine.get(), &memory, nullptr), OPTIMA_OK);
  EXPECT_EQ(memory.limit_bytes, 4096);
  EXPECT_LE(memory.peak_bytes, 4096);
}

TEST(HostTest, MemoryQueryFollowsTheModel) {
  const Engine engine = make_engine();
  const auto query = [&] {
    auto memory = sized<optima_memory>();
    must([&](optima_error** err) { return optima_mem_query(engine.get(), &memory, err); });
    return memory;
  };
  EXPECT_EQ(query().weights_mapped_bytes, 0);
  Model model = open_tiny(engine);
  Session session = make_session(model);
  generate(session, ask("old market", 2));
  const optima_memory full = query();
  EXPECT_GT(full.weights_mapped_bytes, 0);
  EXPECT_GT(full.kv_bytes, 0);
  EXPECT_GT(full.activation_bytes, 0);
  EXPECT_GE(full.used_bytes, full.kv_bytes + full.activation_bytes);
  session.reset();
  model.reset();
  // The driving thread lets go of the finished request's session a moment after the call.
  for (int i = 0; i < 1000 && query().used_bytes != 0; ++i) usleep(1000);
  EXPECT_EQ(query().used_bytes, 0);
}

TEST(HostTest, LogAndItsRelease) {
  struct Log {
    std::atomic<int> messages{0};
    std::atomic<int> released{0};
  } log;
  auto options = sized<optima_engine_options>();
  options.log_user = &log;
  options.log = [](void* user, int32_t level, const char* message, size_t bytes) {
    EXPECT_EQ(std::strlen(message), bytes);
    EXPECT_GE(level, OPTIMA_LOG_ERROR);
    auto& l = *static_cast<Log*>(user);
    EXPECT_EQ(l.released, 0);
    ++l.messages;
  };
  options.log_release = [](void* user) { ++static_cast<Log*>(user)->released; };
  {
    const Engine engine = make_engine(options);
    EXPECT_EQ(run_once(engine), OPTIMA_OK);
    EXPECT_EQ(log.messages, 1) << "one of the load";
    optima_model* none = nullptr;
    EXPECT_NE(
        optima_model_open_path(engine.get(), "/no/such.gguf", OPTIMA_NTS, nullptr, &none, nullptr),
        OPTIMA_OK);
    EXPECT_EQ(log.messages, 2) << "one of the failure";
    EXPECT_EQ(log.released, 0);
  }
  EXPECT_EQ(log.released, 1);
}

// A thread that was joined stands in /proc a moment longer.
int settled_threads() {
  int threads = entries("/proc/self/task");
  for (int quiet = 0; quiet < 20; ++quiet) {
    usleep(1000);
    const int now = entries("/proc/self/task");
    if (now != threads) quiet = 0;
    threads = now;
  }
  return threads;
}

TEST(HostTest, FlatOverManyEngines) {
  const auto round = [] {
    auto options = sized<optima_engine_options>();
    options.threads = 2;
    EXPECT_EQ(run_once(make_engine(options)), OPTIMA_OK);
  };
  for (int i = 0; i < 20; ++i) round();
  const int descriptors = entries("/proc/self/fd");
  const int threads = settled_threads();
  const long pages = resident_pages();
  for (int i = 0; i < 200; ++i) round();
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(settled_threads(), threads);
  if (kFreedMemoryReturns) {
    EXPECT_LT(resident_pages() - pages, (8 << 20) / sysconf(_SC_PAGESIZE));
  }
}

// Numbered so that the exit code tells which expectation failed.
int in_the_child(const Engine& engine, Model& model, Session& session, Request& request) {
  size_t count = 0;
  auto event = sized<optima_event>();
  auto memory = sized<optima_memory>();
  const auto desc = ask("x", 1);
  optima_error* error = nullptr;
  if (optima_generate(session.get(), &desc, nullptr, &error) != OPTIMA_E_FORKED) return 1;
  if (optima_error_code(error) != OPTIMA_E_FORKED) return 2;
  optima_error_destroy(error);
  if (optima_poll(engine.get(), &event, 1, sizeof event, -1, &count, nullptr) != OPTIMA_E_FORKED) {
    return 3;
  }
  if (optima_mem_query(engine.get(), &memory, nullptr) != OPTIMA_E_FORKED) return 4;
  if (optima_request_cancel(request.get()) != OPTIMA_E_FORKED) return 5;
  request.reset();
  session.reset();
  model.reset();
  optima_engine* fresh = nullptr;
  auto options = sized<optima_engine_options>();
  options.threads = 2;
  if (optima_engine_create(&options, &fresh, nullptr) != OPTIMA_OK) return 6;
  optima_engine_destroy(fresh);
  return 0;
}

TEST(HostTest, AChildAfterForkIsTold) {
  Engine engine = make_engine();
  Model model = open_tiny(engine);
  Session session = make_session(model);
  const auto desc = ask("old market", 2);
  optima_request* raw = nullptr;
  must([&](optima_error** err) { return optima_submit(session.get(), &desc, &raw, err); });
  Request request(raw);
  int32_t done = 0;
  ASSERT_EQ(optima_request_wait(request.get(), -1, &done, nullptr), OPTIMA_OK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    _exit(in_the_child(engine, model, session, request));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(HostTest, Probe) {
  auto report = sized<optima_probe_report>();
  must([&](optima_error** err) { return optima_probe(nullptr, &report, err); });
  EXPECT_GE(report.threads, 1);
  EXPECT_GT(std::strlen(report.isa), 0u);
  EXPECT_EQ(report.read_roof_gb_per_s, 0) << "measured only when asked";
  auto options = sized<optima_probe_options>();
  options.threads = 1;
  options.flags = OPTIMA_PROBE_READ | OPTIMA_PROBE_INT8;
  options.read_bytes = 1 << 20;
  must([&](optima_error** err) { return optima_probe(&options, &report, err); });
  EXPECT_GT(report.read_roof_gb_per_s, 0);
  EXPECT_GT(report.int8_roof_tmac_per_s, 0);
  EXPECT_EQ(report.read_threads, 1);
  EXPECT_GT(std::strlen(report.read_method), 0u);
  EXPECT_EQ(report.dram_read_gb_per_s, 0);
  options.flags = 1u << 30;
  EXPECT_EQ(optima_probe(&options, &report, nullptr), OPTIMA_E_UNSUPPORTED);
  options.flags = 0;
  options.threads = -1;
  EXPECT_EQ(optima_probe(&options, &report, nullptr), OPTIMA_E_ARG);
}

}  // namespace
}  // namespace optima_test
