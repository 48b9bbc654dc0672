// Eight threads with eight sessions each on one engine, doing whatever a host may do in any order:
// generate, submit, cancel, fork, cut, save, restore, and let go of what runs. OPTIMA_TEST_SECONDS
// sets for how long (tests/long/sessions.sh: ten minutes under ThreadSanitizer).
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

constexpr int kThreads = 8;
constexpr size_t kSessions = 8;

std::chrono::milliseconds duration() {
  const char* wanted = std::getenv("OPTIMA_TEST_SECONDS");
  return std::chrono::milliseconds(wanted != nullptr ? 1000 * std::atol(wanted) : 300);
}

class Host {
 public:
  Host(Engine& engine, std::vector<std::shared_ptr<Model>> models, uint32_t seed)
      : engine_(engine), models_(std::move(models)), random_(seed), places_(kSessions) {}

  void run(std::chrono::steady_clock::time_point end) {
    while (std::chrono::steady_clock::now() < end) {
      Place& place = places_[random_() % kSessions];
      if (place.session == nullptr) {
        open(place);
      } else {
        act(place);
      }
      ++operations;
    }
    for (Place& place : places_)
      if (place.request != nullptr) place.request->cancel();
    for (Place& place : places_)
      if (place.request != nullptr) place.request->wait(-1);
  }

  int64_t operations = 0;
  int64_t answers = 0, cancelled = 0;

 private:
  struct Place {
    std::shared_ptr<Session> session;
    std::shared_ptr<Request> request;
  };

  void open(Place& place) {
    SessionOptions options;
    options.prefill_chunk_tokens = 16;
    const auto& model = models_[random_() % models_.size()];
    if (saved_.empty() || random_() % 4 != 0) {
      place.session = must(engine_.create_session(model, options));
      return;
    }
    const std::string& text = saved_;
    size_t at = 0;
    auto restored = engine_.restore(model, options, [&](void* into, int64_t bytes) {
      if (static_cast<size_t>(bytes) > text.size() - at) return false;
      std::memcpy(into, text.data() + at, static_cast<size_t>(bytes));
      at += static_cast<size_t>(bytes);
      return true;
    });
    if (restored.ok()) {
      place.session = restored.take();
    } else {
      EXPECT_TRUE(restored.status().code() == Code::version ||
                  restored.status().code() == Code::oom_host)
          << restored.status().message();
    }
  }

  RequestSpec spec() {
    std::vector<int32_t> ids;
    const auto salt = static_cast<int32_t>(random_() % 3);
    for (uint32_t i = 0; i < 1 + random_() % 70; ++i)
      ids.push_back(static_cast<int32_t>(5 + (i * 7 + (i < 20 ? 0u : 11u * salt)) % 90));
    RequestSpec out = ids_request(std::move(ids), 1 + random_() % 12);
    out.drafts_max = random_() % 3 == 0 ? 4 : 0;
    if (random_() % 4 == 0) out.prompt_mode = PromptMode::append;
    if (random_() % 8 == 0) out.deadline_ms = 1 + random_() % 5;
    out.priority = static_cast<int32_t>(random_() % 3);
    out.context_shift = random_() % 4 == 0;
    return out;
  }

  // Busy sessions and full contexts are answers like others.
  void expect_answer(const Status& status) {
    EXPECT_TRUE(status.ok() || status.code() == Code::busy || status.code() == Code::context_full ||
                status.code() == Code::oom_host)
        << status.message();
  }

  void act(Place& place) {
    switch (random_() % 10) {
      case 0:
      case 1: {
        const uint32_t stop_at = random_() % 20;
        uint32_t events = 0;
        const auto request = engine_.generate(place.session, spec(), [&](const Event&) {
          if (events++ < stop_at) return Verdict::go_on;
          return stop_at % 2 == 0 ? Verdict::stop : Verdict::cancel;
        });
        expect_answer(request.status());
        if (request.ok()) ++answers;
        break;
      }
      case 2:
      case 3: {
        auto request = engine_.submit(place.session, spec());
        expect_answer(request.status());
        if (request.ok()) place.request = request.take();
        break;
      }
      case 4:
        if (place.request != nullptr) place.request->cancel();
        ++cancelled;
        break;
      case 5: {
        auto fork = place.session->fork();
        expect_answer(fork.status());
        Place& other = places_[random_() % kSessions];
        if (fork.ok()) other = {fork.take(), nullptr};  // what was there goes, whatever it does
        break;
      }
      case 6:
        expect_answer(place.session->truncate(random_() % 60));
        break;
      case 7: {
        std::string text;
        const Status status = place.session->save([&](const void* from, int64_t bytes) {
          text.append(static_cast<const char*>(from), static_cast<size_t>(bytes));
          return true;
        });
        expect_answer(status);
        if (status.ok()) saved_ = std::move(text);
        break;
      }
      case 8:
        place.session->close();
        place = {};
        break;
      default:
        if (place.request != nullptr) place.request->wait(1);
        EXPECT_GE(place.session->kv().use.pages, 0);
    }
  }

