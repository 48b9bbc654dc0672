// Experts in a full batch, of which some have more rows than a tile holds and others few or none:
// the longest prompts of tests/goldens/arch give an expert fifty rows at the most.
#include "tests/engine/compare.h"

namespace optima::engine {
namespace {

struct Case {
  const char* name;
  double kld_max;  // fast path against reference path, all positions but a twentieth
  bool quantised = false;
};

// Where two experts are all but equal rounding chooses, and the logits of such a position are
// others, so the largest twentieth of all positions does not count.
double kld_of_most(const std::vector<float>& truth, const std::vector<float>& logits,
                   int64_t vocabulary) {
  std::vector<double> klds;
  const auto row = [&](const std::vector<float>& from, size_t at) {
    const auto begin = from.begin() + static_cast<int64_t>(at);
    return std::vector<float>(begin, begin + vocabulary);
  };
  for (size_t at = 0; at < truth.size(); at += static_cast<size_t>(vocabulary))
    klds.push_back(mean_kld(row(truth, at), row(logits, at), vocabulary));
  std::sort(klds.begin(), klds.end());
  return klds[klds.size() * 19 / 20];
}

class ExpertsOfAFullBatch : public testing::TestWithParam<Case> {
 protected:
  ExpertsOfAFullBatch()
      : model_(must(
            engine_->load(model::PathSource{std::string(OPTIMA_SOURCE_DIR "/tests/goldens/arch/") +
                                            GetParam().name},
                          {}))),
        vocabulary_(model_->config()->vocabulary) {}

  static constexpr int64_t kSequences = 3;
  static constexpr int64_t kTokens = 170;  // of each: together as many as a batch holds, but two

  // Three of four tokens are the same, so that most rows choose the same experts.
  std::vector<int32_t> ids(int64_t sequence) const {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < kTokens; ++i) {
      const int64_t other = (i * i * 31 + i * 17 + sequence * 101) % (vocabulary_ - 4) + 3;
      out.push_back(i % 4 == 0 ? static_cast<int32_t>(other) : 7);
    }
    return out;
  }

  std::shared_ptr<Session> session(ComputePath path, int64_t chunk) const {
    SessionOptions options;
    options.path = path;
    options.prefill_chunk_tokens = chunk;
    options.context_tokens = kTokens;
    return must(engine_->create_session(model_, options));
  }

  // Logits of all positions of all sequences. The engine takes its first turn when it has them all,
  // so that without chunks they are one batch.
  std::vector<std::vector<float>> together(ComputePath path, int64_t chunk) const {
    std::vector<std::vector<float>> logits;
    std::vector<std::shared_ptr<Session>> sessions;
    std::vector<std::shared_ptr<Request>> requests;
    logits.reserve(kSequences);
    for (int64_t s = 0; s < kSequences; ++s) {
      RequestSpec spec = ids_request(ids(s), 0);
      spec.prompt_only = true;
      for (int64_t i = 0; i < kTokens; ++i) spec.logits_positions.push_back(i);
      auto& rows = logits.emplace_back(static_cast<size_t>(kTokens * vocabulary_), NAN);
      spec.logits_out = rows.data();
      spec.logits_capacity = static_cast<int64_t>(rows.size());
      sessions.push_back(session(path, chunk));
      requests.push_back(must(engine_->submit(sessions.back(), std::move(spec))));
    }
    int64_t turns = 0;
    while (must(engine_->step())) ++turns;
    if (chunk == 0) {
      EXPECT_LE(turns, 2);
    }
    for (const auto& request : requests)
      EXPECT_TRUE(request->result().status.ok()) << request->result().status.message();
    return logits;
  }

  static EngineOptions host_driven() {
    EngineOptions options;
    options.drive = Drive::host;
    return options;
  }

  const Closing engine_{new_engine(host_driven())};
  std::shared_ptr<Model> model_;
  int64_t vocabulary_;
};

TEST_P(ExpertsOfAFullBatch, DoNotChangeWhatIsComputed) {
  const auto truth = together(ComputePath::reference, 0);
  const auto logits = together(ComputePath::fast, 0);
  const bool rounds =
      GetParam().quantised ? rounds_to_int8() : rounds_to_bfloat16(ComputePath::fast);
  const double most = rounds ? kKldQuantised : GetParam().kld_max;
  for (size_t s = 0; s < truth.size(); ++s)
    EXPECT_LE(kld_of_most(truth[s], logits[s], vocabulary_), most) << s;
}

TEST_P(ExpertsOfAFullBatch, HaveTheBitsOfSmallOnes) {
  for (const ComputePath path : {ComputePath::deterministic, ComputePath::reference}) {
    const auto whole = together(path, 0);
    const auto chunks = together(path, 5);
    for (size_t s = 0; s < whole.size(); ++s)
      EXPECT_EQ(0, std::memcmp(whole[s].data(), chunks[s].data(), whole[s].size() * sizeof(float)))
          << s;
  }
}

// Weights that are floats, and blocks with biases.
INSTANTIATE_TEST_SUITE_P(Models, ExpertsOfAFullBatch,
                         testing::Values(Case{"mixtral", 1e-4}, Case{"qwen3_moe", 1e-4},
                                         Case{"gpt_oss_mxfp4", 5e-3, true}),
                         [](const testing::TestParamInfo<Case>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace optima::engine
