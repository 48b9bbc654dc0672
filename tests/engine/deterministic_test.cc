// ComputePath::deterministic: the logits of a token are the same bits however it came to be
// computed.
#include <algorithm>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

class Deterministic : public testing::TestWithParam<const char*> {
 protected:
  Deterministic() {
    const std::string name = GetParam();
    const std::string path = name.find('-') != std::string::npos
                                 ? tiny_path(name + ".gguf")
                                 : OPTIMA_SOURCE_DIR "/tests/goldens/arch/" + name;
    model_ = must(engine_->load(model::PathSource{path}, {}));
    vocabulary_ = model_->config()->vocabulary;
  }

  std::shared_ptr<Session> session(int64_t chunk = 0) {
    SessionOptions options;
    options.path = ComputePath::deterministic;
    options.prefill_chunk_tokens = chunk;
    options.context_tokens = kTokens + 8;
    return must(engine_->create_session(model_, options));
  }

  // Ids that repeat seldom, different for each seed.
  std::vector<int32_t> ids(int seed, int64_t count = kTokens) const {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < count; ++i)
      out.push_back(
          static_cast<int32_t>((i * i * 31 + i * 17 + seed * 101) % (vocabulary_ - 4) + 3));
    return out;
  }

  // A request for the logits at positions [from, prompt + output) into `logits`.
  RequestSpec logits_request(std::vector<int32_t> prompt, int64_t from,
                             std::vector<float>& logits) const {
    const auto count = static_cast<int64_t>(prompt.size()) - from;
    RequestSpec spec = ids_request(std::move(prompt), 0);
    spec.prompt_only = true;
    logits.assign(static_cast<size_t>(count * vocabulary_), 0.0f);
    for (int64_t i = 0; i < count; ++i) spec.logits_positions.push_back(from + i);
    spec.logits_out = logits.data();
    spec.logits_capacity = static_cast<int64_t>(logits.size());
    return spec;
  }

  std::vector<float> logits_of(const std::shared_ptr<Session>& session,
                               const std::vector<int32_t>& prompt, int64_t from = 0) {
    std::vector<float> logits;
    must(engine_->generate(session, logits_request(prompt, from, logits), nullptr));
    return logits;
  }

  // The last rows of `all` against `some`.
  void expect_same_tail(const std::vector<float>& all, const std::vector<float>& some,
                        const std::string& what) const {
    ASSERT_LE(some.size(), all.size());
    EXPECT_EQ(0, std::memcmp(all.data() + (all.size() - some.size()), some.data(),
                             some.size() * sizeof(float)))
        << what;
  }

  static constexpr int64_t kTokens = 72;
  const Closing engine_{new_engine()};
  std::shared_ptr<Model> model_;
  int64_t vocabulary_ = 0;
};

TEST_P(Deterministic, TokenByTokenAndInAnyChunks) {
  const std::vector<int32_t> prompt = ids(1);
  const std::vector<float> whole = logits_of(session(), prompt);
  for (const int64_t chunk : {1, 2, 7, 16, 33})
    expect_same_tail(whole, logits_of(session(chunk), prompt),
                     "chunks of " + std::to_string(chunk));
}

TEST_P(Deterministic, BesideOthers) {
  std::vector<std::vector<float>> alone(8), together(8);
  std::vector<RequestSpec> specs;
  for (int i = 0; i < 8; ++i) {
    const std::vector<int32_t> prompt = ids(i, kTokens - 5 * i);
    alone[static_cast<size_t>(i)] = logits_of(session(), prompt);
    specs.push_back(logits_request(prompt, 0, together[static_cast<size_t>(i)]));
  }
  must(engine_->run_all(session(3), std::move(specs)));
  for (size_t i = 0; i < 8; ++i)
    expect_same_tail(alone[i], together[i], "request " + std::to_string(i) + " of 8");
}

TEST_P(Deterministic, WithAPrefixFromTheCache) {
  std::vector<int32_t> prompt = ids(2);
  std::vector<int32_t> other = prompt;
  other.back() ^= 1;
  const std::vector<float> whole = logits_of(session(), prompt);
  logits_of(session(), other);
  const auto cached = session();
  std::vector<float> tail;
  const int64_t from = kTokens - 4;
  const auto request = must(engine_->generate(cached, logits_request(prompt, from, tail), nullptr));
  EXPECT_GT(request->result().counters.cached_tokens, 0);
  expect_same_tail(whole, tail, "behind a cached prefix");
}

TEST_P(Deterministic, AfterARestore) {
  const std::vector<int32_t> prompt = ids(3);
  const std::vector<float> whole = logits_of(session(), prompt);
  const auto first = session();
  std::vector<int32_t> begin(prompt.begin(), prompt.begin() + 41);
  logits_of(first, begin);
  std::string bytes;
  ASSERT_TRUE(first
                  ->save([&](const void* from, int64_t count) {
                    bytes.append(static_cast<const char*>(from), static_cast<size_t>(count));
                    return true;
                  })
                  .ok());
  size_t at = 0;
  SessionOptions options;
  options.path = ComputePath::deterministic;
  options.context_tokens = kTokens + 8;
  const auto restored = must(engine_->restore(model_, options, [&](void* into, int64_t count) {
    if (bytes.size() - at < static_cast<size_t>(count)) return false;
    std::memcpy(into, bytes.data() + at, static_cast<size_t>(count));
    at += static_cast<size_t>(count);
    return true;
  }));
  const int64_t from = 45;
  expect_same_tail(whole, logits_of(restored, prompt, from), "after a restore");
}

// Guesses make other batches, of other sizes; neither tokens nor probabilities may show it.
TEST_P(Deterministic, WithGuessesChecked) {
  std::vector<int32_t> prompt = ids(4, 20);
  const std::vector<int32_t> once = prompt;
  prompt.insert(prompt.end(), once.begin(), once.end());
  RequestSpec plain = ids_request(prompt, 30);
  plain.sampling.logprobs = 1;
  RequestSpec guessing = plain;
  guessing.drafts_max = 5;
  const auto want = must(engine_->generate(session(), plain, nullptr));
  const auto got = must(engine_->generate(session(), guessing, nullptr));
  EXPECT_EQ(output_ids(got->result()), output_ids(want->result()));
  for (size_t i = 0; i < want->result().tokens.size(); ++i)
    EXPECT_EQ(got->result().tokens[i].top[0].logprob, want->result().tokens[i].top[0].logprob) << i;
}

// Panels (q4_0, q8_0), types without panels, float weights, windows, experts, caps and sinks.
INSTANTIATE_TEST_SUITE_P(Models, Deterministic,
                         testing::Values("llama-q4_0", "llama-q8_0", "llama-f16", "gemma3-q4_0",
                                         "mixtral", "gpt_oss_mxfp4", "gemma2"),
                         [](const testing::TestParamInfo<const char*>& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace optima::engine
