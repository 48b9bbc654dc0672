// optima perplexity: exp of the mean negative log-likelihood over windows of C ids. The text is
// tokenized once and cut into whole windows; the first id of a window is replaced by BOS where the
// model adds one; the predictions of the ids from C/2 + 1 on are scored, so each has at least C/2
// ids of context. What is left over at the end is not used.
#include <cmath>
#include <cstdio>

#include "cli_util.h"
#include "commands.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  SessionArgs session;
  std::string file;
  int64_t window = 512;
  bool json = false;
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

struct Measured {
  double nll = 0;
  int64_t scored = 0;
  int64_t ids = 0;
  std::vector<double> per_window;
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
  Measured out;
  out.ids = static_cast<int64_t>(ids.size());
  Progress progress;
  for (int64_t w = 0; w < windows; ++w) {
    const auto begin = ids.begin() + w * args.window;
    std::vector<int32_t> window(begin, begin + args.window);
    if (loaded.info.adds_bos != 0) window[0] = loaded.info.bos;
    double nll = 0;
    const std::vector<float> losses = score(session.get(), window);
    for (const float loss : losses) nll += loss;
    out.nll += nll;
    out.scored += static_cast<int64_t>(losses.size());
    out.per_window.push_back(std::exp(nll / static_cast<double>(losses.size())));
    char line[96];
    std::snprintf(line, sizeof line, "window %lld of %lld: %.4f", static_cast<long long>(w + 1),
                  static_cast<long long>(windows), out.value());
    progress.show(line);
  }
  return out;
}

void perplexity(const Args& args) {
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
  const Stopwatch watch;
  const Measured measured = measure(loaded, args);
  const double seconds = watch.ms() / 1e3;
  if (args.json) {
    write_json({{"perplexity", measured.value()},
                {"ids", measured.ids},
                {"window", args.window},
                {"windows", measured.per_window.size()},
                {"scored", measured.scored},
                {"path", path_name(args.session)},
                {"kv_type", args.session.kv_type},
                {"seconds", seconds},
                {"per_window", measured.per_window}});
    return;
  }
  char line[160];
  std::snprintf(line, sizeof line, "perplexity %.4f  (%zu windows of %lld, %lld scored, %.1f s)\n",
                measured.value(), measured.per_window.size(), static_cast<long long>(args.window),
                static_cast<long long>(measured.scored), seconds);
  write_out(line);
}

}  // namespace

void add_perplexity(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command("perplexity", "How well a model predicts a text");
  add_model_options(command, args->model);
  command.required("-f,--file", args->file, "text file (- = stdin)");
  command.number("-c,--context", args->window, {4, 1 << 30}, "ids in a window");
  add_path_options(command, args->session);
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { perplexity(*args); });
}

}  // namespace cli
