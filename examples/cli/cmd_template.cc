// optima template: a conversation in JSON as the prompt that the model's chat template makes of it.
#include "cli_util.h"
#include "commands.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  std::string messages, tools, extra, source;
  bool no_generation_prompt = false;
};

void render(const Args& args) {
  const std::string messages = read_file(args.messages);
  const std::string tools = args.tools.empty() ? "" : read_file(args.tools);
  const std::string extra = args.extra.empty() ? "" : read_file(args.extra);
  const std::string source = args.source.empty() ? "" : read_file(args.source);
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_VOCABULARY);
  auto desc = sized<optima_chat_desc>();
  desc.messages_json = messages.data();
  desc.messages_json_bytes = messages.size();
  if (!args.tools.empty()) {
    desc.tools_json = tools.data();
    desc.tools_json_bytes = tools.size();
  }
  if (!args.extra.empty()) {
    desc.extra_json = extra.data();
    desc.extra_json_bytes = extra.size();
  }
  if (!args.source.empty()) {
    desc.template_source = source.data();
    desc.template_source_bytes = source.size();
  }
  if (args.no_generation_prompt) desc.flags |= OPTIMA_CHAT_NO_GENERATION_PROMPT;
  const auto buffer = make<Buffer>(optima_model_render, loaded.model.get(), &desc);
  int64_t bytes = 0;
  const char* text = optima_buffer_text(buffer.get(), &bytes);
  write_out({text, static_cast<size_t>(bytes)});
}

}  // namespace

void add_template(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command("template", "Prints the prompt that a conversation becomes");
  add_model_options(command, args->model);
  command.required("--messages", args->messages, "JSON array of messages (- = stdin)");
  command.text("--tools", args->tools, "JSON array of tools");
  command.text("--extra", args->extra, "JSON object of further template variables");
  command.text("--template", args->source, "Jinja source instead of the model's own");
  command.flag("--no-generation-prompt", args->no_generation_prompt,
               "do not open the assistant's turn");
  command.action([args] { render(*args); });
}

}  // namespace cli
