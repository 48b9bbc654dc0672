// optima perplexity: exp of the mean negative log-likelihood over windows of C ids. The text is
// tokenized once and cut into whole windows; the first id of a window is replaced by BOS where the
// model adds one; the predictions of the ids from C/2 + 1 on are scored, so each has at least C/2
// ids of context. What is left over at the end is not used.
//
// With --kl-base and --kl the logits of the scored positions are asked for, and written down or
// compared with those of an earlier run (divergence.h).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>

#include "cli_util.h"
#include "commands.h"
#include "divergence.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  SessionArgs session;
  std::string file;
  int64_t window = 512;
  int64_t step = 256;   // ids of a request in the scored half, where logits are asked for
  std::string kl_base;  // written; empty = not
  std::string kl;       // compared with; empty = not
  bool json = false;
  bool wants_logits() const { return !kl_base.empty() || !kl.empty(); }
};

// What is done with the logits of the scored positions, in order.
class LogitsUse {
 public:
  LogitsUse(const Args& args, const BaseHeader& header)
      : vocabulary_(static_cast<size_t>(header.vocabulary)) {
    if (!args.kl.empty()) reader_.emplace(args.kl, header);
    if (!args.kl_base.empty()) writer_.emplace(args.kl_base, header);
  }
  size_t vocabulary() const { return vocabulary_; }
  // Returns the loss of `next`, the id that follows in the text.
  double take(std::span<const float> logits, int32_t next) {
    if (writer_) writer_->add(logits);
    return reader_ ? divergence_.add(reader_->next(), logits, next) : loss_of(logits, next);
  }
  // Of the comparison; null without one.
  Json finish() {
    if (writer_) writer_->finish();
    return reader_ ? divergence_.report() : Json();
  }

 private:
  size_t vocabulary_;
  std::optional<BaseReader> reader_;
  std::optional<BaseWriter> writer_;
  Divergence divergence_;
};

// Negative log-likelihood of each scored id of one window.
std::vector<float> score(optima_session* session, const std::vector<int32_t>& window) {
  optima_error* error = nullptr;
  check(optima_session_reset(session, &error), error);
  auto desc = sized<optima_request_desc>();
  desc.prompt_ids = window.data();
  desc.prompt_id_count = window.size();
  desc.flags = OPTIMA_REQUEST_PROMPT_ONLY | OPTIMA_REQUEST_PROMPT_LOGPROBS;
  desc.prompt_logprobs_from = static_cast<int64_t>(window.size() / 2 + 1);
  const auto result = make<Result>(optima_generate, session, &desc);
  int64_t count = 0;
  const float* logprobs = optima_result_prompt_logprobs(result.get(), &count);
  std::vector<float> losses(logprobs, logprobs + count);
  for (float& loss : losses) loss = -loss;
  return losses;
}

// The same by the logits, `step` ids at a time: each request has the text from the beginning, of
// which the session holds all but the last ids.
std::vector<float> score_logits(optima_session* session, const std::vector<int32_t>& window,
                                int64_t step, LogitsUse& use) {
  optima_error* error = nullptr;
  check(optima_session_reset(session, &error), error);
  const auto size = static_cast<int64_t>(window.size());
  const size_t vocabulary = use.vocabulary();
  std::vector<float> losses, rows;
  for (int64_t first = size / 2; first < size - 1; first += step) {
    const int64_t end = std::min(first + step, size - 1);
    std::vector<int64_t> positions(static_cast<size_t>(end - first));
    std::iota(positions.begin(), positions.end(), first);
    rows.resize(positions.size() * vocabulary);
    auto desc = sized<optima_request_desc>();
    desc.prompt_ids = window.data();
    desc.prompt_id_count = static_cast<size_t>(end);
    desc.flags = OPTIMA_REQUEST_PROMPT_ONLY;
    desc.logits_positions = positions.data();
    desc.logits_position_count = positions.size();
    desc.logits_out = rows.data();
    desc.logits_capacity = rows.size();
    make<Result>(optima_generate, session, &desc);
    for (size_t i = 0; i < positions.size(); ++i)
      losses.push_back(
          static_cast<float>(use.take(std::span(rows).subspan(i * vocabulary, vocabulary),
                                      window[static_cast<size_t>(positions[i]) + 1])));
  }
  return losses;
}

struct Measured {
  double nll = 0;
  int64_t scored = 0;
  int64_t ids = 0;
  std::vector<double> per_window;
  Json divergence;  // null without --kl
  double value() const { return std::exp(nll / static_cast<double>(scored)); }
};

