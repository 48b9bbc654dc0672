// A draft model changes how many passes of the target an answer takes and nothing of what it says.
// The drafts here: the target itself, which must be right always, and the target without its upper
// layer (tests/goldens/make_draft.py), which is right now and then.
#include "engine/draft_model.h"

#include <cmath>
#include <map>
#include <thread>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

using Ids = std::vector<int32_t>;

const TinyModel& tiny() {
  static const TinyModel model = tiny_model("llama-q8_0");
  return model;
}

std::shared_ptr<Model> load(Engine& engine, const std::string& path) {
  return must(engine.load(model::PathSource{path}, {}));
}

constexpr const char* kLowerLayers = OPTIMA_SOURCE_DIR "/tests/goldens/drafts/llama-q8_0.gguf";

class DraftModels : public testing::Test {
 protected:
  std::shared_ptr<Session> session(const std::shared_ptr<Model>& draft,
                                   ComputePath path = ComputePath::reference) {
    SessionOptions options;
    options.path = path;
    options.draft_model = draft;
    return must(engine_->create_session(target_, options));
  }
  RequestSpec ask(int64_t tokens, int64_t drafts) const {
    RequestSpec spec = ids_request(tiny().prompt, tokens);
    spec.drafts_max = drafts;
    return spec;
  }
  RequestResult answer(const std::shared_ptr<Session>& session, RequestSpec spec) {
    return must(engine_->generate(session, std::move(spec), nullptr))->result();
  }
  // The same with and without a draft model; returns the guesses that were right.
  int64_t compare(const RequestSpec& spec, const std::shared_ptr<Model>& draft) {
    const RequestResult plain = answer(session(nullptr), [&] {
      RequestSpec without = spec;
      without.drafts_max = 0;
      return without;
    }());
    const RequestResult guessed = answer(session(draft), spec);
    EXPECT_TRUE(guessed.status.ok()) << guessed.status.message();
    EXPECT_EQ(output_ids(plain), output_ids(guessed));
    EXPECT_EQ(plain.text, guessed.text);
    EXPECT_EQ(plain.finish, guessed.finish);
    return guessed.counters.draft_tokens_accepted;
  }

  const Closing engine_{new_engine()};
  std::shared_ptr<Model> target_ = load(*engine_.engine, tiny().path);
  std::shared_ptr<Model> lower_ = load(*engine_.engine, kLowerLayers);
};

TEST_F(DraftModels, TheTargetItselfIsAlwaysRight) {
  for (const ComputePath path : {ComputePath::reference, ComputePath::fast}) {
    for (const int64_t drafts : {1, 3, 32}) {
      const RequestResult result = answer(
          session(target_, path), ask(static_cast<int64_t>(tiny().continuation.size()), drafts));
      EXPECT_EQ(output_ids(result), tiny().continuation);
      EXPECT_GT(result.counters.draft_tokens, 0);
      EXPECT_EQ(result.counters.draft_tokens_accepted, result.counters.draft_tokens);
    }
  }
  EXPECT_GT(engine_->metrics().draft_batches, 0u);
}

// Its windows forget: what is guessed must not make them forget what a wrong guess needs again.
TEST_F(DraftModels, MayHaveWindows) {
  const TinyModel gemma = tiny_model("gemma3-f32");
  target_ = load(*engine_.engine, gemma.path);
  const RequestResult result = answer(session(target_), [&] {
    RequestSpec spec = ids_request(gemma.prompt, 24);
    spec.drafts_max = 6;
    return spec;
  }());
  EXPECT_EQ(output_ids(result), gemma.continuation);
  EXPECT_GT(result.counters.draft_tokens, 0);
  EXPECT_EQ(result.counters.draft_tokens_accepted, result.counters.draft_tokens);
}

TEST_F(DraftModels, ChangeNoAnswer) {
  int64_t accepted = 0;
  for (const int64_t drafts : {1, 2, 5, 32}) accepted += compare(ask(60, drafts), lower_);
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    RequestSpec spec = ask(40, 5);
    spec.sampling.temperature = 0.7f;
    spec.sampling.seed = seed;
    accepted += compare(spec, lower_);
    spec.sampling.repetition_penalty = 1.1f;
    compare(spec, target_);
  }
  EXPECT_GT(accepted, 0);
  RequestSpec spec = ask(60, 5);
  spec.grammar = GrammarSpec{sampling::GrammarKind::regex, "(ab|cd)(ab|cd)(ab|cd)(ab|cd)(ab|cd)*"};
  compare(spec, lower_);
  for (int64_t tokens = 1; tokens <= 8; ++tokens) compare(ask(tokens, 4), lower_);
}

