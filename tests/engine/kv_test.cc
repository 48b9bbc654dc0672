// KV pages of whole engines: audited while everything happens at once.
#include <atomic>
#include <map>
#include <thread>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

const TinyModel& tiny(const char* name) {
  static const std::map<std::string, TinyModel> models = {{"llama-f32", tiny_model("llama-f32")},
                                                          {"gemma3-f32", tiny_model("gemma3-f32")}};
  return models.at(name);
}

std::vector<int32_t> prompt_of(int64_t count, int32_t salt) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(5 + (i * 7 + (i < 20 ? 0 : salt)) % 90));
  return ids;
}

class Audited : public testing::TestWithParam<const char*> {
 protected:
  // Generates, forks, cuts, saves, restores and cancels until told otherwise.
  void live(int32_t salt, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const auto session = must(engine_->create_session(model_, {}));
      must(engine_->generate(session, ids_request(prompt_of(40 + salt, salt), 6), nullptr));
      const auto fork = must(session->fork());
      RequestSpec spec = ids_request(prompt_of(70, salt + round), 50);
      const auto cancelled = must(engine_->submit(fork, spec));
      std::string saved;
      ASSERT_TRUE(session
                      ->save([&saved](const void* from, int64_t bytes) {
                        saved.append(static_cast<const char*>(from), static_cast<size_t>(bytes));
                        return true;
                      })
                      .ok());
      cancelled->cancel();
      size_t at = 0;
      const auto restored = must(engine_->restore(model_, {}, [&](void* into, int64_t bytes) {
        std::memcpy(into, saved.data() + at, static_cast<size_t>(bytes));
        at += static_cast<size_t>(bytes);
        return true;
      }));
      ASSERT_TRUE(session->truncate(20).ok());
      must(engine_->generate(restored, ids_request(prompt_of(45, salt), 3), nullptr));
      cancelled->wait(-1);
    }
  }

  const Closing engine_{new_engine()};
  std::shared_ptr<Model> model_ = must(engine_->load(model::PathSource{tiny(GetParam()).path}, {}));
};

