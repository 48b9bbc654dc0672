// optima bench: speed of one model on this machine beside the roofs measured in the same run.
//
//   prefill  a prompt of -p ids after a prefix of --depth ids
//   decode   -n single-token steps from --depth, each a forward step and the argmax
//
// With --sessions so many conversations at once: all prompts first, then all decode -n tokens
// together, as the batched benches of other engines do. --arriving-prompt then adds a prompt that
// comes while they decode, and compares: how long their tokens take with and without it, and how
// long its first token takes beside them and alone.
//
// The prefix stays in the session: a request names the whole context, and the session computes only
// what it does not hold. Behind the prefix every request has other ids than the one before, so that
// nothing but the prefix is reused. The bytes of a step are counted by the library; the difference
// between a long and a one-token generation is what the steps alone read.
#include <algorithm>
#include <cstdio>

#include "cli_util.h"
#include "commands.h"
#include "load.h"
#include "probe.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  SessionArgs session;
  int64_t prompt = 512;
  int64_t tokens = 128;
  int64_t depth = 0;
  int32_t repetitions = 3;
  std::optional<std::vector<int32_t>> sessions;  // a load instead of one session
  int64_t shared_prefix = 0;
  int64_t arriving_prompt = 0;
  int64_t draft_tokens = 0;
  std::string trace;
  bool no_roofs = false;
  bool json = false;
};

struct Samples {
  std::vector<double> prefill_tokens_per_s, decode_tokens_per_s, ttft_ms;
};

struct Measured {
  Samples samples;
  double load_to_first_token_ms = 0;
  double bytes_per_token = 0;
};

class Bench {
 public:
  explicit Bench(const Args& args)
      : args_(args),
        loaded_(open_model(args.model, OPTIMA_CONTENT_FULL)),
        session_(make_session(loaded_, sized_for(args))) {}

  const LoadedModel& loaded() const { return loaded_; }

  Measured measure() {
    Measured out;
    progress_.show("bench: first prompt");
    generate(0, args_.depth + args_.prompt, 1);
    out.load_to_first_token_ms = since_load_.ms();
    const optima_counters one_step = after_prefix(1, 1);
    for (int i = 0; i < args_.repetitions; ++i) {
      progress_.show("bench: repetition " + std::to_string(i + 1) + " of " +
                     std::to_string(args_.repetitions));
      const optima_counters prefill = after_prefix(args_.prompt, 1);
      out.samples.prefill_tokens_per_s.push_back(rate(args_.prompt, prefill.prefill_ns));
      out.samples.ttft_ms.push_back(static_cast<double>(prefill.first_token_ns) / 1e6);
      // The first token comes out of the prompt's step, so one more makes -n steps.
      const optima_counters decode = after_prefix(1, args_.tokens + 1);
      out.samples.decode_tokens_per_s.push_back(rate(args_.tokens, decode.decode_ns));
      out.bytes_per_token =
          static_cast<double>(decode.weight_bytes_read - one_step.weight_bytes_read +
                              decode.kv_bytes_read - one_step.kv_bytes_read) /
          static_cast<double>(args_.tokens);
    }
    progress_.clear();
    return out;
  }

 private:
  static SessionArgs sized_for(const Args& args) {
    SessionArgs session = args.session;
    session.context_tokens = args.depth + std::max(args.prompt, args.tokens + 1) + 1;
    return session;
  }

  static double rate(int64_t tokens, int64_t ns) {
    return ns > 0 ? static_cast<double>(tokens) * 1e9 / static_cast<double>(ns) : 0;
  }

  // Ids spread over the vocabulary; two streams differ at every position.
  int32_t id_at(int64_t position, int64_t stream) const {
    return static_cast<int32_t>((position * 7919 + 13 + stream * 101) % loaded_.info.vocabulary);
  }