// A session that goes on, forks, is cut and asked for something else: the draft model follows.
TEST_F(DraftModels, FollowTheSession) {
  const auto own = session(target_);
  const auto all_right = [&](const std::shared_ptr<Session>& with, const RequestSpec& spec) {
    const RequestResult result = answer(with, spec);
    EXPECT_EQ(result.counters.draft_tokens_accepted, result.counters.draft_tokens);
    RequestSpec plain = ids_request(result.prompt_ids, spec.max_tokens);
    EXPECT_EQ(output_ids(result), output_ids(answer(session(nullptr), plain)));
  };
  RequestSpec more = ids_request({7, 8}, 12);
  more.prompt_mode = PromptMode::append;
  more.drafts_max = 4;
  all_right(own, ask(24, 4));
  all_right(own, more);
  const auto fork = must(own->fork());
  all_right(fork, more);
  ASSERT_TRUE(own->truncate(static_cast<int64_t>(tiny().prompt.size()) + 3).ok());
  all_right(own, more);
  all_right(own, ids_request({4, 4, 5}, 9));
  all_right(fork, ask(24, 4));

  std::string bytes;
  ASSERT_TRUE(own->save([&](const void* from, int64_t count) {
                   bytes.append(static_cast<const char*>(from), static_cast<size_t>(count));
                   return true;
                 })
                  .ok());
  SessionOptions options;
  options.path = ComputePath::reference;
  options.draft_model = target_;
  size_t at = 0;
  const auto restored = must(engine_->restore(target_, options, [&](void* into, int64_t count) {
    std::memcpy(into, bytes.data() + at, static_cast<size_t>(count));
    at += static_cast<size_t>(count);
    return true;
  }));
  EXPECT_EQ(restored->tokens(), own->tokens());
  all_right(restored, more);
}

// Whoever shares the passes of the draft model and of the target, each answer is its own.
TEST_F(DraftModels, ServeManySessionsAtOnce) {
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host)
    hosts.emplace_back([this, host] {
      std::vector<std::shared_ptr<Session>> sessions;
      std::vector<std::shared_ptr<Request>> requests;
      std::vector<RequestSpec> specs;
      for (int i = 0; i < 3; ++i) {
        RequestSpec spec = ask(24, 1 + (host + i) % 4);
        spec.ids.push_back(20 + host);
        spec.ids.push_back(40 + i);
        spec.sampling.temperature = i == 0 ? 0.0f : 0.9f;
        spec.sampling.seed = static_cast<uint64_t>(host * 8 + i);
        sessions.push_back(session(i == 1 ? target_ : lower_));
        requests.push_back(must(engine_->submit(sessions.back(), spec)));
        specs.push_back(spec);
      }
      for (size_t i = 0; i < requests.size(); ++i) {
        ASSERT_TRUE(requests[i]->wait(-1));
        specs[i].drafts_max = 0;
        EXPECT_EQ(output_ids(requests[i]->result()), output_ids(answer(session(nullptr), specs[i])))
            << host << ' ' << i;
      }
    });
  for (std::thread& host : hosts) host.join();
}

// ---- the distribution ----

using Counts = std::map<Ids, std::array<double, 2>>;

