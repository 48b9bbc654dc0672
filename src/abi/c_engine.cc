// optima_engine: made from options, turned by its own thread or by the host, asked about memory.

#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/structs.h"

namespace optima::abi {
namespace {

// The host's log callback behind the engine's sink. It must not be able to throw into the engine.
class HostLog {
 public:
  HostLog(const optima_engine_options& options, ReleaseOnce release)
      : log_(options.log),
        user_(options.log_user),
        level_max_(options.log_level == 0 ? OPTIMA_LOG_DEBUG : options.log_level),
        release_(std::move(release)) {}

  void write(LogLevel level, std::string_view message) {
    if (static_cast<int32_t>(level) > level_max_) return;
    contain([&] {
      const std::string terminated(message);
      log_(user_, static_cast<int32_t>(level), terminated.c_str(), terminated.size());
    });
  }

 private:
  optima_log_fn log_;
  void* user_;
  int32_t level_max_;
  ReleaseOnce release_;
};

// The host's place for the KV of preempted requests.
class HostSpill {
 public:
  HostSpill(const optima_engine_options& options, ReleaseOnce release)
      : write_(options.spill_write),
        read_(options.spill_read),
        discard_(options.spill_discard),
        user_(options.spill_user),
        release_(std::move(release)) {}

  bool write(uint64_t id, const void* from, int64_t bytes) {
    int32_t failed = 1;
    contain([&] { failed = write_(user_, id, from, bytes); });
    return failed == 0;
  }
  bool read(uint64_t id, void* into, int64_t offset, int64_t bytes) {
    int32_t failed = 1;
    contain([&] { failed = read_(user_, id, into, offset, bytes); });
    return failed == 0;
  }
  void discard(uint64_t id) {
    contain([&] { discard_(user_, id); });
  }

