// Guessed tokens change how many passes an answer takes and nothing of what it says: greedy and
// sampled, with a grammar, with penalties, with a host that answers each event.
#include "engine/drafts.h"
#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

using Ids = std::vector<int32_t>;

TEST(LookupDrafts, TakeWhatFollowedTheLongestMatch) {
  EXPECT_EQ(lookup_drafts(Ids{1, 2, 3, 9, 1, 2, 3}, 2), (Ids{9, 1}));
  EXPECT_EQ(lookup_drafts(Ids{1, 2, 3, 9, 1, 2, 3}, 9), (Ids{9, 1, 2, 3}));
  EXPECT_EQ(lookup_drafts(Ids{2, 3, 7, 1, 2, 3, 8, 3, 6, 1, 2, 3}, 1), Ids{8});
  EXPECT_EQ(lookup_drafts(Ids{3, 4, 3, 5, 3}, 1), Ids{5}) << "of equal ones the latest";
  EXPECT_EQ(lookup_drafts(Ids{7, 7, 7}, 3), Ids{7});
  EXPECT_TRUE(lookup_drafts(Ids{1, 2, 3}, 4).empty());
  EXPECT_TRUE(lookup_drafts(Ids{1}, 4).empty());
  EXPECT_TRUE(lookup_drafts({}, 4).empty());
}

class Speculation : public testing::Test {
 protected:
  Speculation() {
    for (int i = 0; i < 12; ++i) prompt_.insert(prompt_.end(), {5, 9, 14, 9, 21});
  }

  std::shared_ptr<Session> session() {
    SessionOptions options;
    options.path = ComputePath::reference;
    return must(engine_->create_session(model_, options));
  }
  RequestSpec ask(int64_t tokens) const { return ids_request(prompt_, tokens); }
  RequestResult answer(RequestSpec spec, int64_t drafts) {
    spec.drafts_max = drafts;
    return must(engine_->generate(session(), std::move(spec), nullptr))->result();
  }
  // The same with and without guesses; returns those that were right.
  int64_t compare(const RequestSpec& spec, int64_t drafts = 6) {
    const RequestResult plain = answer(spec, 0), guessed = answer(spec, drafts);
    EXPECT_TRUE(guessed.status.ok()) << guessed.status.message();
    EXPECT_EQ(output_ids(plain), output_ids(guessed));
    EXPECT_EQ(plain.text, guessed.text);
    EXPECT_EQ(plain.finish, guessed.finish);
    EXPECT_EQ(plain.counters.draft_tokens, 0);
    EXPECT_GE(guessed.counters.draft_tokens, guessed.counters.draft_tokens_accepted);
    for (size_t i = 0; i < std::min(plain.tokens.size(), guessed.tokens.size()); ++i) {
      if (!std::isnan(plain.tokens[i].logprob)) {
        EXPECT_NEAR(plain.tokens[i].logprob, guessed.tokens[i].logprob, 1e-4);
      }
    }
    return guessed.counters.draft_tokens_accepted;
  }

  const Closing engine_{new_engine()};
  std::shared_ptr<Model> model_ =
      must(engine_->load(model::PathSource{tiny_path("llama-f32.gguf")}, {}));
  Ids prompt_;
};

TEST_F(Speculation, ChangesNoGreedyAnswer) {
  int64_t accepted = 0;
  for (const int64_t drafts : {1, 2, 6, 32}) accepted += compare(ask(60), drafts);
  EXPECT_GT(accepted, 0);
}

TEST_F(Speculation, ChangesNoSample) {
  int64_t accepted = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RequestSpec spec = ask(40);
    spec.sampling.temperature = 0.7f;
    spec.sampling.seed = seed;
    accepted += compare(spec);
    spec.sampling.repetition_penalty = 1.1f;
    spec.sampling.dry_multiplier = 0.5f;
    compare(spec);
  }
  EXPECT_GT(accepted, 0);
}

TEST_F(Speculation, KeepsToGrammars) {
  RequestSpec spec = ask(80);
  spec.grammar = GrammarSpec{sampling::GrammarKind::regex, "(ab|cd)(ab|cd)(ab|cd)(ab|cd)(ab|cd)*"};
  spec.sampling.temperature = 0.8f;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    spec.sampling.seed = seed;
    compare(spec);
  }
}

