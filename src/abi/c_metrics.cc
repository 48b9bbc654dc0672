// What an engine does and has done: as a struct, and as Prometheus text.

#include <numeric>

#include "abi/buffer.h"
#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/structs.h"

using namespace optima::abi;
using optima::Code;
using optima::Status;

namespace {

template <typename Counts>
uint64_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

}  // namespace

optima_status optima_metrics_query(const optima_engine* engine, optima_metrics* out,
                                   optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(engine));
    OPTIMA_TRY(check_out("out", out));
    const optima::engine::Metrics of = box->engine->metrics();
    optima_metrics metrics{};
    metrics.requests_running = of.requests_running;
    metrics.requests_waiting = of.requests_waiting;
    metrics.kv_pages_held = of.kv_pages_held;
    metrics.kv_pages_sealed = of.kv_pages_sealed;
    metrics.kv_pages_cached = of.kv_pages_cached;
    metrics.prompt_tokens = of.prompt_tokens;
    metrics.prompt_tokens_cached = of.prompt_tokens_cached;
    metrics.output_tokens = of.output_tokens;
    metrics.batches = of.batches;
    metrics.requests_finished = sum_of(of.finished);
    metrics.first_token_count = sum_of(of.first_token_s.counts);
    metrics.first_token_seconds = of.first_token_s.sum;
    metrics.inter_token_count = sum_of(of.inter_token_s.counts);
    metrics.inter_token_seconds = of.inter_token_s.sum;
    metrics.draft_tokens = of.draft_tokens;
    metrics.draft_tokens_accepted = of.draft_tokens_accepted;
    metrics.draft_batches = of.draft_batches;
    metrics.turn_seconds = of.turn_s;
    metrics.compute_seconds = of.compute_s;
    metrics.preemptions = of.preemptions;
    metrics.sessions_dropped = of.sessions_dropped;
    metrics.kv_audit_faults = of.kv_audit_faults;
    metrics.spilled_bytes = of.spilled_bytes;
    metrics.restored_bytes = of.restored_bytes;
    metrics.spill_failures = of.spill_failures;
    write_struct(out, metrics);
    return {};
  });
}

optima_status optima_metrics_render(const optima_engine* engine, optima_metric_names names,
                                    const char* label, size_t label_bytes, optima_buffer** out,
                                    optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto box, enter(engine));
    OPTIMA_TRY(check_constant("names", names, OPTIMA_METRICS_VLLM));
    OPTIMA_ASSIGN(const std::string_view engine_label, read_text("label", label, label_bytes));
    *out = make_buffer(optima::engine::render_metrics(
        box->engine->metrics(), static_cast<optima::engine::MetricNames>(names), engine_label));
    return {};
  });
}