 private:
  optima_spill_write_fn write_;
  optima_spill_read_fn read_;
  optima_spill_discard_fn discard_;
  void* user_;
  ReleaseOnce release_;
};

struct Hooks {
  ReleaseOnce alloc;
  ReleaseOnce log;
  ReleaseOnce spill;
};

// Taken first, so that a call that fails releases the host's cookies as well.
Hooks take_hooks(const optima_engine_options* in) {
  const optima_engine_options options = given_fields(in);
  return {.alloc = {options.alloc_release, options.alloc_user},
          .log = {options.log_release, options.log_user},
          .spill = {options.spill_release, options.spill_user}};
}

Result<std::vector<uint64_t>> read_affinity(const optima_engine_options& options) {
  constexpr size_t kWordsMax = 1024;  // 65,536 CPUs
  OPTIMA_TRY(check_array("affinity", options.affinity, options.affinity_words, sizeof(uint64_t)));
  if (options.affinity_words > kWordsMax) {
    return Status(Code::invalid_argument,
                  text("affinity_words is ", options.affinity_words, ", at most ", kWordsMax));
  }
  return std::vector<uint64_t>(options.affinity, options.affinity + options.affinity_words);
}

Result<engine::EngineOptions> read_options(const optima_engine_options& options) {
  engine::EngineOptions out;
  OPTIMA_TRY(check_constant("drive", options.drive, OPTIMA_DRIVE_HOST));
  OPTIMA_TRY(check_constant("log_level", options.log_level, OPTIMA_LOG_DEBUG));
  if ((options.alloc == nullptr) != (options.free == nullptr)) {
    return Status(Code::invalid_argument, "alloc and free: one is NULL, the other is not");
  }
  const int spills = (options.spill_write != nullptr ? 1 : 0) +
                     (options.spill_read != nullptr ? 1 : 0) +
                     (options.spill_discard != nullptr ? 1 : 0);
  if (spills != 0 && spills != 3) {
    return Status(Code::invalid_argument,
                  text("spill_write, spill_read and spill_discard: ", spills, " of 3 are set"));
  }
  if (options.memory_limit_bytes < 0) {
    return Status(Code::invalid_argument, text("memory_limit_bytes is ", options.memory_limit_bytes,
                                               ", must not be negative"));
  }
  OPTIMA_ASSIGN(out.affinity, read_affinity(options));
  out.threads = options.threads;
  out.priority = options.priority;
  out.drive = static_cast<engine::Drive>(options.drive);
  out.memory_limit_bytes = options.memory_limit_bytes;
  out.kv_budget_bytes = options.kv_budget_bytes;
  out.kv_cached_bytes = options.kv_cached_bytes;
  out.queue_max = options.queue_max;
  out.kv_events = options.kv_events;
  return out;
}

Result<std::shared_ptr<EngineBox>> create(const optima_engine_options* in) {
  Hooks hooks = take_hooks(in);
  OPTIMA_ASSIGN(const optima_engine_options options, read_struct("engine options", in));
  OPTIMA_ASSIGN(engine::EngineOptions engine_options, read_options(options));
  auto box = std::make_shared<EngineBox>();
  box->drive = engine_options.drive;
  if (options.alloc != nullptr) {
    box->host_memory = std::shared_ptr<HostMemory>(
        new HostMemory(options.alloc, options.free, options.alloc_user, std::move(hooks.alloc)),
        [](HostMemory* memory) { memory->let_go(); });
    engine_options.allocator = box->host_memory->allocator();
  }
  if (options.log != nullptr) {
    auto log = std::make_shared<HostLog>(options, std::move(hooks.log));
    engine_options.log = [log](LogLevel level, std::string_view message) {
      log->write(level, message);
    };
  }
  if (options.spill_write != nullptr) {
    auto spill = std::make_shared<HostSpill>(options, std::move(hooks.spill));
    engine_options.spill.write = [spill](uint64_t id, const void* from, int64_t bytes) {
      return spill->write(id, from, bytes);
    };
    engine_options.spill.read = [spill](uint64_t id, void* into, int64_t offset, int64_t bytes) {
      return spill->read(id, into, offset, bytes);
    };
    engine_options.spill.discard = [spill](uint64_t id) { spill->discard(id); };
  }
  OPTIMA_ASSIGN(box->engine, engine::Engine::create(engine_options));
  return box;
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Code;
using optima::Status;

optima_status optima_engine_create(const optima_engine_options* options, optima_engine** out,
                                   optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out != nullptr) *out = nullptr;
    OPTIMA_ASSIGN(auto box, create(options));
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = new optima_engine(std::move(box));
    return {};
  });
}

void optima_engine_destroy(optima_engine* engine) noexcept {
  guard([&] {
    if (const auto box = release(engine)) box->close();
  });
}

int32_t optima_engine_threads(const optima_engine* engine) noexcept {
  return guard(Fallback<int32_t>{0}, [&]() -> int32_t {
    const auto box = enter(engine);
    return box.ok() ? (*box)->engine->threads() : 0;
  });
}

optima_status optima_step(optima_engine* engine, int32_t* worked, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (worked != nullptr) *worked = 0;
    OPTIMA_ASSIGN(const auto box, enter(engine));
    if (box->in_callback()) return Status(Code::busy, "optima_step: called from a callback");
    OPTIMA_ASSIGN(const bool any, box->engine->step());
    if (worked != nullptr) *worked = any ? 1 : 0;
    return {};
  });
}

optima_status optima_mem_query(const optima_engine* engine, optima_memory* out,
                               optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(engine));
    OPTIMA_TRY(check_out("out", out));
    const optima::engine::MemoryUse use = box->engine->memory();
    optima_memory memory{};
    memory.limit_bytes = use.limit_bytes;
    memory.used_bytes = use.used_bytes;
    memory.peak_bytes = use.peak_bytes;
    memory.weights_mapped_bytes = use.weights_mapped_bytes;
    memory.kv_bytes = use.kv_bytes;
    memory.activation_bytes = use.activation_bytes;
    memory.kv_cached_bytes = use.kv_cached_bytes;
    memory.kv_budget_bytes = use.kv_budget_bytes;
    memory.weights_packed_bytes = use.weights_packed_bytes;
    write_struct(out, memory);
    return {};
  });
}