// A guess may hold the end token and more: nothing is chosen behind the end, where a grammar has no
// state to choose from.
TEST_F(Speculation, GuessesNothingBehindTheEnd) {
  const auto tokenizer = must(model_->tokenizer());
  const Ids word =
      must(tokenizer->encode("abcd", tokenizer::Special::omit, tokenizer::SpecialText::literal));
  Ids prompt;
  for (int i = 0; i < 4; ++i) {
    prompt.insert(prompt.end(), word.begin(), word.end());
    prompt.insert(prompt.end(), {tokenizer->eos(), 7});
  }
  for (const char* pattern : {"(abcd)+", "abcd", "[a-d]*"}) {
    RequestSpec spec = ids_request(prompt, 40);
    spec.ignore_eos = false;
    spec.grammar = GrammarSpec{sampling::GrammarKind::regex, pattern};
    // Only what the guesses hold can be chosen, in their order.
    Ids order = word;
    order.push_back(tokenizer->eos());
    spec.logits_hook = [order](std::span<float> logits, std::span<const int32_t> tokens) {
      const auto last = std::find(order.begin(), order.end(), tokens.back());
      const bool again = last == order.end() || last + 1 == order.end();
      for (float& logit : logits) logit -= 100;
      logits[static_cast<size_t>(again ? order.front() : *(last + 1))] += 300;
      return Status();
    };
    compare(spec);
  }
}

TEST_F(Speculation, EndsWhereTheAnswerEnds) {
  for (int64_t tokens = 1; tokens <= 12; ++tokens) compare(ask(tokens));
  const RequestResult plain = answer(ask(40), 0);
  RequestSpec spec = ask(40);
  spec.stop_tokens = {plain.tokens[17].id};
  compare(spec);
  SessionOptions small;
  small.path = ComputePath::reference;
  small.context_tokens = static_cast<int64_t>(prompt_.size()) + 9;
  spec = ask(0);
  spec.drafts_max = 8;
  const auto session = must(engine_->create_session(model_, small));
  const auto full = must(engine_->generate(session, spec, nullptr));
  EXPECT_EQ(full->result().finish, FinishReason::context);
  EXPECT_EQ(full->result().tokens.size(), 9u);
}

// The host stops after any token: the session holds what it has seen, and goes on from there.
TEST_F(Speculation, AHostMayStopAtAnyToken) {
  const Ids all = output_ids(answer(ask(24), 0));
  for (size_t stop = 1; stop <= 20; ++stop) {
    const auto own = session();
    RequestSpec spec = ask(24);
    spec.drafts_max = 6;
    size_t seen = 0;
    const auto request = must(engine_->generate(own, spec, [&](const Event& event) {
      if (event.type == EventType::token) ++seen;
      return seen == stop ? Verdict::stop : Verdict::go_on;
    }));
    EXPECT_EQ(seen, stop);
    EXPECT_EQ(output_ids(request->result()), Ids(all.begin(), all.begin() + stop));
    EXPECT_EQ(own->tokens().size(), prompt_.size() + stop);
    RequestSpec rest = ids_request({}, static_cast<int64_t>(all.size() - stop));
    rest.prompt_mode = PromptMode::append;
    rest.drafts_max = 6;
    EXPECT_EQ(output_ids(must(engine_->generate(own, rest, nullptr))->result()),
              Ids(all.begin() + static_cast<ptrdiff_t>(stop), all.end()));
  }
}

// Sequences with and without guesses in one batch; the KV of what is left is what was said.
TEST_F(Speculation, SharesBatches) {
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  std::vector<RequestSpec> specs;
  for (int64_t i = 0; i < 6; ++i) {
    RequestSpec spec = ask(30);
    spec.sampling.temperature = i < 2 ? 0.0f : 0.9f;
    spec.sampling.seed = static_cast<uint64_t>(i);
    specs.push_back(spec);
    spec.drafts_max = i % 3 * 4;
    sessions.push_back(session());
    requests.push_back(must(engine_->submit(sessions.back(), spec)));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(requests[i]->wait(-1));
    EXPECT_EQ(output_ids(requests[i]->result()), output_ids(answer(specs[i], 0))) << i;
    RequestSpec more = ids_request({}, 5);
    more.prompt_mode = PromptMode::append;
    const Ids next = output_ids(must(engine_->generate(sessions[i], more, nullptr))->result());
    Ids whole = prompt_;
    for (const int32_t id : output_ids(requests[i]->result())) whole.push_back(id);
    EXPECT_EQ(next, output_ids(answer(ids_request(whole, 5), 0))) << i;
  }
}

TEST_F(Speculation, RefusesSizesThatMakeNoSense) {
  RequestSpec spec = ask(3);
  spec.drafts_max = -1;
  EXPECT_EQ(engine_->generate(session(), spec, nullptr).status().code(), Code::invalid_argument);
  spec.drafts_max = kDraftsMax + 1;
  EXPECT_EQ(engine_->generate(session(), spec, nullptr).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace optima::engine