  // A prompt of `count` ids from stream 0 up to the depth and from `stream` behind it.
  optima_counters generate(int64_t stream, int64_t count, int64_t max_tokens) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(id_at(i, i < args_.depth ? 0 : stream));
    auto desc = sized<optima_request_desc>();
    desc.prompt_ids = ids.data();
    desc.prompt_id_count = ids.size();
    desc.max_tokens = max_tokens;
    desc.draft_tokens = args_.draft_tokens;
    desc.flags = max_tokens > 0 ? OPTIMA_REQUEST_IGNORE_EOS : OPTIMA_REQUEST_PROMPT_ONLY;
    const auto result = make<Result>(optima_generate, session_.get(), &desc);
    return counters_of(result.get());
  }

  // A generation whose session holds just the prefix before: whatever the session holds is cut
  // back to it, or computed again where a sliding window has let it go.
  optima_counters after_prefix(int64_t prompt, int64_t max_tokens) {
    if (args_.depth == 0) {
      optima_error* error = nullptr;
      check(optima_session_reset(session_.get(), &error), error);
    } else {
      generate(0, args_.depth, 0);
    }
    const optima_counters counters = generate(++stream_, args_.depth + prompt, max_tokens);
    // A figure that counts reused ids as computed would be a lie.
    if (counters.cached_tokens != args_.depth) {
      throw Failure("the session reused " + std::to_string(counters.cached_tokens) +
                    " ids where the bench means " + std::to_string(args_.depth));
    }
    return counters;
  }

  const Args& args_;
  Stopwatch since_load_;
  LoadedModel loaded_;
  Session session_;
  Progress progress_;
  int64_t stream_ = 0;
};

Json report_json(const Args& args, const LoadedModel& loaded, const Measured& measured) {
  const double decode = median(measured.samples.decode_tokens_per_s);
  return {{"model", optima_model_name(loaded.model.get())},
          {"architecture", optima_model_architecture(loaded.model.get())},
          {"version", optima_version()},
          {"threads", optima_engine_threads(loaded.engine.get())},
          {"path", path_name(args.session)},
          {"kv_type", args.session.kv_type},
          {"prompt", args.prompt},
          {"tokens", args.tokens},
          {"depth", args.depth},
          {"repetitions", args.repetitions},
          {"prefill_tokens_per_s", median(measured.samples.prefill_tokens_per_s)},
          {"decode_tokens_per_s", decode},
          {"ttft_ms", median(measured.samples.ttft_ms)},
          {"load_ms", loaded.load_ms},
          {"load_to_first_token_ms", measured.load_to_first_token_ms},
          {"bytes_per_token", measured.bytes_per_token},
          {"decode_gb_per_s", decode * measured.bytes_per_token / 1e9},
          {"samples",
           {{"prefill_tokens_per_s", measured.samples.prefill_tokens_per_s},
            {"decode_tokens_per_s", measured.samples.decode_tokens_per_s},
            {"ttft_ms", measured.samples.ttft_ms}}}};
}

std::string number(const Json& value, const char* format) {
  if (value.is_null()) return "not measured";
  char text[64];
  std::snprintf(text, sizeof text, format, value.get<double>());
  return text;
}

std::string as_text(const Json& report) {
  const std::string threads = report["threads"].dump();
  std::string out = report["model"].get<std::string>() + " (" +
                    report["architecture"].get<std::string>() + "), " + threads + " threads, " +
                    report["path"].get<std::string>() + " path\n";
  const std::string depth = report["depth"] == 0 ? "" : " at depth " + report["depth"].dump();
  out += "prefill of " + report["prompt"].dump() + depth + ":  " +
         number(report["prefill_tokens_per_s"], "%.1f tokens/s") + "\n";
  out += "decode of " + report["tokens"].dump() + depth + ":  " +
         number(report["decode_tokens_per_s"], "%.1f tokens/s") + "\n";
  out += "time to first token:  " + number(report["ttft_ms"], "%.1f ms") + "\n";
  out += "load:  " + number(report["load_ms"], "%.1f ms") + ", to the first token " +
         number(report["load_to_first_token_ms"], "%.1f ms") + "\n";
  out += "read per token:  " + number(report["bytes_per_token"], "%.0f bytes") + " = " +
         number(report["decode_gb_per_s"], "%.2f GB/s") + "\n";
  out += "roofs:  read " + number(report["read_roof_gb_per_s"], "%.2f GB/s") + ", DRAM read " +
         number(report["dram_read_gb_per_s"], "%.2f GB/s") + ", int8 " +
         number(report["int8_roof_tmac_per_s"], "%.3f T MAC/s") + "\n";
  if (!report["share_of_read_roof"].is_null()) {
    out += "decode reaches " + number(report["share_of_read_roof"].get<double>() * 100, "%.0f %%") +
           " of the read roof\n";
  }
  return out;
}