Measured measure(const LoadedModel& loaded, const Args& args) {
  // Special tokens written in a plain text are characters.
  const std::vector<int32_t> ids =
      tokenize(loaded.model.get(), read_file(args.file), OPTIMA_TEXT_NO_PARSE_SPECIAL);
  const auto windows = static_cast<int64_t>(ids.size()) / args.window;
  if (windows == 0) {
    throw Failure(args.file + " has " + std::to_string(ids.size()) + " token ids, one window of " +
                  std::to_string(args.window) + " is needed");
  }
  SessionArgs session_args = args.session;
  session_args.context_tokens = args.window;
  const Session session = make_session(loaded, session_args);
  std::optional<LogitsUse> use;
  if (args.wants_logits()) use.emplace(args, base_header(ids, args.window, loaded.info.vocabulary));
  Measured out;
  out.ids = static_cast<int64_t>(ids.size());
  Progress progress;
  for (int64_t w = 0; w < windows; ++w) {
    const auto begin = ids.begin() + w * args.window;
    std::vector<int32_t> window(begin, begin + args.window);
    if (loaded.info.adds_bos != 0) window[0] = loaded.info.bos;
    double nll = 0;
    const std::vector<float> losses =
        use ? score_logits(session.get(), window, args.step, *use) : score(session.get(), window);
    for (const float loss : losses) nll += loss;
    out.nll += nll;
    out.scored += static_cast<int64_t>(losses.size());
    out.per_window.push_back(std::exp(nll / static_cast<double>(losses.size())));
    char line[96];
    std::snprintf(line, sizeof line, "window %lld of %lld: %.4f", static_cast<long long>(w + 1),
                  static_cast<long long>(windows), out.value());
    progress.show(line);
  }
  if (use) out.divergence = use->finish();
  return out;
}

// "KL divergence 0.0012 +- 0.0001 ..." of the comparison.
std::string divergence_line(const Json& kl) {
  char line[240];
  std::snprintf(line, sizeof line,
                "KL divergence mean %.6f +- %.6f, median %.6f, 99.9 %% %.6f, max %.6f\n"
                "same top token %.2f %%, RMS of the change in probability %.3f %%, "
                "perplexity x %.5f +- %.5f\n",
                kl["mean"].get<double>(), kl["mean_error"].get<double>(),
                kl["median"].get<double>(), kl["p999"].get<double>(), kl["max"].get<double>(),
                100 * kl["same_top"].get<double>(), 100 * kl["rms_dp"].get<double>(),
                kl["perplexity_ratio"].get<double>(), kl["perplexity_ratio_error"].get<double>());
  return line;
}

void perplexity(const Args& args) {
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
  const Stopwatch watch;
  const Measured measured = measure(loaded, args);
  const double seconds = watch.ms() / 1e3;
  if (args.json) {
    Json out = {{"perplexity", measured.value()},
                {"ids", measured.ids},
                {"window", args.window},
                {"windows", measured.per_window.size()},
                {"scored", measured.scored},
                {"path", path_name(args.session)},
                {"kv_type", args.session.kv_type},
                {"seconds", seconds},
                {"per_window", measured.per_window}};
    if (!measured.divergence.is_null()) out["kl"] = measured.divergence;
    write_json(out);
    return;
  }
  char line[160];
  std::snprintf(line, sizeof line, "perplexity %.4f  (%zu windows of %lld, %lld scored, %.1f s)\n",
                measured.value(), measured.per_window.size(), static_cast<long long>(args.window),
                static_cast<long long>(measured.scored), seconds);
  write_out(line);
  if (!measured.divergence.is_null()) write_out(divergence_line(measured.divergence));
}

}  // namespace

void add_perplexity(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command("perplexity", "How well a model predicts a text");
  add_model_options(command, args->model);
  command.required("-f,--file", args->file, "text file (- = stdin)");
  command.number("-c,--context", args->window, {4, 1 << 30}, "ids in a window");
  add_path_options(command, args->session);
  command.text("--kl-base", args->kl_base, "write the logits of the scored ids into this file");
  command.text("--kl", args->kl, "compare them with those in this file");
  command.number(
      "--step", args->step, {1, 1 << 20},
      "ids in a pass behind the first half, with --kl-base or --kl (1 = as answers are)");
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { perplexity(*args); });
}

}  // namespace cli
