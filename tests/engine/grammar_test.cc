// Structured output through the engine: what comes out is a text of the grammar, whatever the
// random weights of the model prefer; and the host's own hook.
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

constexpr int kSeeds = 20;

struct Ended {
  std::string text;
  FinishReason finish;
};

class Grammars : public testing::Test {
 protected:
  Ended generate(sampling::GrammarKind kind, const std::string& text, uint64_t seed,
                 int64_t max_tokens = 200) {
    RequestSpec spec = ids_request(tiny_.prompt, max_tokens);
    spec.ignore_eos = false;
    spec.sampling.temperature = 1;
    spec.sampling.seed = seed;
    spec.grammar = GrammarSpec{kind, text};
    const auto request = must(engine_->generate(session_, spec, nullptr));
    EXPECT_TRUE(request->result().status.ok()) << request->result().status.message();
    return {request->result().bytes, request->result().finish};
  }

  TinyModel tiny_ = tiny_model("llama-f32");
  Closing engine_{new_engine()};
  std::shared_ptr<Session> session_ = new_session(*engine_.engine, tiny_.path);
};

TEST_F(Grammars, ARegularExpressionMatchesTheWholeOutput) {
  const std::string pattern = "[A-C]{2}-(x|yy)[0-9]{1,3}";
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ended ended = generate(sampling::GrammarKind::regex, pattern, seed);
    EXPECT_TRUE(std::regex_match(ended.text, std::regex(pattern))) << ended.text;
    EXPECT_EQ(ended.finish, FinishReason::stop);
  }
}

TEST_F(Grammars, ASchemaIsKept) {
  const std::string schema = R"({"type":"object","properties":{
      "sort":{"enum":["cat","dog"]},"age":{"type":"integer","minimum":3,"maximum":17},
      "tags":{"type":"array","items":{"type":"boolean"},"maxItems":2}},
      "required":["sort","age"],"additionalProperties":false})";
  int ended_by_itself = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ended ended = generate(sampling::GrammarKind::json_schema, schema, seed, 170);
    if (ended.finish != FinishReason::stop) continue;
    ++ended_by_itself;
    const auto value = nlohmann::json::parse(ended.text);
    EXPECT_TRUE(value["sort"] == "cat" || value["sort"] == "dog") << ended.text;
    EXPECT_GE(value["age"].get<int>(), 3);
    EXPECT_LE(value["age"].get<int>(), 17);
    if (value.contains("tags")) {
      EXPECT_LE(value["tags"].size(), 2u);
    }
  }
  EXPECT_GE(ended_by_itself, 1);
}

TEST_F(Grammars, GreedyAndGbnf) {
  RequestSpec spec = ids_request(tiny_.prompt, 50);
  spec.grammar = GrammarSpec{sampling::GrammarKind::gbnf, "root ::= \"yes\" | \"no\""};
  const auto request = must(engine_->generate(session_, spec, nullptr));
  const std::string& text = request->result().text;
  EXPECT_TRUE(text == "yes" || text == "no") << text;
  EXPECT_EQ(request->result().finish, FinishReason::stop);
}

TEST_F(Grammars, WhatCannotBeHonouredIsRefusedAndLosesNothing) {
  RequestSpec spec = ids_request(tiny_.prompt, 8);
  spec.grammar = GrammarSpec{sampling::GrammarKind::json_schema, R"({"if":{},"then":false})"};
  const auto refused = engine_->generate(session_, spec, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::unsupported);
  EXPECT_NE(refused.status().message().find("if"), std::string::npos);
  spec.grammar = GrammarSpec{sampling::GrammarKind::gbnf, "root ::= ("};
  EXPECT_EQ(engine_->generate(session_, spec, nullptr).status().code(), Code::invalid_argument);
  spec.grammar.reset();
  EXPECT_EQ(must(engine_->generate(session_, spec, nullptr))->result().tokens.size(), 8u);
}

TEST_F(Grammars, TheHookDecides) {
  RequestSpec spec = ids_request(tiny_.prompt, 6);
  std::vector<size_t> lengths;
  spec.logits_hook = [&](std::span<float> logits, std::span<const int32_t> tokens) -> Status {
    lengths.push_back(tokens.size());
    std::fill(logits.begin(), logits.end(), 0.0f);
    logits[7 + lengths.size()] = 1.0f;
    return {};
  };
  const auto request = must(engine_->generate(session_, spec, nullptr));
  EXPECT_EQ(output_ids(request->result()), (std::vector<int32_t>{8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(lengths.front(), tiny_.prompt.size());
  EXPECT_EQ(lengths.back(), tiny_.prompt.size() + 5);

  spec.logits_hook = [](std::span<float>, std::span<const int32_t>) -> Status {
    return Status(Code::invalid_state, "no more");
  };
  const auto failed = must(engine_->generate(session_, spec, nullptr));
  EXPECT_EQ(failed->result().status.code(), Code::invalid_state);
  EXPECT_EQ(failed->result().finish, FinishReason::error);
}

// In one batch: what fails in one request is no matter of the others.
TEST(GrammarBatch, AFailureStaysWithItsRequest) {
  const TinyModel tiny = tiny_model("llama-f32");
  EngineOptions host_driven;
  host_driven.drive = Drive::host;
  const Closing engine{new_engine(host_driven)};
  const auto model = must(engine->load(model::PathSource{tiny.path}, {}));
  const auto steps = static_cast<int64_t>(tiny.continuation.size());
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 3; ++i) {
    sessions.push_back(must(engine->create_session(model, {})));
    RequestSpec spec = ids_request(tiny.prompt, steps);
    if (i == 1) {
      spec.logits_hook = [calls = 0](std::span<float>, std::span<const int32_t>) mutable -> Status {
        return ++calls < 3 ? Status() : Status(Code::invalid_state, "the third is too many");
      };
    }
    requests.push_back(must(engine->submit(sessions.back(), std::move(spec))));
  }
  while (must(engine->step())) {
  }
  for (const size_t other : {size_t{0}, size_t{2}}) {
    EXPECT_TRUE(requests[other]->result().status.ok())
        << requests[other]->result().status.message();
    EXPECT_EQ(output_ids(requests[other]->result()), tiny.continuation);
  }
  EXPECT_EQ(requests[1]->result().status.code(), Code::invalid_state);
  EXPECT_EQ(requests[1]->result().finish, FinishReason::error);
  EXPECT_EQ(requests[1]->result().tokens.size(), 2u);
  // Its session is as usable as before.
  const auto again = must(engine->generate(sessions[1], ids_request(tiny.prompt, steps), nullptr));
  EXPECT_EQ(output_ids(again->result()), tiny.continuation);
}

}  // namespace
}  // namespace optima::engine
