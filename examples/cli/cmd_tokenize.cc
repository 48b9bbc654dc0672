// optima tokenize: bytes in, token ids out, of any file whose tokenizer is known.
#include "cli_util.h"
#include "commands.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  std::optional<std::string> prompt;
  bool ids_only = false;
  bool json = false;
  bool no_add_special = false;
  bool no_parse_special = false;
};

std::string token_text(const optima_model* model, int32_t id) {
  int64_t bytes = 0;
  const char* text = optima_model_token_text(model, id, &bytes);
  return std::string(text == nullptr ? "" : text, static_cast<size_t>(bytes));
}

void print(const optima_model* model, const std::vector<int32_t>& ids, const Args& args) {
  if (args.json) {
    Json tokens = Json::array();
    for (const int32_t id : ids) tokens.push_back(token_text(model, id));
    write_json({{"count", ids.size()}, {"ids", ids}, {"tokens", tokens}});
    return;
  }
  std::string out;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (args.ids_only) {
      if (i > 0) out += ' ';
      out += std::to_string(ids[i]);
    } else {
      out += std::to_string(ids[i]) + '\t' + token_text(model, ids[i]) + '\n';
    }
  }
  if (args.ids_only) out += '\n';
  write_out(out);
}

void tokenize_command(const Args& args) {
  if (args.ids_only && args.json) throw Failure("--ids and --json exclude each other", kExitUsage);
  const std::string text = given_or_stdin(args.prompt);
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_VOCABULARY);
  uint32_t flags = 0;
  if (args.no_add_special) flags |= OPTIMA_TEXT_NO_ADD_SPECIAL;
  if (args.no_parse_special) flags |= OPTIMA_TEXT_NO_PARSE_SPECIAL;
  print(loaded.model.get(), tokenize(loaded.model.get(), text, flags), args);
}

}  // namespace

void add_tokenize(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command =
      program.command("tokenize", "Token ids of a text; stdin is taken byte for byte");
  add_model_options(command, args->model);
  command.text("-p,--prompt", args->prompt, "text (else stdin)");
  command.flag("--ids", args->ids_only, "print the ids in one line, without the tokens");
  command.flag("--json", args->json, "print one JSON object");
  command.flag("--no-add-special", args->no_add_special, "no BOS or EOS by the file's rule");
  command.flag("--no-parse-special", args->no_parse_special,
               "special tokens written in the text stay characters");
  command.action([args] { tokenize_command(*args); });
}

}  // namespace cli
