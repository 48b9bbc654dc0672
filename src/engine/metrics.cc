// One table of rows (our name, vLLM's name, kind, help, value) makes both sets of names.
#include "engine/metrics.h"

#include <array>
#include <cstdio>

#include "base/text.h"

namespace optima::engine {
namespace {

// The reasons as vLLM counts them; the others keep their own names.
constexpr std::array<const char*, kFinishReasons> kReasons = {
    "",     "stop",      "stop_string", "length", "context",
    "host", "cancelled", "deadline",    "error",  "embedded"};
constexpr std::array<const char*, kFinishReasons> kReasonsOfVllm = {
    "", "stop", "stop", "length", "length", "stop", "abort", "abort", "error", "stop"};

std::string number(double value) {
  char buffer[32];
  const int bytes = std::snprintf(buffer, sizeof buffer, "%.12g", value);
  return {buffer, static_cast<size_t>(bytes)};
}

// A label value: backslash, quote and line feed are escaped.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

class Writer {
 public:
  Writer(MetricNames names, std::string_view engine)
      : names_(names), labels_(text("engine=\"", escaped(engine), "\"")) {}

  struct Name {
    const char* native;
    const char* vllm;  // null = vLLM has no such metric
    const char* help;
  };

  void value(const Name& name, const char* kind, double value) {
    if (head(name, kind)) line(name, "", "", number(value));
  }
  void by_reason(const Name& name, std::span<const uint64_t, kFinishReasons> counts) {
    if (!head(name, "counter")) return;
    const auto& reasons = names_ == MetricNames::native ? kReasons : kReasonsOfVllm;
    for (size_t i = 1; i < kFinishReasons; ++i) {
      uint64_t sum = 0;
      bool first = true;
      for (size_t j = 1; j < kFinishReasons; ++j) {
        if (std::string_view(reasons[j]) != reasons[i]) continue;
        first = first && j >= i;
        sum += counts[j];
      }
      if (!first) continue;  // written with an earlier reason of the same name
      line(name, "", text(",finished_reason=\"", reasons[i], "\""), text(sum));
    }
  }
  template <size_t kBounds>
  void histogram(const Name& name, const Histogram<kBounds>& of) {
    if (!head(name, "histogram")) return;
    uint64_t count = 0;
    for (size_t i = 0; i < kBounds; ++i) {
      count += of.counts[i];
      line(name, "_bucket", text(",le=\"", number(of.bounds[i]), "\""), text(count));
    }
    count += of.counts[kBounds];
    line(name, "_bucket", ",le=\"+Inf\"", text(count));
    line(name, "_sum", "", number(of.sum));
    line(name, "_count", "", text(count));
  }
  std::string take() { return std::move(out_); }

 private:
  const char* chosen(const Name& name) const {
    return names_ == MetricNames::native ? name.native : name.vllm;
  }
  bool head(const Name& name, const char* kind) {
    if (chosen(name) == nullptr) return false;
    out_ +=
        text("# HELP ", chosen(name), " ", name.help, "\n# TYPE ", chosen(name), " ", kind, "\n");
    return true;
  }
  void line(const Name& name, const char* suffix, const std::string& labels,
            const std::string& value) {
    out_ += text(chosen(name), suffix, "{", labels_, labels, "} ", value, "\n");
  }

