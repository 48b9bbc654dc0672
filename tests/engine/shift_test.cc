// A context that shifts: what comes out is what comes out of a session that is given the tokens
// that stay, again and again.
#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

constexpr int64_t kContext = 48;

SessionOptions small_context() {
  SessionOptions options;
  options.path = ComputePath::reference;
  options.context_tokens = kContext;
  return options;
}

EngineOptions one_thread() {
  EngineOptions options;
  options.threads = 1;
  return options;
}

std::vector<int32_t> prompt_of(int64_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(3 + i * 7 % 90));
  return ids;
}

RequestSpec shifting(std::vector<int32_t> ids, int64_t max_tokens, int64_t keep = 0) {
  RequestSpec spec = ids_request(std::move(ids), max_tokens);
  spec.context_shift = true;
  spec.shift_keep_tokens = keep;
  return spec;
}

class Shifts : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Session> session() {
    return new_session(*engine_.engine, tiny_path(GetParam()), small_context());
  }
  RequestResult run(const std::shared_ptr<Session>& session, const RequestSpec& spec) {
    return must(engine_->generate(session, spec, nullptr))->result();
  }

  // The same by sessions that do not shift, each given what is left.
  std::vector<int32_t> naive(std::vector<int32_t> tokens, int64_t count, int64_t keep) {
    std::vector<int32_t> out;
    while (static_cast<int64_t>(out.size()) < count) {
      const auto room = kContext - static_cast<int64_t>(tokens.size());
      const auto ids = output_ids(
          run(session(),
              ids_request(tokens, std::min(room, count - static_cast<int64_t>(out.size())))));
      out.insert(out.end(), ids.begin(), ids.end());
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      if (static_cast<int64_t>(tokens.size()) < kContext) break;
      const auto drop = (static_cast<int64_t>(tokens.size()) - keep) / 2;
      tokens.erase(tokens.begin() + keep, tokens.begin() + keep + drop);
    }
    return out;
  }

  const Closing engine_{new_engine(one_thread())};
};

TEST_P(Shifts, GoOnWithWhatStays) {
  for (const int64_t keep : {int64_t{0}, int64_t{1}, int64_t{17}})
    for (const int64_t drafts : {0, 4}) {
      RequestSpec spec = shifting(prompt_of(20), 150, keep);
      spec.drafts_max = drafts;
      const auto own = session();
      const RequestResult result = run(own, spec);
      EXPECT_EQ(result.finish, FinishReason::length);
      EXPECT_EQ(output_ids(result), naive(prompt_of(20), 150, keep == 0 ? 4 : keep));
      EXPECT_EQ(result.prompt_ids, prompt_of(20));
      EXPECT_EQ(result.counters.shifted_tokens + static_cast<int64_t>(own->tokens().size()), 170);
      const std::vector<int32_t> left = own->tokens();
      for (size_t i = 0; i < static_cast<size_t>(keep); ++i) EXPECT_EQ(left[i], prompt_of(20)[i]);
    }
}

TEST_P(Shifts, OnlyWhenAsked) {
  RequestSpec spec = ids_request(prompt_of(20), 150);
  const RequestResult result = run(session(), spec);
  EXPECT_EQ(result.finish, FinishReason::context);
  EXPECT_EQ(result.counters.shifted_tokens, 0);
  EXPECT_EQ(result.tokens.size(), 28u);
}

// An appended prompt makes room for itself, but is not cut.
TEST_P(Shifts, APromptThatIsAppendedMakesRoom) {
  const auto own = session();
  run(own, ids_request(prompt_of(30), 10));
  std::vector<int32_t> kept = own->tokens();
  RequestSpec more = shifting(prompt_of(12), 5);
  more.prompt_mode = PromptMode::append;
  const RequestResult result = run(own, more);
  EXPECT_EQ(result.counters.shifted_tokens, 18) << "half of 36 after the first four";
  EXPECT_EQ(result.counters.prompt_tokens, 34);
  kept.erase(kept.begin() + 4, kept.begin() + 22);
  for (const int32_t id : prompt_of(12)) kept.push_back(id);
  EXPECT_EQ(output_ids(result), output_ids(run(session(), ids_request(kept, 5))));
  more.ids = prompt_of(kContext - 3);
  const Status refused = engine_->generate(own, more, nullptr).status();
  EXPECT_EQ(refused.code(), Code::context_full) << "that does not fit beside what is kept";
  EXPECT_EQ(run(session(), shifting(prompt_of(kContext), 9)).finish, FinishReason::length)
      << "one that fills the context is answered";
}

