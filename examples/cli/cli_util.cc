// Everything here is glue: it turns the C ABI's statuses into one kind of exception, which main.cc
// prints, so that the commands read as the sequence of what they do.
#include "cli_util.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace cli {

void check(optima_status status, optima_error*& error) {
  const Error owned(std::exchange(error, nullptr));
  if (status == OPTIMA_OK) return;
  std::string message = optima_error_message(owned.get());
  if (message.empty()) message = "the call failed";
  throw Failure(message + " [" + optima_status_name(status) + "]");
}

namespace {

std::string read_all(std::FILE* file, const std::string& name) {
  std::string bytes;
  char block[1 << 16];
  while (true) {
    const size_t n = std::fread(block, 1, sizeof block, file);
    bytes.append(block, n);
    if (n < sizeof block) break;
  }
  if (std::ferror(file)) throw Failure("cannot read " + name + ": " + std::strerror(errno));
  return bytes;
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") return read_all(stdin, "stdin");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) throw Failure("cannot open " + path + ": " + std::strerror(errno));
  return read_all(file.get(), path);
}

std::string given_or_stdin(const std::optional<std::string>& text) {
  return text ? *text : read_file("-");
}

void write_out(std::string_view bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Failure(std::string("cannot write to stdout: ") + std::strerror(errno));
  }
}

void write_json(const Json& value) {
  write_out(value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& line) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r%-*s", static_cast<int>(width_), line.c_str());
  width_ = line.size();
}

void Progress::clear() {
  if (width_ == 0) return;
  std::fprintf(stderr, "\r%*s\r", static_cast<int>(width_), "");
  width_ = 0;
}

void add_model_options(Command& command, ModelArgs& args) {
  command.required("MODEL", args.path, "GGUF file or Hugging Face folder");
  command.text("--repack", args.repack,
               "hold weights in a faster form too: when-free (if they take half of the free memory "
               "at most), off, on");
  command.text("--weights", args.weights,
               "weights of 16 and 32 bits: as-is, or quantised at load: q8_0, q4_0");
  add_threads_option(command, args.threads);
}

void add_draft_options(Command& command, ModelArgs& args, int64_t& draft_tokens) {
  command.text("--draft-model", args.draft_path,
               "smaller model of the same vocabulary that guesses tokens; the answer is the same");
  command.number("--draft-tokens", draft_tokens, {0, 32},
                 "most tokens guessed at once; without --draft-model by what followed before");
}

void add_threads_option(Command& command, int32_t& threads) {
  command.number("-t,--threads", threads, {0, 4096}, "threads that compute (0 = what is allowed)");
}

Engine make_engine(int threads) {
  auto options = sized<optima_engine_options>();
  options.threads = threads;
  return make<Engine>(optima_engine_create, &options);
}

namespace {

optima_weights weights_by_name(const std::string& name) {
  if (name == "as-is") return OPTIMA_WEIGHTS_AS_IS;
  if (name == "q8_0") return OPTIMA_WEIGHTS_Q8_0;
  if (name == "q4_0") return OPTIMA_WEIGHTS_Q4_0;
  throw Failure("--weights: " + name + " is none of as-is, q8_0, q4_0", kExitUsage);
}

optima_repack repack_by_name(const std::string& name) {
  if (name == "when-free") return OPTIMA_REPACK_WHEN_FREE;
  if (name == "off") return OPTIMA_REPACK_OFF;
  if (name == "on") return OPTIMA_REPACK_ON;
  throw Failure("--repack: " + name + " is none of when-free, off, on", kExitUsage);
}

Model open_file(const LoadedModel& loaded, const std::string& path, const ModelArgs& args,
                optima_content content) {
  Progress progress;
  auto options = sized<optima_model_options>();
  options.content = content;
  options.weights = weights_by_name(args.weights);
  options.repack = repack_by_name(args.repack);
  options.user = &progress;
  options.progress = [](void* user, float fraction) -> int32_t {
    const int percent = static_cast<int>(fraction * 100);
    static_cast<Progress*>(user)->show("loading " + std::to_string(percent) + " %");
    return 0;
  };
  return make<Model>(optima_model_open_path, loaded.engine.get(), path.c_str(), path.size(),
                     &options);
}

}  // namespace

LoadedModel open_model(const ModelArgs& args, optima_content content) {
  LoadedModel loaded{make_engine(args.threads), nullptr, nullptr, sized<optima_model_info>()};
  const Stopwatch watch;
  loaded.model = open_file(loaded, args.path, args, content);
  loaded.load_ms = watch.ms();
  if (!args.draft_path.empty()) loaded.draft = open_file(loaded, args.draft_path, args, content);
  optima_error* error = nullptr;
  check(optima_model_get_info(loaded.model.get(), &loaded.info, &error), error);
  return loaded;
}

void add_context_option(Command& command, SessionArgs& args) {
  command.number("-c,--context", args.context_tokens, kNotNegative, "context (0 = the model's)");
}

void add_kv_type_option(Command& command, SessionArgs& args) {
  command.text("--kv-type", args.kv_type, "how keys and values are kept: f16, bf16, q8_0");
}

void add_path_options(Command& command, SessionArgs& args) {
  command.flag("--reference", args.reference, "plain fp32 arithmetic (slow)");
  command.flag("--deterministic", args.deterministic,
               "the same bits whatever is computed beside (not with --reference)");
  add_kv_type_option(command, args);
}

optima_path path_of(const SessionArgs& args) {
  if (args.reference && args.deterministic)
    throw Failure("--reference and --deterministic exclude each other", kExitUsage);
  if (args.reference) return OPTIMA_PATH_REFERENCE;
  return args.deterministic ? OPTIMA_PATH_DETERMINISTIC : OPTIMA_PATH_FAST;
}

const char* path_name(const SessionArgs& args) {
  if (args.reference) return "reference";
  return args.deterministic ? "deterministic" : "fast";
}

optima_kv_type kv_type_of(const SessionArgs& args) {
  if (args.kv_type == "f16") return OPTIMA_KV_TYPE_F16;
  if (args.kv_type == "bf16") return OPTIMA_KV_TYPE_BF16;
  if (args.kv_type == "q8_0") return OPTIMA_KV_TYPE_Q8_0;
  throw Failure("--kv-type: " + args.kv_type + " is none of f16, bf16, q8_0", kExitUsage);
}

Session make_session(const LoadedModel& loaded, const SessionArgs& args) {
  auto options = sized<optima_session_options>();
  options.context_tokens = args.context_tokens;
  options.path = path_of(args);
  options.kv_type = kv_type_of(args);
  options.draft_model = loaded.draft.get();
  return make<Session>(optima_session_create, loaded.model.get(), &options);
}

std::vector<int32_t> tokenize(const optima_model* model, std::string_view text, uint32_t flags) {
  const auto buffer = make<Buffer>(optima_model_tokenize, model, text.data(), text.size(), flags);
  int64_t count = 0;
  const int32_t* ids = optima_buffer_ids(buffer.get(), &count);
  return std::vector<int32_t>(ids, ids + count);
}

std::string detokenize(const optima_model* model, const std::vector<int32_t>& ids, uint32_t flags) {
  const auto buffer = make<Buffer>(optima_model_detokenize, model, ids.data(), ids.size(), flags);
  int64_t bytes = 0;
  const char* text = optima_buffer_text(buffer.get(), &bytes);
  return std::string(text, static_cast<size_t>(bytes));
}

optima_counters counters_of(const optima_result* result) {
  auto counters = sized<optima_counters>();
  optima_error* error = nullptr;
  check(optima_result_counters(result, &counters, &error), error);
  return counters;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace cli