// P(X > x) of a chi-square with so many degrees of freedom (Wilson and Hilferty 1931).
double chi_square_tail(double x, double degrees) {
  const double spread = 2 / (9 * degrees);
  const double z = (std::cbrt(x / degrees) - (1 - spread)) / std::sqrt(spread);
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// Whether two samples of equal size come from one distribution. Rare outcomes are one category.
double p_value(const Counts& counts) {
  std::array<double, 2> rare{};
  double x = 0;
  int categories = 0;
  const auto add = [&](const std::array<double, 2>& pair) {
    if (pair[0] + pair[1] == 0) return;
    x += (pair[0] - pair[1]) * (pair[0] - pair[1]) / (pair[0] + pair[1]);
    ++categories;
  };
  for (const auto& [ids, pair] : counts) {
    if (pair[0] + pair[1] >= 10) {
      add(pair);
    } else {
      for (size_t i = 0; i < 2; ++i) rare[i] += pair[i];
    }
  }
  add(rare);
  return chi_square_tail(x, std::max(1, categories - 1));
}

class DraftDistribution : public DraftModels {
 protected:
  static constexpr uint64_t kSamples = 300;

  // Outcomes of the two tokens after the first, which a pass without guesses computes.
  void sample(const std::shared_ptr<Session>& session, RequestSpec spec, size_t column) {
    for (uint64_t seed = 1; seed <= kSamples; ++seed) {
      spec.sampling.seed = seed + column * kSamples;
      const RequestResult result = answer(session, spec);
      const Ids ids = output_ids(result);
      guesses_ += result.counters.draft_tokens;
      right_ += result.counters.draft_tokens_accepted;
      ++counts_[{ids.begin() + 1, ids.begin() + 3}][column];
    }
  }
  RequestSpec spec(float temperature, int64_t drafts) const {
    RequestSpec spec = ids_request({5, 9, 14, 9, 21, 5, 9, 14, 9, 21, 5, 9}, 4);
    spec.sampling.temperature = temperature;
    spec.sampling.top_k = 4;
    spec.drafts_max = drafts;
    spec.sampling.logit_bias = {{14, 9.0f}, {9, 9.0f}, {21, 9.0f}, {5, 9.0f}};
    return spec;
  }

  Counts counts_;
  int64_t guesses_ = 0, right_ = 0;
};

// Other seeds with drafts than without, so that the two samples are independent. A sample of
// another temperature must fail, or the test would see nothing.
TEST_F(DraftDistribution, IsThatOfTheTarget) {
  constexpr double kLeast = 1e-3;
  for (const auto& draft : {std::shared_ptr<Model>(), lower_}) {
    counts_.clear();
    guesses_ = right_ = 0;
    sample(session(nullptr), spec(1.0f, 0), 0);
    sample(session(draft), spec(1.0f, 2), 1);
    EXPECT_GT(p_value(counts_), kLeast) << (draft == nullptr ? "n-gram" : "draft model");
    EXPECT_GT(right_, 0);
    EXPECT_LT(right_, guesses_);
  }
  counts_.clear();
  sample(session(nullptr), spec(1.0f, 0), 0);
  sample(session(nullptr), spec(3.0f, 0), 1);
  EXPECT_LT(p_value(counts_), kLeast);
}

// ---- what can go wrong ----

std::unique_ptr<tokenizer::Tokenizer> words(std::vector<std::string_view> tokens, int32_t eos) {
  const std::vector<double> scores(tokens.size(), 0.0);
  std::vector<int64_t> kinds(tokens.size(), 1);
  kinds[0] = 2;
  tokenizer::VocabularySpec spec;
  spec.model = "llama";
  spec.tokens = tokens;
  spec.scores = scores;
  spec.kinds = kinds;
  spec.unknown = 0;
  spec.bos = 1;
  spec.eos = eos;
  return must(tokenizer::Tokenizer::create(spec));
}

TEST(DraftVocabularies, MustBeTheSame) {
  const auto target = words({"<unk>", "<s>", "</s>", "a", "b"}, 2);
  EXPECT_TRUE(check_same_vocabulary(*target, *words({"<unk>", "<s>", "</s>", "a", "b"}, 2)).ok());
  const auto message = [&](const std::unique_ptr<tokenizer::Tokenizer>& draft) {
    const Status status = check_same_vocabulary(*target, *draft);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return std::string(status.message());
  };
  EXPECT_NE(message(words({"<unk>", "<s>", "</s>", "a"}, 2)).find("4 tokens, the model's 5"),
            std::string::npos);
  EXPECT_NE(message(words({"<unk>", "<s>", "</s>", "a", "b"}, 4)).find("EOS 4"), std::string::npos);
  const std::string other = message(words({"<unk>", "<s>", "</s>", "a", "c"}, 2));
  EXPECT_NE(other.find("token 4 'c'"), std::string::npos) << other;
  EXPECT_NE(other.find("fingerprint"), std::string::npos) << other;
}

TEST_F(DraftModels, RefuseWhatCannotBeOne) {
  SessionOptions options;
  const auto status = [&] { return engine_->create_session(target_, options).status(); };
  options.draft_model = load(*engine_.engine, tiny_path("gemma3-f32.gguf"));
  EXPECT_EQ(status().code(), Code::invalid_argument);
  EXPECT_NE(status().message().find("371 tokens, the model's 297"), std::string::npos)
      << status().message();
  const Closing elsewhere{new_engine()};
  options.draft_model = load(*elsewhere.engine, kLowerLayers);
  EXPECT_EQ(status().code(), Code::invalid_argument);
  LoadOptions vocabulary;
  vocabulary.content = LoadContent::vocabulary;
  options.draft_model = must(engine_->load(model::PathSource{kLowerLayers}, vocabulary));
  EXPECT_EQ(status().code(), Code::invalid_state);
  options.draft_model = load(*engine_.engine, OPTIMA_SOURCE_DIR "/tests/goldens/embeddings/bert");
  EXPECT_EQ(status().code(), Code::unsupported) << status().message();
  options.draft_model = lower_;
  options.output = SessionOutput::embedding;
  EXPECT_EQ(status().code(), Code::invalid_argument);
  lower_->close();
  options.output = SessionOutput::tokens;
  EXPECT_EQ(status().code(), Code::invalid_state);
}

// The session keeps it; a host that closes it gets answers without guesses.
TEST_F(DraftModels, MayGoFirst) {
  const auto own = session(lower_);
  std::weak_ptr<Model> draft = lower_;
  lower_.reset();
  EXPECT_FALSE(draft.expired());
  const auto count = static_cast<int64_t>(tiny().continuation.size());
  EXPECT_GT(answer(own, ask(count, 4)).counters.draft_tokens, 0);
  size_t seen = 0;
  const auto request = must(engine_->generate(own, ask(count, 4), [&](const Event& event) {
    if (event.type == EventType::token && ++seen == 6) draft.lock()->close();
    return Verdict::go_on;
  }));
  EXPECT_EQ(output_ids(request->result()), tiny().continuation);
  EXPECT_EQ(answer(own, ask(count, 4)).counters.draft_tokens, 0);
}

TEST_F(DraftModels, AreGoneWithACancelledRequest) {
  const auto own = session(target_);
  for (const Verdict verdict : {Verdict::stop, Verdict::cancel}) {
    for (size_t stop = 1; stop <= 9; ++stop) {
      size_t seen = 0;
      must(engine_->generate(own, ask(24, 5), [&](const Event& event) {
        return event.type == EventType::token && ++seen == stop ? verdict : Verdict::go_on;
      }));
      const RequestResult result = answer(own, ask(24, 5));
      EXPECT_EQ(output_ids(result), tiny().continuation);
      EXPECT_EQ(result.counters.draft_tokens_accepted, result.counters.draft_tokens);
    }
  }
  ASSERT_TRUE(own->truncate(0).ok());
  EXPECT_EQ(engine_->memory().kv_bytes, 0);
}

// With memory for the target's KV and little or nothing more: fewer guesses, the same answer.
TEST_F(DraftModels, GoWithoutPages) {
  const RequestResult plain = answer(session(nullptr), ask(60, 0));
  const auto held = session(nullptr);
  answer(held, ask(60, 0));
  const int64_t needed = engine_->memory().kv_bytes;
  for (const int64_t more : {int64_t{0}, needed / 4, needed / 2, needed}) {
    EngineOptions options;
    options.kv_budget_bytes = needed + more;
    options.kv_cached_bytes = kNothingCached;
    const Closing engine{new_engine(options)};
    SessionOptions with;
    with.path = ComputePath::reference;
    with.draft_model = load(*engine.engine, kLowerLayers);
    const auto own = must(engine->create_session(load(*engine.engine, tiny().path), with));
    const auto request = must(engine->generate(own, ask(60, 4), nullptr));
    EXPECT_TRUE(request->result().status.ok()) << request->result().status.message();
    EXPECT_EQ(output_ids(request->result()), output_ids(plain)) << more;
    EXPECT_EQ(engine->memory().kv_bytes, needed);
  }
}

}  // namespace
}  // namespace optima::engine
