// Forked and truncated sessions: what they hold, what they cost, and that none disturbs another.
#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

const TinyModel& tiny() {
  static const TinyModel model = tiny_model("llama-f32");
  return model;
}

// Continues after what the session holds, with nothing added.
RequestSpec continuation(int64_t max_tokens) {
  RequestSpec spec = ids_request({}, max_tokens);
  spec.prompt_mode = PromptMode::append;
  return spec;
}

void fill(Engine& engine, const std::shared_ptr<Session>& session,
          const std::vector<int32_t>& prompt) {
  RequestSpec spec = ids_request(prompt, 0);
  spec.prompt_only = true;
  must(engine.generate(session, spec, nullptr));
}

class Forks : public testing::Test {
 protected:
  Forks() {
    SessionOptions options;
    options.path = ComputePath::reference;
    session_ = new_session(*engine_.engine, tiny().path, options);
    fill(*engine_.engine, session_, tiny().prompt);
  }

  std::vector<int32_t> answer(const std::shared_ptr<Session>& session, const RequestSpec& spec) {
    return output_ids(must(engine_->generate(session, spec, nullptr))->result());
  }

  const Closing engine_{new_engine()};
  std::shared_ptr<Session> session_;
};

TEST_F(Forks, ContinueAsTheOriginalWould) {
  const int64_t kv_before = engine_->memory().kv_bytes;
  const auto fork = must(session_->fork());
  EXPECT_EQ(fork->tokens(), session_->tokens());
  EXPECT_EQ(fork->context_tokens(), session_->context_tokens());
  EXPECT_EQ(engine_->memory().kv_bytes, kv_before) << "nothing is copied";

  const auto count = static_cast<int64_t>(tiny().continuation.size());
  const auto request = must(engine_->generate(fork, continuation(count), nullptr));
  EXPECT_EQ(output_ids(request->result()), tiny().continuation);
  EXPECT_EQ(request->result().counters.cached_tokens,
            static_cast<int64_t>(tiny().prompt.size()) - 1);
  EXPECT_EQ(session_->tokens(), tiny().prompt);
  EXPECT_EQ(answer(session_, continuation(count)), tiny().continuation);
}

TEST_F(Forks, OutliveAndDoNotDisturbEachOther) {
  auto other = must(session_->fork());
  const auto fork = must(other->fork());
  RequestSpec elsewhere = ids_request({3, 1, 4, 1, 5}, 20);
  elsewhere.prompt_mode = PromptMode::append;
  const std::vector<int32_t> strayed = answer(other, elsewhere);
  EXPECT_EQ(answer(must(session_->fork()), elsewhere), strayed);
  other->close();
  other.reset();
  session_->close();
  session_.reset();
  EXPECT_EQ(answer(fork, continuation(6)),
            std::vector<int32_t>(tiny().continuation.begin(), tiny().continuation.begin() + 6));
}

// Several samples of one prompt in one batch are those that each seed gives by itself.
TEST_F(Forks, SampleSeveralAnswersToOnePrompt) {
  constexpr uint64_t kSamples = 5;
  const auto sampled = [](RequestSpec spec, uint64_t seed) {
    spec.sampling.temperature = 1.0f;
    spec.sampling.seed = seed;
    return spec;
  };
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  for (uint64_t seed = 1; seed <= kSamples; ++seed) {
    sessions.push_back(must(session_->fork()));
    requests.push_back(must(engine_->submit(sessions.back(), sampled(continuation(12), seed))));
  }
  std::set<std::vector<int32_t>> different;
  for (uint64_t seed = 1; seed <= kSamples; ++seed) {
    const auto& request = requests[seed - 1];
    ASSERT_TRUE(request->wait(-1));
    ASSERT_TRUE(request->result().status.ok()) << request->result().status.message();
    EXPECT_EQ(output_ids(request->result()),
              answer(must(session_->fork()), sampled(continuation(12), seed)));
    SessionOptions options;
    options.path = ComputePath::reference;
    const auto alone = must(engine_->create_session(session_->model(), options));
    EXPECT_EQ(output_ids(request->result()),
              answer(alone, sampled(ids_request(tiny().prompt, 12), seed)));
    different.insert(output_ids(request->result()));
  }
  EXPECT_GT(different.size(), 1u);
}

TEST_F(Forks, TruncateCostsTheChangedTailAlone) {
  const auto length = static_cast<int64_t>(tiny().prompt.size());
  ASSERT_TRUE(session_->truncate(length - 3).ok());
  EXPECT_EQ(static_cast<int64_t>(session_->tokens().size()), length - 3);
  RequestSpec tail = ids_request({tiny().prompt.end() - 3, tiny().prompt.end()}, 6);
  tail.prompt_mode = PromptMode::append;
  const auto request = must(engine_->generate(session_, tail, nullptr));
  EXPECT_EQ(request->result().counters.cached_tokens, length - 3);
  EXPECT_EQ(output_ids(request->result()),
            std::vector<int32_t>(tiny().continuation.begin(), tiny().continuation.begin() + 6));
  ASSERT_TRUE(session_->truncate(1 << 30).ok());
  EXPECT_EQ(static_cast<int64_t>(session_->tokens().size()), length + 6);
  EXPECT_EQ(session_->truncate(-1).code(), Code::invalid_argument);
  ASSERT_TRUE(session_->truncate(0).ok());
  EXPECT_EQ(engine_->memory().kv_bytes, 0);
}

// Fork, cut and continue in a model whose layers forget: windows of 8 positions and of all.
TEST(ForksOfWindows, GiveTheSameAnswer) {
  const TinyModel gemma = tiny_model("gemma3-f32");
  const Closing engine{new_engine()};
  SessionOptions options;
  options.path = ComputePath::reference;
  const auto session = new_session(*engine.engine, gemma.path, options);
  fill(*engine.engine, session, gemma.prompt);
  const auto fork = must(session->fork());
  const auto stray = must(session->fork());
  must(engine->generate(stray, ids_request({5, 6, 7}, 8), nullptr));
  const auto count = static_cast<int64_t>(gemma.continuation.size());
  for (const auto& each : {fork, session})
    EXPECT_EQ(output_ids(must(engine->generate(each, continuation(count), nullptr))->result()),
              gemma.continuation);
}

TEST_F(Forks, BusyAndClosedSessionsRefuse) {
  EngineOptions host_driven;
  host_driven.drive = Drive::host;
  const Closing engine{new_engine(host_driven)};
  const auto session = new_session(*engine.engine, tiny().path);
  const auto request = must(engine->submit(session, ids_request(tiny().prompt, 4)));
  EXPECT_EQ(session->fork().status().code(), Code::busy);
  EXPECT_EQ(session->truncate(1).code(), Code::busy);
  while (must(engine->step())) {
  }
  const auto fork = must(session->fork());
  session->close();
  EXPECT_EQ(session->fork().status().code(), Code::invalid_state);
  fork->model()->close();
  EXPECT_EQ(fork->fork().status().code(), Code::invalid_state);
}

}  // namespace
}  // namespace optima::engine
