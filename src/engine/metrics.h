// What an engine has done and is doing, in numbers, and their text form.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace optima::engine {

// Counts of values by upper bound; the last count is of all that are greater.
template <size_t kBounds>
struct Histogram {
  std::array<double, kBounds> bounds;
  std::array<uint64_t, kBounds + 1> counts{};
  double sum = 0;

  void add(double value) {
    size_t bucket = 0;
    while (bucket < kBounds && value > bounds[bucket]) ++bucket;
    ++counts[bucket];
    sum += value;
  }
};

// Bounds in seconds, as vLLM has them, so that dashboards fit.
inline constexpr std::array<double, 16> kFirstTokenBounds = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0};
inline constexpr std::array<double, 16> kInterTokenBounds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5};
inline constexpr std::array<double, 16> kRequestBounds = {
    0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0};
inline constexpr std::array<double, 16> kTokenBounds = {1,   2,   5,   10,  20,  50,  100, 200,
                                                        500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5};

inline constexpr size_t kFinishReasons = 10;  // FinishReason's values

struct Metrics {
  // Now.
  int64_t requests_running = 0, requests_waiting = 0;
  int64_t kv_bytes_budget = 0, kv_bytes_held = 0, kv_bytes_cached = 0;
  int64_t kv_pages_held = 0, kv_pages_sealed = 0, kv_pages_cached = 0;
  // Since the engine was made.
  uint64_t prompt_tokens = 0;         // of requests that began
  uint64_t prompt_tokens_cached = 0;  // of these, from KV that was there
  uint64_t output_tokens = 0;
  uint64_t draft_tokens = 0;           // guesses that passes checked
  uint64_t draft_tokens_accepted = 0;  // of them, right ones
  uint64_t draft_batches = 0;          // forward passes of draft models
  uint64_t batches = 0;                // the others
  double turn_s = 0;                   // in turns of the engine
  double compute_s = 0;                // of it, in forward passes and in choosing tokens
  uint64_t preemptions = 0;            // requests that gave up their pages, to go on later
  uint64_t sessions_dropped = 0;       // idle ones whose KV was taken
  uint64_t kv_audits = 0;        // of all pages; in builds with checks every kAuditTurns turns
  uint64_t kv_audit_faults = 0;  // pages that they found leaked, kept for nothing or miscounted
  uint64_t spilled_bytes = 0, restored_bytes = 0;  // of preempted requests' KV
  uint64_t spill_failures = 0;                     // it was computed again instead
  std::array<uint64_t, kFinishReasons> finished{};
  Histogram<16> first_token_s{kFirstTokenBounds};
  Histogram<16> inter_token_s{kInterTokenBounds};
  Histogram<16> request_s{kRequestBounds};
  Histogram<16> queue_s{kRequestBounds};
  Histogram<16> prefill_s{kRequestBounds};
  Histogram<16> decode_s{kRequestBounds};
  Histogram<16> batch_tokens{kTokenBounds};
};

enum class MetricNames : int32_t {
  native = 0,  // optima_*
  vllm = 1,    // those of vLLM, for what vLLM has
};

// Prometheus' text format 0.0.4. `engine` becomes the label of that name.
std::string render_metrics(const Metrics& metrics, MetricNames names, std::string_view engine);

}  // namespace optima::engine
