// optima run: completes a raw prompt, or answers it as a chat message with --chat.
#include "commands.h"
#include "samples.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  SessionArgs session;
  GenerationArgs generation;
  std::optional<std::string> prompt;
  std::string system;
  bool chat = false;
  bool json = false;
  int32_t samples = 1;
};

std::vector<int32_t> prompt_ids(const optima_model* model, const Args& args) {
  const std::string text = given_or_stdin(args.prompt);
  if (!args.chat) return tokenize(model, text, 0);
  Json messages = Json::array();
  if (!args.system.empty()) messages.push_back({{"role", "system"}, {"content", args.system}});
  messages.push_back({{"role", "user"}, {"content", text}});
  return chat_prompt(model, messages);
}

// Tokens in a second; 0 when nothing was measured.
double per_second(int64_t tokens, int64_t ns) {
  return tokens > 0 && ns > 0 ? static_cast<double>(tokens) * 1e9 / static_cast<double>(ns) : 0;
}

Json report(const LoadedModel& loaded, const optima_result* result,
            const std::vector<int32_t>& prompt) {
  const optima_counters counters = counters_of(result);
  const int64_t computed = counters.prompt_tokens - counters.cached_tokens;
  return {
      {"text", result_text(result)},
      {"prompt_ids", prompt},
      {"token_ids", result_ids(result)},
      {"finish_reason", optima_finish_name(optima_result_finish(result))},
      {"cached_tokens", counters.cached_tokens},
      {"cache_miss", optima_cache_miss_name(counters.cache_miss)},
      {"draft_tokens", counters.draft_tokens},
      {"draft_tokens_accepted", counters.draft_tokens_accepted},
      {"timings",
       {{"load_ms", loaded.load_ms},
        {"ttft_ms", static_cast<double>(counters.first_token_ns) / 1e6},
        {"prefill_tokens_per_s", per_second(computed, counters.prefill_ns)},
        {"decode_tokens_per_s", per_second(counters.output_tokens - 1, counters.decode_ns)}}},
  };
}

// The most probable answer; all of them in the JSON object.
void run_samples(const Args& args, const LoadedModel& loaded, optima_session* session,
                 const std::vector<int32_t>& prompt) {
  const std::vector<Sample> samples =
      generate_samples(session, prompt, args.generation, args.samples);
  if (!args.json) {
    write_out(result_text(samples.front().result.get()) + "\n");
    return;
  }
  Json out = report(loaded, samples.front().result.get(), prompt);
  out["samples"] = Json::array();
  for (const Sample& sample : samples)
    out["samples"].push_back({{"text", result_text(sample.result.get())},
                              {"token_ids", result_ids(sample.result.get())},
                              {"mean_logprob", sample.mean_logprob}});
  write_json(out);
}

void run(const Args& args) {
  if (!args.system.empty() && !args.chat) throw Failure("--system needs --chat", kExitUsage);
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
  const std::vector<int32_t> prompt = prompt_ids(loaded.model.get(), args);
  const Session session = make_session(loaded, args.session);
  if (args.samples > 1) {
    run_samples(args, loaded, session.get(), prompt);
    return;
  }
  Stream stream;
  stream.text = args.json ? Stream::Text::kept : Stream::Text::shown;
  const Result result = generate(session.get(), prompt, args.generation, stream);
  if (args.json) {
    write_json(report(loaded, result.get(), prompt));
  } else {
    write_out("\n");
  }
}

}  // namespace

void add_run(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command(
      "run", "Completes a prompt: BOS by the file's rule, special tokens parsed, no template");
  add_model_options(command, args->model);
  command.text("-p,--prompt", args->prompt, "prompt (else stdin)");
  add_generation_options(command, args->generation);
  add_draft_options(command, args->model, args->generation.draft_tokens);
  add_context_option(command, args->session);
  command.flag("--chat", args->chat, "the prompt is a user's message: use the template");
  command.text("--system", args->system, "system message, with --chat");
  add_path_options(command, args->session);
  command.number("--samples", args->samples, {1, 64},
                 "so many answers to the prompt; the most probable one is printed");
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { run(*args); });
}

}  // namespace cli
