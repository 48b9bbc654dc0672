// A generation is one blocking call; its callback, on the same thread, writes the text and shows
// how far a long prompt has come. An exception must not cross the library, so a failed write is
// remembered and thrown again after the call.
#include "generation.h"

#include <exception>

namespace cli {

void add_generation_options(Command& command, GenerationArgs& args) {
  command.number("-n,--tokens", args.max_tokens, kNotNegative,
                 "most output tokens (0 = until it stops)");
  command.number("--temp", args.temperature, kNotNegative, "temperature (0 = greedy)");
  command.number("--top-k", args.top_k, {0, 1 << 30}, "keep the k most probable tokens (0 = all)");
  command.number("--top-p", args.top_p, kShare, "keep this mass of probability (0 = off)");
  command.number("--min-p", args.min_p, kShare, "drop below this share of the best one (0 = off)");
  command.number("--typical", args.typical_p, kShare, "locally typical sampling (0 = off)");
  command.number("--repetition-penalty", args.repetition_penalty, kNotNegative,
                 "divides logits of tokens that occurred (0 = off)");
  command.number("--presence-penalty", args.presence_penalty, {-100, 100},
                 "subtracted once for a token that occurred");
  command.number("--frequency-penalty", args.frequency_penalty, {-100, 100},
                 "subtracted for each occurrence");
  command.number("--top-n-sigma", args.top_n_sigma, kNotNegative,
                 "drop logits so many deviations below the best (0 = off)");
  command.number("--xtc-probability", args.xtc_probability, kShare,
                 "how often XTC drops the most probable tokens (0 = off)");
  command.number("--xtc-threshold", args.xtc_threshold, kShare, "of XTC (0 = 0.1)");
  command.number("--mirostat-tau", args.mirostat_tau, kNotNegative,
                 "mirostat 2: surprise in bits to aim at (0 = off)");
  command.number("--dry-multiplier", args.dry_multiplier, kNotNegative,
                 "DRY: penalty for going on with a repetition (0 = off)");
  command.number("--seed", args.seed, {0, 1.9e19}, "seed of the random numbers");
  command.texts("--stop", args.stops, "a string that ends the output (may be repeated)");
  command.flag("--json-output", args.json_output, "the answer is one JSON value");
  command.text("--json-schema", args.json_schema, "file: the answer is JSON of this schema");
  command.text("--grammar", args.grammar, "file: the answer is a text of this GBNF grammar");
  command.text("--regex", args.regex, "the answer matches this regular expression");
  command.flag("--ignore-eos", args.ignore_eos, "end-of-generation tokens do not end it");
}

namespace {

struct Running {
  Stream* stream;
  Progress progress;
  std::exception_ptr failure;
};

optima_verdict on_event(Running& running, const optima_event& event) {
  Stream& stream = *running.stream;
  if (event.type == OPTIMA_EVENT_PREFILL) {
    running.progress.show("prompt " + std::to_string(event.tokens_done) + " of " +
                          std::to_string(event.tokens_total) + " tokens");
    return OPTIMA_CONTINUE;
  }
  running.progress.clear();
  const std::string_view text(event.text == nullptr ? "" : event.text,
                              static_cast<size_t>(event.text_bytes));
  stream.so_far += text;
  if (stream.text == Stream::Text::shown && !text.empty()) write_out(text);
  const bool stop =
      stream.interrupted != nullptr && stream.interrupted() == Stream::Interrupt::stop;
  return stop ? OPTIMA_STOP : OPTIMA_CONTINUE;
}

void fill_sampling(optima_request_desc& desc, const GenerationArgs& args) {
  desc.max_tokens = args.max_tokens;
  desc.temperature = args.temperature;
  desc.top_p = args.top_p;
  desc.top_k = args.top_k;
  desc.min_p = args.min_p;
  desc.typical_p = args.typical_p;
  desc.repetition_penalty = args.repetition_penalty;
  desc.presence_penalty = args.presence_penalty;
  desc.frequency_penalty = args.frequency_penalty;
  desc.top_n_sigma = args.top_n_sigma;
  desc.xtc_probability = args.xtc_probability;
  desc.xtc_threshold = args.xtc_threshold;
  desc.mirostat_tau = args.mirostat_tau;
  desc.dry_multiplier = args.dry_multiplier;
  desc.seed = args.seed;
  desc.draft_tokens = args.draft_tokens;
  desc.flags = args.ignore_eos ? OPTIMA_REQUEST_IGNORE_EOS : 0;
}

// What the answer must look like; `text` keeps what the description points to.
void fill_grammar(optima_request_desc& desc, const GenerationArgs& args, std::string& text) {
  const int given = (args.json_output ? 1 : 0) + (args.json_schema.empty() ? 0 : 1) +
                    (args.grammar.empty() ? 0 : 1) + (args.regex.empty() ? 0 : 1);
  if (given == 0) return;
  if (given > 1)
    throw Failure("--json-output, --json-schema, --grammar, --regex: more than one is given",
                  kExitUsage);
  if (args.json_output) {
    desc.grammar_kind = OPTIMA_GRAMMAR_JSON;
    return;
  }
  if (!args.regex.empty()) {
    desc.grammar_kind = OPTIMA_GRAMMAR_REGEX;
    text = args.regex;
  } else {
    const bool schema = !args.json_schema.empty();
    desc.grammar_kind = schema ? OPTIMA_GRAMMAR_JSON_SCHEMA : OPTIMA_GRAMMAR_GBNF;
    text = read_file(schema ? args.json_schema : args.grammar);
  }
  desc.grammar = text.data();
  desc.grammar_bytes = text.size();
}

}  // namespace

Description::Description(const GenerationArgs& args) : desc(sized<optima_request_desc>()) {
  for (const std::string& stop : args.stops) {
    stops_.push_back(stop.data());
    stop_bytes_.push_back(stop.size());
  }
  fill_sampling(desc, args);
  fill_grammar(desc, args, grammar_);
  desc.stops = stops_.data();
  desc.stop_bytes = stop_bytes_.data();
  desc.stop_count = stops_.size();
}

Result generate(optima_session* session, const std::vector<int32_t>& prompt,
                const GenerationArgs& args, Stream& stream) {
  Running running{&stream, {}, nullptr};
  Description description(args);
  optima_request_desc& desc = description.desc;
  desc.prompt_ids = prompt.data();
  desc.prompt_id_count = prompt.size();
  desc.cancel = stream.cancel;
  desc.user = &running;
  desc.on_event = [](void* user, const optima_event* event) -> int32_t {
    auto& self = *static_cast<Running*>(user);
    try {
      return on_event(self, *event);
    } catch (...) {
      self.failure = std::current_exception();
      return OPTIMA_CANCEL;
    }
  };
  Result result = make<Result>(optima_generate, session, &desc);
  if (running.failure) std::rethrow_exception(running.failure);
  return result;
}

std::string result_text(const optima_result* result) {
  int64_t bytes = 0;
  const char* text = optima_result_text(result, &bytes);
  return std::string(text, static_cast<size_t>(bytes));
}

std::vector<int32_t> result_ids(const optima_result* result) {
  int64_t count = 0;
  const int32_t* ids = optima_result_token_ids(result, &count);
  return std::vector<int32_t>(ids, ids + count);
}

std::vector<int32_t> chat_prompt(const optima_model* model, const Json& messages) {
  const std::string json = messages.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto desc = sized<optima_chat_desc>();
  desc.messages_json = json.data();
  desc.messages_json_bytes = json.size();
  const auto buffer = make<Buffer>(optima_model_render, model, &desc);
  int64_t bytes = 0;
  const char* text = optima_buffer_text(buffer.get(), &bytes);
  // The template writes the special tokens itself.
  return tokenize(model, {text, static_cast<size_t>(bytes)}, OPTIMA_TEXT_NO_ADD_SPECIAL);
}

}  // namespace cli
