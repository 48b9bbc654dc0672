// Logits of whole models against transformers: prefill, chunked prefill, token by token, and
// several sequences in one batch; on the reference path and on the fast one.
#include <algorithm>

#include "tests/engine/compare.h"
#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

struct Case {
  const char* name;
  ComputePath path;
  double kld_max;    // mean over positions, fast path
  double error_max;  // of the logits' standard deviation, reference path
};

class Logits : public testing::TestWithParam<Case> {
 protected:
  void compare(const TinyModel& tiny, const std::vector<float>& logits) {
    ASSERT_EQ(logits.size(), tiny.logits.size());
    if (GetParam().path == ComputePath::reference) {
      EXPECT_LE(max_error(tiny.logits, logits), GetParam().error_max * tiny.logits_std);
    } else {
      EXPECT_LE(mean_kld(tiny.logits, logits, tiny.vocabulary), GetParam().kld_max);
    }
  }
  SessionOptions options() const {
    SessionOptions out;
    out.path = GetParam().path;
    return out;
  }
};

TEST_P(Logits, Prefill) {
  const TinyModel tiny = tiny_model(GetParam().name);
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny.path, options());
  compare(tiny, prompt_logits(*engine.engine, session, tiny.all(), tiny.vocabulary));
}

TEST_P(Logits, PrefillInChunks) {
  const TinyModel tiny = tiny_model(GetParam().name);
  const Closing engine{new_engine()};
  for (const int64_t chunk : {1, 7, 16, 33}) {
    SessionOptions chunked = options();
    chunked.prefill_chunk_tokens = chunk;
    const auto session = new_session(*engine.engine, tiny.path, chunked);
    compare(tiny, prompt_logits(*engine.engine, session, tiny.all(), tiny.vocabulary));
  }
}

TEST_P(Logits, TokenByToken) {
  const TinyModel tiny = tiny_model(GetParam().name);
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny.path, options());
  compare(tiny, token_by_token_logits(*engine.engine, session, tiny.all(), tiny.vocabulary));
}

// One sequence in prefill while two decode, all in the engine's own batches.
TEST_P(Logits, MixedBatch) {
  const TinyModel tiny = tiny_model(GetParam().name);
  EngineOptions host_driven;
  host_driven.drive = Drive::host;
  const Closing engine{new_engine(host_driven)};
  const auto model = must(engine->load(model::PathSource{tiny.path}, {}));
  std::vector<std::shared_ptr<Session>> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(must(engine->create_session(model, options())));
  const auto vocabulary = static_cast<size_t>(tiny.vocabulary);
  const int64_t first = static_cast<int64_t>(tiny.prompt.size());
  const int64_t steps = static_cast<int64_t>(tiny.continuation.size());

  std::vector<std::vector<float>> rows(3);
  std::vector<std::shared_ptr<Request>> requests;
  for (size_t s = 0; s < 3; ++s) {
    RequestSpec spec = ids_request(tiny.prompt, steps);
    for (int64_t p = first - 1; p < first - 1 + steps; ++p) spec.logits_positions.push_back(p);
    rows[s].resize(spec.logits_positions.size() * vocabulary);
    spec.logits_out = rows[s].data();
    spec.logits_capacity = static_cast<int64_t>(rows[s].size());
    // The third joins when the others decode.
    for (int turn = 0; s == 2 && turn < 4; ++turn) {
      EXPECT_TRUE(must(engine->step()));
    }
    requests.push_back(must(engine->submit(sessions[s], std::move(spec))));
  }
  while (must(engine->step())) {
  }
  const std::vector<float> truth(tiny.logits.begin() + (first - 1) * tiny.vocabulary,
                                 tiny.logits.begin() + (first - 1 + steps) * tiny.vocabulary);
  for (size_t s = 0; s < 3; ++s) {
    ASSERT_TRUE(requests[s]->done());
    EXPECT_EQ(requests[s]->result().logits_rows, steps);
    if (GetParam().path == ComputePath::reference) {
      EXPECT_EQ(output_ids(requests[s]->result()), tiny.continuation);
      EXPECT_LE(max_error(truth, rows[s]), GetParam().error_max * tiny.logits_std);
    } else if (output_ids(requests[s]->result()) == tiny.continuation) {
      EXPECT_LE(mean_kld(truth, rows[s], tiny.vocabulary), GetParam().kld_max);
    }
  }
}

TEST_P(Logits, GreedyContinuation) {
  const TinyModel tiny = tiny_model(GetParam().name);
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny.path, options());
  const auto request = must(engine->generate(
      session, ids_request(tiny.prompt, static_cast<int64_t>(tiny.continuation.size())), nullptr));
  EXPECT_EQ(output_ids(request->result()), tiny.continuation);
  EXPECT_EQ(request->result().finish, FinishReason::length);
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  constexpr const char* kPaths[] = {"_fast", "_reference", "_deterministic"};
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + kPaths[static_cast<int>(info.param.path)];
}

// Reference path: fp32 rounding alone. Fast path: f16 KV and int8 activations per block of 32;
// these models are far more sensitive than trained ones (logits of standard deviation 3 from
// random weights), which is why the bound is that of an 8-bit format rather than of fp32.
INSTANTIATE_TEST_SUITE_P(Models, Logits,
                         testing::Values(Case{"llama-f32", ComputePath::reference, 0, 1e-3},
                                         Case{"llama-f16", ComputePath::reference, 0, 1e-3},
                                         Case{"llama-q8_0", ComputePath::reference, 0, 1e-3},
                                         Case{"llama-q4_0", ComputePath::reference, 0, 1e-3},
                                         Case{"gemma3-f32", ComputePath::reference, 0, 1e-3},
                                         Case{"gemma3-f16", ComputePath::reference, 0, 1e-3},
                                         Case{"llama-f32", ComputePath::fast, 1e-3, 0},
                                         Case{"llama-f16", ComputePath::fast, 1e-3, 0},
                                         Case{"llama-q8_0", ComputePath::fast, 1e-2, 0},
                                         Case{"llama-q4_0", ComputePath::fast, 1e-2, 0},
                                         Case{"gemma3-f32", ComputePath::fast, 1e-3, 0},
                                         Case{"gemma3-f16", ComputePath::fast, 1e-3, 0},
                                         Case{"llama-q8_0", ComputePath::deterministic, 1e-2, 0},
                                         Case{"llama-q4_0", ComputePath::deterministic, 1e-2, 0},
                                         Case{"gemma3-f16", ComputePath::deterministic, 1e-3, 0}),
                         name_of);

}  // namespace
}  // namespace optima::engine
