// Logits of whole prompts, and how far two sets of them are apart.
#pragma once

#include <algorithm>
#include <cmath>

#include "backend/cpu/host_isa.h"
#include "kernels/isa.h"
#include "tests/engine/tiny_model.h"

namespace optima::engine {

// The largest mean KLD of the fast path to fp32: with f16 KV, and where activations are rounded
// too, to int8 or to bfloat16.
inline constexpr double kKldMax = 1e-3, kKldQuantised = 2e-2;

// Whether BF16 weights meet activations rounded to bfloat16 on this CPU
// (kernels/matmul/bf16.inl.h): 0.17 % of a product, where int8 costs 0.53.
inline bool rounds_to_bfloat16(ComputePath path) {
  return path == ComputePath::fast && (backend::cpu::host_isa() & kernels::kIsaFastBf16) != 0;
}

// Whether many rows of quantised weights meet activations in int8: without AMX.
inline bool rounds_to_int8() {
  return (backend::cpu::host_isa() & kernels::kIsaAmx) == 0;
}

// Runs `ids` as a prompt and returns the logits of all positions.
inline std::vector<float> prompt_logits(Engine& engine, const std::shared_ptr<Session>& session,
                                        const std::vector<int32_t>& ids, int64_t vocabulary) {
  RequestSpec spec = ids_request(ids, 0);
  spec.prompt_only = true;
  std::vector<float> out(ids.size() * static_cast<size_t>(vocabulary), NAN);
  for (size_t i = 0; i < ids.size(); ++i) spec.logits_positions.push_back(static_cast<int64_t>(i));
  spec.logits_out = out.data();
  spec.logits_capacity = static_cast<int64_t>(out.size());
  const auto request = must(engine.generate(session, spec, nullptr));
  EXPECT_TRUE(request->result().status.ok()) << request->result().status.message();
  EXPECT_EQ(request->result().logits_rows, static_cast<int64_t>(ids.size()));
  return out;
}

inline double max_error(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= error)) error = difference;  // NaN counts as an error
  }
  return error;
}

inline std::vector<double> softmax(const float* row, int64_t count) {
  const double top = *std::max_element(row, row + count);
  std::vector<double> p(static_cast<size_t>(count));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += p[static_cast<size_t>(i)] = std::exp(row[i] - top);
  for (double& value : p) value /= sum;
  return p;
}

inline double mean_kld(const std::vector<float>& truth, const std::vector<float>& logits,
                       int64_t vocabulary) {
  double sum = 0;
  const int64_t rows = static_cast<int64_t>(truth.size()) / vocabulary;
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<double> p = softmax(truth.data() + r * vocabulary, vocabulary);
    const std::vector<double> q = softmax(logits.data() + r * vocabulary, vocabulary);
    for (size_t i = 0; i < p.size(); ++i)
      if (p[i] > 0) sum += p[i] * std::log(p[i] / q[i]);
  }
  return sum / static_cast<double>(rows);
}

// The same with one request for each token.
inline std::vector<float> token_by_token_logits(Engine& engine,
                                                const std::shared_ptr<Session>& session,
                                                const std::vector<int32_t>& ids,
                                                int64_t vocabulary) {
  std::vector<float> logits(ids.size() * static_cast<size_t>(vocabulary), NAN);
  for (size_t i = 0; i < ids.size(); ++i) {
    RequestSpec spec = ids_request({ids[i]}, 0);
    spec.prompt_only = true;
    spec.prompt_mode = PromptMode::append;
    spec.logits_positions = {static_cast<int64_t>(i)};
    spec.logits_out = logits.data() + i * static_cast<size_t>(vocabulary);
    spec.logits_capacity = vocabulary;
    const auto request = must(engine.generate(session, spec, nullptr));
    EXPECT_TRUE(request->result().status.ok()) << request->result().status.message();
    EXPECT_EQ(request->result().logits_rows, 1);
    EXPECT_EQ(request->result().counters.cached_tokens, static_cast<int64_t>(i));
  }
  return logits;
}

}  // namespace optima::engine
