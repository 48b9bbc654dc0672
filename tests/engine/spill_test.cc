// The KV of preempted requests at the host's: it comes back as it was, and a host that fails costs
// time only.
#include <functional>
#include <map>
#include <set>

#include "tests/engine/tight_engine.h"

namespace optima::engine {
namespace {

// What the host keeps, with faults at will. Every number is discarded once.
struct Store {
  std::map<uint64_t, std::string> kept;
  std::set<uint64_t> gone;
  int64_t writes = 0, reads = 0;
  int64_t fail_write = -1, fail_read = -1;  // the how manieth
  int64_t damage_read = -1;
  std::function<void()> on_write;

  SpillStore functions() {
    SpillStore out;
    out.write = [this](uint64_t id, const void* from, int64_t bytes) {
      EXPECT_FALSE(gone.contains(id));
      if (on_write) on_write();
      if (writes++ == fail_write) return false;
      kept[id].append(static_cast<const char*>(from), static_cast<size_t>(bytes));
      return true;
    };
    out.read = [this](uint64_t id, void* into, int64_t offset, int64_t bytes) {
      const std::string& of = kept.at(id);
      if (reads++ == fail_read || offset + bytes > static_cast<int64_t>(of.size())) return false;
      std::memcpy(into, of.data() + offset, static_cast<size_t>(bytes));
      if (reads - 1 == damage_read) static_cast<unsigned char*>(into)[bytes / 2] ^= 64;
      return true;
    };
    out.discard = [this](uint64_t id) {
      EXPECT_TRUE(gone.insert(id).second) << id;
      kept.erase(id);
    };
    return out;
  }
};

struct Spilled {
  Metrics metrics;
  std::vector<RequestResult> results;
};

// Three requests that together need more than there is; nothing is cached, so that what comes back
// comes from the store.
Spilled run_with(Store& store, const std::string& model = "llama-f32",
                 std::vector<std::string>* messages = nullptr) {
  EngineOptions options = pages(9);
  const bool windowed = model != "llama-f32";
  if (windowed) options.kv_budget_bytes = 60 << 10;
  const auto asked = [&](int32_t i) {
    return ids_request(prompt_of(40, 1 + i), windowed ? 200 : 60);
  };
  options.kv_cached_bytes = kNothingCached;
  options.spill = store.functions();
  if (messages != nullptr)
    options.log = [messages](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) messages->emplace_back(message);
    };
  Tight engine(options, model);
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  SessionOptions session_options = reference();
  session_options.prefill_chunk_tokens = 24;
  for (int32_t i = 0; i < 3; ++i) {
    sessions.push_back(engine.session(session_options));
    requests.push_back(engine.submit(sessions.back(), asked(i)));
  }
  engine.finish_all();
  Spilled out{engine->metrics(), {}};
  for (const auto& request : requests) out.results.push_back(request->result());
  for (int32_t i = 0; i < 3; ++i)
    EXPECT_EQ(output_ids(out.results[static_cast<size_t>(i)]), output_ids(alone(asked(i), model)));
  EXPECT_TRUE(store.kept.empty()) << "what was written is wanted no more";
  EXPECT_GT(out.metrics.preemptions, 0u);
  return out;
}

TEST(Spilling, WhatIsWrittenOutIsReadBack) {
  for (const char* model : {"llama-f32", "gemma3-f32"}) {
    Store store;
    const Metrics metrics = run_with(store, model).metrics;
    EXPECT_EQ(store.gone.size(), metrics.preemptions);
    EXPECT_GT(metrics.spilled_bytes, 0u);
    EXPECT_EQ(metrics.restored_bytes, metrics.spilled_bytes);
    EXPECT_EQ(metrics.spill_failures, 0u);
  }
}

TEST(Spilling, AStoreThatFailsMidwayCostsTimeOnly) {
  Store good;
  run_with(good);
  for (int64_t at = 0; at < good.writes; at += 3) {
    Store store;
    store.fail_write = at;
    std::vector<std::string> messages;
    EXPECT_EQ(run_with(store, "llama-f32", &messages).metrics.spill_failures, 1u) << at;
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_NE(messages[0].find("could not be written"), std::string::npos) << messages[0];
  }
  for (int64_t at = 0; at < good.reads; at += 3) {
    Store store;
    store.fail_read = at;
    EXPECT_EQ(run_with(store).metrics.spill_failures, 1u) << at;
  }
  uint64_t found = 0;
  for (int64_t at = 0; at < good.reads; ++at) {
    Store store;
    store.damage_read = at;
    found += run_with(store).metrics.spill_failures;
  }
  EXPECT_EQ(found, static_cast<uint64_t>(good.reads) - good.gone.size())
      << "all but the word of each stream that has no meaning yet";
}

TEST(Spilling, PagesThatAreKnownStillAreNotReadBack) {
  Store store;
  EngineOptions options = pages(9);
  options.kv_cached_bytes = options.kv_budget_bytes;
  options.spill = store.functions();
  Tight engine(options);
  const auto a = engine.session(), b = engine.session();
  RequestSpec spec = ids_request(prompt_of(40, 1), 30);
  const auto low = engine.submit(a, spec);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(must(engine->step()));
  RequestSpec urgent = ids_request(prompt_of(84, 2), 8);
  urgent.priority = 3;
  const auto high = engine.submit(b, urgent);
  while (!high->done()) EXPECT_TRUE(must(engine->step()));
  EXPECT_EQ(store.kept.size(), 1u);
  engine.finish_all();
  EXPECT_TRUE(store.kept.empty());
  EXPECT_EQ(output_ids(low->result()), output_ids(alone(spec)));
}

TEST(Spilling, WhatIsCancelledMeanwhileIsDiscarded) {
  for (const int64_t at : {0, 3}) {
    Store store;
    EngineOptions options = pages(6);
    options.kv_cached_bytes = kNothingCached;
    options.spill = store.functions();
    Tight engine(options);
    const auto a = engine.session(), b = engine.session();
    const auto low = engine.submit(a, ids_request(prompt_of(40, 1), 40));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(must(engine->step()));
    store.on_write = [&] {
      if (store.writes == at) low->cancel();
    };
    RequestSpec urgent = ids_request(prompt_of(60, 2), 8);
    urgent.priority = 3;
    const auto high = engine.submit(b, urgent);
    engine.finish_all();
    EXPECT_EQ(low->result().finish, FinishReason::cancelled);
    EXPECT_EQ(high->result().finish, FinishReason::length);
    EXPECT_TRUE(store.kept.empty());
    EXPECT_EQ(engine->metrics().spill_failures, 0u) << "it was not the store's fault";
    EXPECT_EQ(store.writes, at + 1);
  }
}

// The host's functions are called without a lock: others submit and ask meanwhile.
TEST(Spilling, NobodyWaitsForTheStore) {
  Store store;
  EngineOptions options = pages(6);
  options.kv_cached_bytes = kNothingCached;
  options.spill = store.functions();
  Tight engine(options);
  const auto a = engine.session(), b = engine.session(), c = engine.session();
  RequestSpec spec = ids_request(prompt_of(40, 1), 50);
  const auto low = engine.submit(a, spec);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(must(engine->step()));
  RequestSpec urgent = ids_request(prompt_of(60, 2), 8);
  urgent.priority = 3;
  const auto high = engine.submit(b, urgent);
  std::shared_ptr<Request> third;
  store.on_write = [&] {
    if (third != nullptr) return;
    third = engine.submit(c, ids_request(prompt_of(4, 3), 4));
    EXPECT_EQ(engine->metrics().preemptions, 1u);
    EXPECT_EQ(a->truncate(0).code(), Code::busy);
    EXPECT_EQ(a->fork().status().code(), Code::busy);
  };
  engine.finish_all();
  ASSERT_NE(third, nullptr);
  for (const auto& request : {low, high, third})
    EXPECT_EQ(request->result().finish, FinishReason::length) << request->result().status.message();
  EXPECT_EQ(output_ids(low->result()), output_ids(alone(spec))) << "all the memory was its own";
}

TEST(Spilling, NeedsAllFunctions) {
  Store store;
  EngineOptions options;
  options.spill = store.functions();
  options.spill.discard = nullptr;
  EXPECT_EQ(Engine::create(options).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace optima::engine