  MetricNames names_;
  std::string labels_;
  std::string out_;
};

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void write_gauges(Writer& out, const Metrics& m) {
  const auto gauge = [&](const Writer::Name& name, double value) {
    out.value(name, "gauge", value);
  };
  gauge({"optima_requests_running", "vllm:num_requests_running", "Requests in the batch."},
        static_cast<double>(m.requests_running));
  gauge({"optima_requests_waiting", "vllm:num_requests_waiting", "Requests that wait to begin."},
        static_cast<double>(m.requests_waiting));
  gauge({"optima_kv_usage_ratio", "vllm:kv_cache_usage_perc", "KV held, of its budget; 1 = all."},
        share(m.kv_bytes_held, m.kv_bytes_budget));
  gauge({"optima_kv_budget_bytes", nullptr, "Most KV held and cached; 0 = no limit."},
        static_cast<double>(m.kv_bytes_budget));
  gauge({"optima_kv_held_bytes", nullptr, "KV that sessions hold."},
        static_cast<double>(m.kv_bytes_held));
  gauge({"optima_kv_cached_bytes", nullptr, "KV that nobody holds, kept for later prompts."},
        static_cast<double>(m.kv_bytes_cached));
  gauge({"optima_kv_held_pages", nullptr, "KV pages that sessions hold."},
        static_cast<double>(m.kv_pages_held));
  gauge({"optima_kv_sealed_pages", nullptr, "KV pages that are known by their tokens."},
        static_cast<double>(m.kv_pages_sealed));
  gauge({"optima_kv_cached_pages", nullptr, "KV pages that nobody holds."},
        static_cast<double>(m.kv_pages_cached));
}

void write_counters(Writer& out, const Metrics& m) {
  const auto counter = [&](const Writer::Name& name, auto value) {
    out.value(name, "counter", static_cast<double>(value));
  };
  counter({"optima_prompt_tokens_total", "vllm:prompt_tokens_total", "Prompt tokens."},
          m.prompt_tokens);
  counter({"optima_output_tokens_total", "vllm:generation_tokens_total", "Tokens generated."},
          m.output_tokens);
  counter({"optima_prefix_queries_total", "vllm:prefix_cache_queries_total",
           "Prompt tokens that were looked for in the KV cache."},
          m.prompt_tokens);
  counter({"optima_prefix_hits_total", "vllm:prefix_cache_hits_total",
           "Prompt tokens whose KV was there."},
          m.prompt_tokens_cached);
  counter({"optima_draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total",
           "Tokens that were guessed and checked."},
          m.draft_tokens);
  counter({"optima_draft_tokens_accepted_total", "vllm:spec_decode_num_accepted_tokens_total",
           "Guesses that were right."},
          m.draft_tokens_accepted);
  counter({"optima_draft_batches_total", nullptr, "Forward passes of draft models."},
          m.draft_batches);
  counter({"optima_batches_total", nullptr, "Forward passes, those of draft models apart."},
          m.batches);
  counter({"optima_turn_seconds_total", nullptr, "Time in the engine's turns."}, m.turn_s);
  counter({"optima_compute_seconds_total", nullptr,
           "Of that, in forward passes and in choosing tokens."},
          m.compute_s);
  counter({"optima_preemptions_total", "vllm:num_preemptions_total",
           "Requests that gave up their KV, to go on later."},
          m.preemptions);
  counter({"optima_sessions_dropped_total", nullptr, "Idle sessions whose KV was taken."},
          m.sessions_dropped);
  counter({"optima_kv_audits_total", nullptr, "Audits of all KV pages."}, m.kv_audits);
  counter(
      {"optima_kv_audit_faults_total", nullptr, "KV pages leaked, kept for nothing, miscounted."},
      m.kv_audit_faults);
  counter({"optima_spilled_bytes_total", nullptr, "KV of preempted requests written out."},
          m.spilled_bytes);
  counter({"optima_restored_bytes_total", nullptr, "KV of preempted requests read back."},
          m.restored_bytes);
  counter({"optima_spill_failures_total", nullptr,
           "KV that could not be written or read back and was computed again."},
          m.spill_failures);
  out.by_reason(
      {"optima_requests_total", "vllm:request_success_total", "Requests that ended, by reason."},
      m.finished);
}

}  // namespace

std::string render_metrics(const Metrics& m, MetricNames names, std::string_view engine) {
  Writer out(names, engine);
  write_gauges(out, m);
  write_counters(out, m);
  out.histogram({"optima_first_token_seconds", "vllm:time_to_first_token_seconds",
                 "From submission to the first token."},
                m.first_token_s);
  out.histogram({"optima_inter_token_seconds", "vllm:inter_token_latency_seconds",
                 "Between two tokens of a request."},
                m.inter_token_s);
  out.histogram(
      {"optima_request_seconds", "vllm:e2e_request_latency_seconds", "From submission to the end."},
      m.request_s);
  out.histogram({"optima_queue_seconds", "vllm:request_queue_time_seconds",
                 "From submission to the first computation."},
                m.queue_s);
  out.histogram(
      {"optima_prefill_seconds", "vllm:request_prefill_time_seconds", "Computing the prompt."},
      m.prefill_s);
  out.histogram({"optima_decode_seconds", "vllm:request_decode_time_seconds",
                 "From the prompt's end to the last token."},
                m.decode_s);
  out.histogram({"optima_batch_tokens", "vllm:iteration_tokens_total", "Tokens of a forward pass."},
                m.batch_tokens);
  return out.take();
}

}  // namespace optima::engine