std::string load_as_text(const Json& result) {
  return result["sessions"].dump() + " sessions, " + result["requests"].dump() + " requests in " +
         number(result["seconds"], "%.2f s") + ":  decode " +
         number(result["total_decode_tokens_per_s"], "%.1f tokens/s") +
         ", time to first token p50 " + number(result["ttft_ms_p50"], "%.1f ms") + " p99 " +
         number(result["ttft_ms_p99"], "%.1f ms") + ", between tokens p50 " +
         number(result["inter_token_ms_p50"], "%.1f ms") + " p99 " +
         number(result["inter_token_ms_p99"], "%.1f ms") + ", " + result["cached_tokens"].dump() +
         " of " + result["prompt_tokens"].dump() + " prompt tokens cached, " +
         result["kv_pages_held"].dump() + " KV pages, " +
         number(result["outside_compute_share"].get<double>() * 100, "%.2f %%") +
         " of the time outside of passes\n";
}

std::string arrival_as_text(const Json& row) {
  return "a prompt of " + row["arriving_prompt"].dump() + " arrives beside " +
         row["sessions"].dump() + ":  between tokens p99 " +
         number(row["arrival_inter_token_ms_p99"], "%.1f ms") + ", without it " +
         number(row["inter_token_ms_p99"], "%.1f ms") + "; its first token " +
         number(row["arrival_ttft_ms"], "%.0f ms") + ", on an idle engine " +
         number(row["idle_ttft_ms"], "%.0f ms") + "\n";
}

LoadArgs load_args(const Args& args) {
  return {args.session, args.draft_tokens};
}

LoadedModel open_warm(const Args& args) {
  LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
  // The first request of a model pays for its pages.
  run_load(loaded, load_args(args), simultaneous({1, 0, 1, 1}, loaded.info.vocabulary));
  return loaded;
}

double first_token_ms(const LoadReport& report, int64_t session) {
  for (const RequestTimes& times : report.times)
    if (times.session == session && !times.token_s.empty())
      return (times.token_s.front() - times.submitted_s) * 1e3;
  return 0;
}

// A long prompt that comes when a quarter of the decoding, which took `decode_s` before, is over.
Json arrival_json(const Args& args, int64_t sessions, double decode_s) {
  constexpr int64_t kArriving = 1 << 20;
  const auto arriving = [&](const LoadedModel& loaded) {
    LoadRequest request{0, kArriving, {}, 1, 0};
    request.prompt = spread_ids(args.arriving_prompt, kArriving, loaded.info.vocabulary);
    return request;
  };
  const LoadedModel idle = open_warm(args);
  const LoadReport alone = run_load(idle, load_args(args), {arriving(idle)});
  const LoadedModel loaded = open_warm(args);
  auto requests = simultaneous({sessions, args.shared_prefix, args.prompt, args.tokens},
                               loaded.info.vocabulary);
  requests.push_back(arriving(loaded));
  requests.back().round = 1;
  requests.back().arrival_s = decode_s / 4;
  const LoadReport report = run_load(loaded, load_args(args), std::move(requests));
  double begin = 0, end = 0;
  for (const RequestTimes& times : report.times) {
    if (times.session != kArriving) continue;
    begin = times.submitted_s;
    end = times.token_s.front();
  }
  std::vector<double> gaps_ms;
  for (const RequestTimes& times : report.times)
    for (size_t i = 1; times.session != kArriving && i < times.token_s.size(); ++i)
      if (times.token_s[i] > begin && times.token_s[i] <= end)
        gaps_ms.push_back((times.token_s[i] - times.token_s[i - 1]) * 1e3);
  return {{"arriving_prompt", args.arriving_prompt},
          {"arrival_inter_token_ms_p50", percentile(gaps_ms, 0.5)},
          {"arrival_inter_token_ms_p99", percentile(gaps_ms, 0.99)},
          {"arrival_tokens", gaps_ms.size()},
          {"arrival_ttft_ms", first_token_ms(report, kArriving)},
          {"idle_ttft_ms", first_token_ms(alone, kArriving)}};
}

