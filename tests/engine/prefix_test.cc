// What sessions share: prompts that begin alike are computed once, whoever asks first and however
// many at a time, and the answers are those of sessions that share nothing.
#include <thread>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

const TinyModel& tiny() {
  static const TinyModel model = tiny_model("llama-f32");
  return model;
}

SessionOptions reference() {
  SessionOptions options;
  options.path = ComputePath::reference;
  return options;
}

std::vector<int32_t> prompt_of(int64_t shared, int32_t own) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < shared; ++i) ids.push_back(static_cast<int32_t>(5 + i * 7 % 90));
  for (int32_t i = 0; i < 3; ++i) ids.push_back(own + i);
  return ids;
}

class SharedPrefixes : public testing::Test {
 protected:
  explicit SharedPrefixes(EngineOptions options = {})
      : engine_{new_engine(std::move(options))},
        model_(must(engine_->load(model::PathSource{tiny().path}, {}))) {}

  std::shared_ptr<Session> session() { return must(engine_->create_session(model_, reference())); }
  std::shared_ptr<Request> run(const std::vector<int32_t>& ids, int64_t tokens = 6) {
    return must(engine_->generate(session(), ids_request(ids, tokens), nullptr));
  }

  // By an engine where nothing is shared.
  static std::vector<int32_t> alone(const std::vector<int32_t>& ids, int64_t tokens = 6) {
    const Closing engine{new_engine()};
    const auto own = new_session(*engine.engine, tiny().path, reference());
    return output_ids(must(engine->generate(own, ids_request(ids, tokens), nullptr))->result());
  }

  const Closing engine_;
  std::shared_ptr<Model> model_;
};