  Engine& engine_;
  std::vector<std::shared_ptr<Model>> models_;
  std::mt19937 random_;
  std::vector<Place> places_;
  std::string saved_;
};

void soak(const EngineOptions& options) {
  const Closing engine{new_engine(options)};
  const std::vector<std::shared_ptr<Model>> models = {
      must(engine->load(model::PathSource{tiny_path("llama-f32.gguf")}, {})),
      must(engine->load(model::PathSource{tiny_path("gemma3-f32.gguf")}, {}))};
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    std::vector<kv::KvEvent> events(32);
    while (!stop) {
      engine->poll(64, 1);
      must(engine->take_kv_events(events));
      const kv::AuditReport report = engine->audit_kv();
      ASSERT_EQ(report.faults(), 0) << report.text();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  const auto end = std::chrono::steady_clock::now() + duration();
  std::vector<Host> hosts;
  for (uint32_t i = 0; i < kThreads; ++i) hosts.emplace_back(*engine.engine, models, i);
  std::vector<std::thread> threads;
  for (Host& host : hosts) threads.emplace_back([&host, end] { host.run(end); });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  watcher.join();
  int64_t operations = 0, answers = 0, cancelled = 0;
  for (const Host& host : hosts) {
    operations += host.operations;
    answers += host.answers;
    cancelled += host.cancelled;
  }
  hosts.clear();
  for (int i = 0; i < 1000 && engine->memory().kv_bytes > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(engine->memory().kv_bytes, 0);
  EXPECT_GT(answers, 0);
  std::printf(
      "%lld operations, %lld answers, %lld cancelled, %llu preempted, %llu audits, %llu faults\n",
      static_cast<long long>(operations), static_cast<long long>(answers),
      static_cast<long long>(cancelled),
      static_cast<unsigned long long>(engine->metrics().preemptions),
      static_cast<unsigned long long>(engine->metrics().kv_audits),
      static_cast<unsigned long long>(engine->metrics().kv_audit_faults));
}

EngineOptions of(int64_t budget_bytes) {
  EngineOptions options;
  options.kv_budget_bytes = budget_bytes;
  options.kv_cached_bytes = budget_bytes / 8;
  options.kv_events = 64;
  return options;
}

TEST(Soak, EightThreadsOfEightSessions) {
  soak(of(8 << 20));
}

// For a few sequences at a time: most wait, are preempted, written out and read back; every 90th
// write and every 70th read fails.
TEST(Soak, WithLittleMemory) {
  struct Store {
    std::mutex mutex;
    std::map<uint64_t, std::string> kept;
    int writes = 0, reads = 0;
  };
  auto store = std::make_shared<Store>();
  EngineOptions options = of(40 << 10);
  options.spill.write = [store](uint64_t id, const void* from, int64_t bytes) {
    const std::lock_guard lock(store->mutex);
    if (++store->writes % 90 == 0) return false;
    store->kept[id].append(static_cast<const char*>(from), static_cast<size_t>(bytes));
    return true;
  };
  options.spill.read = [store](uint64_t id, void* into, int64_t offset, int64_t bytes) {
    const std::lock_guard lock(store->mutex);
    if (++store->reads % 70 == 0) return false;
    std::memcpy(into, store->kept.at(id).data() + offset, static_cast<size_t>(bytes));
    return true;
  };
  options.spill.discard = [store](uint64_t id) {
    const std::lock_guard lock(store->mutex);
    store->kept.erase(id);
  };
  soak(options);
  EXPECT_TRUE(store->kept.empty());
}

}  // namespace
}  // namespace optima::engine