// Each number of sessions on an engine of its own, so that none finds the KV of another.
void bench_load(const Args& args) {
  if (!args.trace.empty() && args.sessions)
    throw Failure("--trace and --sessions: one of them", kExitUsage);
  Json results = Json::array();
  Json out;
  const auto add = [&](const LoadedModel& loaded, std::vector<LoadRequest> requests) {
    results.push_back(load_json(run_load(loaded, load_args(args), std::move(requests))));
    out["model"] = optima_model_name(loaded.model.get());
    out["threads"] = optima_engine_threads(loaded.engine.get());
    if (!args.json) write_out(load_as_text(results.back()));
  };
  if (!args.trace.empty()) {
    const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
    add(loaded, read_trace(args.trace, loaded.info.vocabulary));
  }
  for (const int32_t sessions : args.sessions.value_or(std::vector<int32_t>())) {
    if (sessions < 1) throw Failure("--sessions: numbers from 1 on", kExitUsage);
    const LoadedModel loaded = open_warm(args);
    add(loaded, simultaneous({sessions, args.shared_prefix, args.prompt, args.tokens},
                             loaded.info.vocabulary));
    if (args.arriving_prompt == 0) continue;
    Json& row = results.back();
    const double tokens = static_cast<double>(sessions) * static_cast<double>(args.tokens);
    row.update(
        arrival_json(args, sessions, tokens / row["total_decode_tokens_per_s"].get<double>()));
    if (!args.json) write_out(arrival_as_text(row));
  }
  out["results"] = std::move(results);
  if (args.json) write_json(out);
}

void bench(const Args& args) {
  if (!args.trace.empty() || args.sessions) return bench_load(args);
  Bench bench(args);
  const Measured measured = bench.measure();
  Json report = report_json(args, bench.loaded(), measured);
  const Json nothing = {{"read_roof_gb_per_s", nullptr},
                        {"dram_read_gb_per_s", nullptr},
                        {"int8_roof_tmac_per_s", nullptr},
                        {"share_of_read_roof", nullptr}};
  report.update(nothing);
  if (!args.no_roofs) {
    const auto bytes = static_cast<int64_t>(measured.bytes_per_token);
    report.update(roofs_json(probe(optima_engine_threads(bench.loaded().engine.get()), bytes)));
    const double roof = report["read_roof_gb_per_s"];
    if (roof > 0) {
      report["share_of_read_roof"] = report["decode_gb_per_s"].get<double>() / roof;
    }
  }
  if (args.json) {
    write_json(report);
  } else {
    write_out(as_text(report));
  }
}

}  // namespace

void add_bench(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command(
      "bench", "Speed of a model beside the roofs of the machine; medians of repetitions");
  add_model_options(command, args->model);
  add_draft_options(command, args->model, args->draft_tokens);
  command.number("-p,--prompt", args->prompt, {1, 1 << 30}, "ids of the prompt");
  command.number("-n,--tokens", args->tokens, {1, 1 << 30}, "decode steps");
  command.number("-r,--repetitions", args->repetitions, {1, 1000}, "repetitions");
  command.ids("--sessions", args->sessions,
              "so many sessions at once, one run for each number: 1,2,4");
  command.number("--arriving-prompt", args->arriving_prompt, {0, 1 << 30},
                 "ids of a prompt that arrives while they decode, with --sessions");
  command.number("--shared-prefix", args->shared_prefix, {0, 1 << 30},
                 "ids before the prompt that all sessions share, with --sessions");
  command.text("--trace", args->trace, "file of requests and when they arrive (CSV)");
  command.number("--depth", args->depth, {0, 1 << 30}, "ids that the session holds before");
  add_path_options(command, args->session);
  command.flag("--no-roofs", args->no_roofs, "do not measure the machine");
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { bench(*args); });
}

}  // namespace cli