TEST_F(SharedPrefixes, OutliveTheirSession) {
  const std::vector<int32_t> first = prompt_of(50, 20), second = prompt_of(50, 30);
  EXPECT_EQ(run(first)->result().counters.cached_tokens, 0);
  // The library's thread lets go of the session.
  for (int i = 0; i < 1000 && engine_->memory().kv_bytes > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(engine_->memory().kv_bytes, 0);
  EXPECT_GT(engine_->memory().kv_cached_bytes, 0);
  const auto request = run(second);
  EXPECT_EQ(request->result().counters.cached_tokens, 48);
  EXPECT_EQ(output_ids(request->result()), alone(second));
  EXPECT_EQ(run(second)->result().counters.cached_tokens, 48) << "whole pages alone";
}

// The answer and the prompt after it: what was generated is shared as well.
TEST_F(SharedPrefixes, AnswersAreSharedToo) {
  const auto asked = run(prompt_of(20, 20), 40);
  std::vector<int32_t> next = prompt_of(20, 20);
  for (const int32_t id : output_ids(asked->result())) next.push_back(id);
  next.push_back(9);
  const auto request = run(next);
  EXPECT_EQ(request->result().counters.cached_tokens, 48) << "of 62 computed";
  EXPECT_EQ(output_ids(request->result()), alone(next));
}

TEST_F(SharedPrefixes, WhatIsScoredIsComputed) {
  run(prompt_of(50, 20));
  RequestSpec spec = ids_request(prompt_of(50, 20), 1);
  spec.prompt_logprobs_from = 20;
  const auto scored = must(engine_->generate(session(), spec, nullptr));
  EXPECT_EQ(scored->result().counters.cached_tokens, 16);
  EXPECT_EQ(scored->result().prompt_logprobs.size(), 33u);
}

TEST_F(SharedPrefixes, PathsAndEnginesShareNothing) {
  run(prompt_of(50, 20));
  const auto fast = must(engine_->create_session(model_, {}));
  const auto request = must(engine_->generate(fast, ids_request(prompt_of(50, 20), 1), nullptr));
  EXPECT_EQ(request->result().counters.cached_tokens, 0);
}

class HostDriven : public SharedPrefixes {
 protected:
  static EngineOptions host() {
    EngineOptions options;
    options.drive = Drive::host;
    return options;
  }
  HostDriven() : SharedPrefixes(host()) {}
};

// All at once: the first computes the prefix, the others wait for it and compute their tails.
TEST_F(HostDriven, SimultaneousPromptsComputeTheirPrefixOnce) {
  constexpr int32_t kSessions = 16;
  constexpr int64_t kShared = 96;
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  for (int32_t i = 0; i < kSessions; ++i) {
    SessionOptions options = reference();
    options.prefill_chunk_tokens = 40;
    sessions.push_back(must(engine_->create_session(model_, options)));
    requests.push_back(
        must(engine_->submit(sessions.back(), ids_request(prompt_of(kShared, 10 + 4 * i), 5))));
  }
  while (must(engine_->step())) {
  }
  int64_t computed = 0;
  for (int32_t i = 0; i < kSessions; ++i) {
    const RequestResult& result = requests[static_cast<size_t>(i)]->result();
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    computed += result.counters.prompt_tokens - result.counters.cached_tokens;
    EXPECT_EQ(output_ids(result), alone(prompt_of(kShared, 10 + 4 * i), 5)) << i;
  }
  EXPECT_EQ(computed, kShared + 3 * kSessions);
  const Metrics metrics = engine_->metrics();
  EXPECT_EQ(metrics.prompt_tokens, static_cast<uint64_t>(kSessions * (kShared + 3)));
  EXPECT_EQ(metrics.prompt_tokens_cached, static_cast<uint64_t>((kSessions - 1) * kShared));
  EXPECT_EQ(metrics.output_tokens, 5u * kSessions);
  EXPECT_EQ(metrics.finished[static_cast<size_t>(FinishReason::length)], 1u * kSessions);
}

// The one that is waited for goes away.
TEST_F(HostDriven, NobodyWaitsForACancelledRequest) {
  SessionOptions options = reference();
  options.prefill_chunk_tokens = 16;
  const auto a = must(engine_->create_session(model_, options));
  const auto b = must(engine_->create_session(model_, options));
  const auto first = must(engine_->submit(a, ids_request(prompt_of(90, 20), 3)));
  const auto second = must(engine_->submit(b, ids_request(prompt_of(90, 30), 3)));
  EXPECT_TRUE(must(engine_->step()));
  EXPECT_TRUE(must(engine_->step()));
  first->cancel();
  while (must(engine_->step())) {
  }
  EXPECT_EQ(second->result().counters.cached_tokens, 32) << "what was done is used";
  EXPECT_EQ(output_ids(second->result()), alone(prompt_of(90, 30), 3));
}

TEST_F(HostDriven, ABudgetIsKeptAndNamed) {
  EngineOptions options = host();
  options.kv_budget_bytes = engine_->memory().kv_budget_bytes;
  EXPECT_GT(options.kv_budget_bytes, 0) << "of the memory that is free";
  run(prompt_of(50, 20));
  const int64_t one_prompt = engine_->memory().kv_cached_bytes;
  options.kv_budget_bytes = 2 * one_prompt;
  options.kv_cached_bytes = one_prompt;
  const Closing engine{new_engine(options)};
  const auto model = must(engine->load(model::PathSource{tiny().path}, {}));
  for (int32_t i = 0; i < 20; ++i) {
    const auto own = must(engine->create_session(model, reference()));
    std::vector<int32_t> prompt = prompt_of(50, 20);
    prompt[0] = i;
    must(engine->generate(own, ids_request(prompt, 6), nullptr));
    EXPECT_LE(engine->memory().kv_cached_bytes, one_prompt);
  }
  const auto own = must(engine->create_session(model, reference()));
  const Status refused =
      engine->generate(own, ids_request(prompt_of(150, 20), 6), nullptr).status();
  EXPECT_EQ(refused.code(), Code::oom_host);
  EXPECT_EQ(refused.numbers().wanted, 10);
  EXPECT_EQ(refused.numbers().available, 6);
  EXPECT_EQ(refused.numbers().limit, 6);
}

// ---- save and restore ----

kv::SnapshotWrite into(std::string& out) {
  return [&out](const void* from, int64_t bytes) {
    out.append(static_cast<const char*>(from), static_cast<size_t>(bytes));
    return true;
  };
}
kv::SnapshotRead from(std::string_view text) {
  return [text](void* into, int64_t bytes) mutable {
    if (static_cast<size_t>(bytes) > text.size()) return false;
    std::memcpy(into, text.data(), static_cast<size_t>(bytes));
    text.remove_prefix(static_cast<size_t>(bytes));
    return true;
  };
}

class SavedSessions : public testing::TestWithParam<const char*> {};

TEST_P(SavedSessions, GoOnAsIfNothingHadHappened) {
  const TinyModel model = tiny_model(GetParam());
  for (const ComputePath path : {ComputePath::reference, ComputePath::fast}) {
    SessionOptions options;
    options.path = path;
    std::string saved;
    std::vector<int32_t> uninterrupted;
    {
      const Closing engine{new_engine()};
      const auto session = new_session(*engine.engine, model.path, options);
      must(engine->generate(session, ids_request(model.prompt, 5), nullptr));
      ASSERT_TRUE(session->save(into(saved)).ok());
      EXPECT_EQ(static_cast<int64_t>(saved.size()), session->save_bytes());
      RequestSpec more = ids_request({}, 12);
      more.prompt_mode = PromptMode::append;
      uninterrupted = output_ids(must(engine->generate(session, more, nullptr))->result());
    }
    const Closing engine{new_engine()};
    const auto loaded = must(engine->load(model::PathSource{model.path}, {}));
    const auto session = must(engine->restore(loaded, options, from(saved)));
    RequestSpec more = ids_request({}, 12);
    more.prompt_mode = PromptMode::append;
    const auto request = must(engine->generate(session, more, nullptr));
    EXPECT_EQ(output_ids(request->result()), uninterrupted);
    EXPECT_EQ(request->result().counters.cached_tokens,
              static_cast<int64_t>(model.prompt.size()) + 4);
    // Another path, another model, a smaller context.
    SessionOptions other = options;
    other.path = path == ComputePath::fast ? ComputePath::reference : ComputePath::fast;
    EXPECT_EQ(engine->restore(loaded, other, from(saved)).status().code(), Code::version);
    const std::string halves = model.path.substr(0, model.path.size() - 8) + "f16.gguf";
    const auto rounded = must(engine->load(model::PathSource{halves}, {}));
    EXPECT_EQ(engine->restore(rounded, options, from(saved)).status().code(), Code::version);
    SessionOptions small = options;
    small.context_tokens = 3;
    EXPECT_EQ(engine->restore(loaded, small, from(saved)).status().code(), Code::context_full);
    EXPECT_EQ(
        engine->restore(loaded, options, from(saved.substr(0, saved.size() / 2))).status().code(),
        Code::io);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SavedSessions, testing::Values("llama-f32", "gemma3-f32"),
                         [](const auto& parameter) {
                           const std::string name = parameter.param;
                           return name.substr(0, name.find('-'));
                         });

}  // namespace
}  // namespace optima::engine