TEST_P(Audited, NothingIsLostWhileEverythingHappensAtOnce) {
  std::atomic<bool> stop{false};
  std::thread auditor([&] {
    while (!stop) {
      const kv::AuditReport report = engine_->audit_kv();
      ASSERT_EQ(report.faults(), 0) << report.text();
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> hosts;
  for (int32_t i = 0; i < 3; ++i) hosts.emplace_back([this, i] { live(i, 4); });
  for (std::thread& host : hosts) host.join();
  stop = true;
  auditor.join();
  EXPECT_GT(engine_->metrics().kv_audits, 2u);
  EXPECT_EQ(engine_->metrics().kv_audit_faults, 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, Audited, testing::Values("llama-f32", "gemma3-f32"),
                         [](const auto& parameter) {
                           const std::string name = parameter.param;
                           return name.substr(0, name.find('-'));
                         });

// Of guesses that were wrong, too: they go when the pass is over, not when the host has answered.
TEST(AuditedHost, ASlowHostMakesNobodyHoldPagesForNothing) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny("llama-f32").path);
  for (int32_t salt = 0; salt < 6; ++salt) {
    std::vector<int32_t> prompt = prompt_of(30, salt);  // what repeats is guessed at
    prompt.insert(prompt.end(), prompt.begin(), prompt.end());
    RequestSpec spec = ids_request(std::move(prompt), 24);
    spec.drafts_max = 32;
    const auto request = must(engine->generate(session, spec, [&](const Event&) {
      const kv::AuditReport report = engine->audit_kv();
      EXPECT_EQ(report.faults(), 0) << report.text();
      return Verdict::go_on;
    }));
    EXPECT_GT(request->result().counters.draft_tokens, 0);
  }
}

// ---- faults of paged caches that kv-and-quantisation.md 6.3 documents, in whole engines ----

constexpr int64_t kSlotBytes = 1024;  // of gemma3-f32: f16, one kv head of 16
constexpr int64_t kWindow = 8;        // of three of its four layers

// Rows "Hybrid layers allocated alike" and "SWA: allocate, then free one step later; whole prompt
// allocated at once": a budget of the full layer's pages and of the window's bound is enough.
TEST(DocumentedFaults, APromptNeedsOfWindowedLayersTheirBoundAlone) {
  constexpr int64_t kPrompt = 200, kOutput = 20, kChunk = 32;
  const int64_t full_pages = (kPrompt + kOutput + 15) / 16;
  const int64_t window_pages = (kWindow + 15) / 16 + kChunk / 16 + 1;
  EngineOptions options;
  options.drive = Drive::host;
  options.kv_budget_bytes = (full_pages + 3 * window_pages) * kSlotBytes;
  options.kv_cached_bytes = kNothingCached;
  const Closing engine{new_engine(options)};
  SessionOptions session_options;
  session_options.prefill_chunk_tokens = kChunk;
  const auto session = new_session(*engine.engine, tiny("gemma3-f32").path, session_options);
  const auto request =
      must(engine->generate(session, ids_request(prompt_of(kPrompt, 0), kOutput), nullptr));
  ASSERT_TRUE(request->result().status.ok()) << request->result().status.message();
  const int64_t computed = kPrompt + kOutput - 1;
  EXPECT_EQ(session->kv().tokens, computed);
  // The full layer's pages, and of the others those of positions [computed - 7, computed).
  const int64_t seen = (computed + 15) / 16 - (computed - kWindow + 1) / 16;
  EXPECT_EQ(session->kv().use.bytes, ((computed + 15) / 16 + 3 * seen) * kSlotBytes);
}

// Row "Abort / remote holders never released": a request that is cancelled while it waits, in the
// middle of its prompt, between tokens, and a session whose snapshot is written while it goes.
TEST(DocumentedFaults, WhoeverIsCancelledLeavesNothingBehind) {
  EngineOptions options;
  options.drive = Drive::host;
  options.kv_cached_bytes = kNothingCached;
  const Closing engine{new_engine(options)};
  const auto model = must(engine->load(model::PathSource{tiny("gemma3-f32").path}, {}));
  SessionOptions session_options;
  session_options.prefill_chunk_tokens = 16;
  for (int steps = 0; steps < 12; ++steps) {
    auto session = must(engine->create_session(model, session_options));
    const auto request = must(engine->submit(session, ids_request(prompt_of(100, 0), 50)));
    for (int i = 0; i < steps; ++i) must(engine->step());
    request->cancel();
    EXPECT_EQ(engine->audit_kv().faults(), 0);
    while (must(engine->step())) {
    }
    EXPECT_EQ(engine->audit_kv().faults(), 0);
    ASSERT_TRUE(session
                    ->save([&](const void*, int64_t) {
                      session->close();
                      EXPECT_EQ(engine->audit_kv().faults(), 0) << "while it is written";
                      return true;
                    })
                    .ok());
    session.reset();
    EXPECT_EQ(engine->memory().kv_bytes, 0) << "after " << steps << " steps";
  }
}

// Row "Bookkeeping list leak": the engine's lists and memory after many requests are those after
// few.
TEST(DocumentedFaults, ManyRequestsLeaveTheBooksAsTheyWere) {
  EngineOptions options;
  options.drive = Drive::host;
  options.kv_cached_bytes = 64 * kSlotBytes;
  options.kv_events = 16;  // that nobody reads
  const Closing engine{new_engine(options)};
  const auto model = must(engine->load(model::PathSource{tiny("gemma3-f32").path}, {}));
  const auto round = [&](int32_t salt) {
    const auto session = must(engine->create_session(model, {}));
    must(engine->generate(session, ids_request(prompt_of(40, salt), 2), nullptr));
    must(engine->generate(must(session->fork()), ids_request(prompt_of(50, salt), 2), nullptr));
  };
  for (int32_t i = 0; i < 20; ++i) round(i);
  const int64_t used = engine->memory().used_bytes;
  const kv::AuditReport before = engine->audit_kv();
  for (int32_t i = 0; i < 200; ++i) round(i);
  EXPECT_EQ(engine->memory().used_bytes, used);
  const kv::AuditReport after = engine->audit_kv();
  EXPECT_EQ(after.references, 0);
  EXPECT_EQ(after.pages_total, before.pages_total);
  EXPECT_LE(after.pages_cached, 64);
  EXPECT_EQ(engine->metrics().requests_running + engine->metrics().requests_waiting, 0);
}

}  // namespace
}  // namespace optima::engine