TEST_P(Shifts, ARollBackBringsAllBack) {
  const auto own = session();
  run(own, ids_request(prompt_of(30), 10));
  const std::vector<int32_t> before = own->tokens();
  RequestSpec more = shifting({5}, 60);
  more.prompt_mode = PromptMode::append;
  int64_t tokens = 0;
  must(engine_->generate(own, more, [&](const Event& event) {
    return event.type == EventType::token && ++tokens == 40 ? Verdict::cancel : Verdict::go_on;
  }));
  EXPECT_EQ(own->tokens(), before);
  std::vector<int32_t> whole = before;
  whole.push_back(5);
  RequestSpec plain = more;
  plain.context_shift = false;
  EXPECT_EQ(output_ids(run(own, plain)), output_ids(run(session(), ids_request(whole, 60))));
}

INSTANTIATE_TEST_SUITE_P(Models, Shifts, testing::Values("llama-f32.gguf", "gemma3-f32.gguf"),
                         [](const auto& parameter) {
                           const std::string name = parameter.param;
                           return name.substr(0, name.find('-'));
                         });

TEST(Shift, WhatMakesNoSenseIsRefused) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny_path("llama-f32.gguf"), small_context());
  const auto refused = [&](const RequestSpec& spec) {
    return engine->generate(session, spec, nullptr).status();
  };
  EXPECT_EQ(refused(shifting({1}, 1, -1)).code(), Code::invalid_argument);
  EXPECT_EQ(refused(shifting({1}, 1, kContext - 1)).numbers().limit, kContext - 2);
  RequestSpec spec = shifting({1}, 1);
  std::vector<float> out(297);
  spec.logits_positions = {0};
  spec.logits_out = out.data();
  spec.logits_capacity = 297;
  EXPECT_EQ(refused(spec).code(), Code::invalid_argument);
  spec = ids_request({1}, 1);
  spec.shift_keep_tokens = 3;
  EXPECT_EQ(refused(spec).code(), Code::invalid_argument);
  SessionOptions options = small_context();
  options.output = SessionOutput::embedding;
  const auto embeds = new_session(*engine.engine, tiny_path("llama-f32.gguf"), options);
  spec = shifting({1}, 0);
  spec.ignore_eos = false;
  spec.embedding.emplace();
  EXPECT_EQ(engine->generate(embeds, spec, nullptr).status().code(), Code::invalid_argument);
}

// In the midst of others, with too little memory for all.
TEST(Shift, WhenPreemptedToo) {
  EngineOptions options = one_thread();
  options.drive = Drive::host;
  options.kv_budget_bytes = 7 * 4096;
  const Closing engine{new_engine(options)};
  const auto model = must(engine->load(model::PathSource{tiny_path("llama-f32.gguf")}, {}));
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 3; ++i) {
    sessions.push_back(must(engine->create_session(model, small_context())));
    requests.push_back(must(engine->submit(sessions.back(), shifting(prompt_of(10 + i), 100))));
  }
  while (must(engine->step())) {
  }
  EXPECT_GT(engine->metrics().preemptions, 0u);
  for (int i = 0; i < 3; ++i) {
    const auto own = must(engine->create_session(model, small_context()));
    const auto wanted = must(engine->generate(own, shifting(prompt_of(10 + i), 100), nullptr));
    EXPECT_EQ(output_ids(requests[static_cast<size_t>(i)]->result()), output_ids(wanted->result()));
  }
}

}  // namespace
}  // namespace optima::engine
