// optima detokenize: token ids in, exactly their bytes out.
#include <algorithm>
#include <charconv>

#include "cli_util.h"
#include "commands.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  std::optional<std::vector<int32_t>> ids;
  bool show_special = false;
  bool json = false;
};

std::vector<int32_t> parse_ids(const std::string& text) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  std::vector<int32_t> ids;
  size_t at = text.find_first_not_of(kBetween);
  while (at != std::string::npos) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    int32_t id = 0;
    const char* last = text.data() + end;
    const auto [stopped, error] = std::from_chars(text.data() + at, last, id);
    if (error != std::errc() || stopped != last) {
      throw Failure("not a token id: " + text.substr(at, end - at));
    }
    ids.push_back(id);
    at = text.find_first_not_of(kBetween, end);
  }
  return ids;
}

void detokenize_command(const Args& args) {
  const std::vector<int32_t> ids = args.ids ? *args.ids : parse_ids(read_file("-"));
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_VOCABULARY);
  const std::string bytes =
      detokenize(loaded.model.get(), ids, args.show_special ? OPTIMA_TEXT_SHOW_SPECIAL : 0);
  if (args.json) {
    write_json({{"text", bytes}});
  } else {
    write_out(bytes);
  }
}

}  // namespace

void add_detokenize(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command =
      program.command("detokenize", "Bytes of token ids (decimal, separated by blanks or commas)");
  add_model_options(command, args->model);
  command.ids("--ids", args->ids, "the ids (else stdin)");
  command.flag("--show-special", args->show_special, "write control tokens as their names");
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { detokenize_command(*args); });
}

}  // namespace cli
