// The public face: parse once, then render with the messages, tools and further variables as JSON.
#include "tokenizer/chat_template/chat_template.h"

#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/evaluator.h"
#include "tokenizer/chat_template/from_json.h"

namespace optima::tokenizer {

struct ChatTemplate::Program {
  jinja::ParsedTemplate parsed;
};

namespace jinja {

namespace {

// Puts the input into the scope: only the variables that the template mentions.
class InputReader {
 public:
  InputReader(const ParsedTemplate& program, Runtime& runtime, Scope& scope)
      : program_(program), runtime_(runtime), scope_(scope) {}

  Status read(const ChatTemplateInput& input) {
    set("documents", Value::none());
    OPTIMA_TRY(read_extra(input.extra_json));
    OPTIMA_ASSIGN(const json::Value messages, read_array("messages", input.messages_json));
    set("messages", value_from_json(runtime_.heap, messages));
    set("tools", Value::none());
    if (!input.tools_json.empty()) {
      OPTIMA_ASSIGN(const json::Value tools, read_array("tools", input.tools_json));
      set("tools", value_from_json(runtime_.heap, tools));
    }
    set("add_generation_prompt", Value::boolean(input.generation_prompt == GenerationPrompt::add));
    OPTIMA_TRY(set_token("bos_token", input.bos_token));
    OPTIMA_TRY(set_token("eos_token", input.eos_token));
    runtime_.heap.forgive();
    return {};
  }

 private:
  void set(const std::string& name, Value value) {
    const auto symbol = program_.symbols.find(name);
    if (symbol != program_.symbols.end()) scope_.set(symbol->second, std::move(value));
  }

  Status set_token(const std::string& name, std::string_view token) {
    if (utf8_valid_prefix(token) != token.size()) {
      return {Code::invalid_argument, text(name, ": invalid UTF-8")};
    }
    set(name, runtime_.heap.string(std::string(token)));
    return {};
  }

  static Result<json::Value> read_array(const std::string& name, std::string_view source) {
    Result<json::Value> value = json::parse(source, {.depth_max = kJsonDepthMax});
    if (!value.ok()) return value.take_status().in(name);
    if (value->array() == nullptr) return Status(Code::invalid_argument, name + ": not an array");
    return value;
  }

  Status read_extra(std::string_view source) {
    if (source.empty()) return {};
    Result<json::Value> extra = json::parse(source, {.depth_max = kJsonDepthMax});
    if (!extra.ok()) return extra.take_status().in("extra variables");
    if (extra->object() == nullptr) {
      return {Code::invalid_argument, "extra variables: not an object"};
    }
    for (const json::Member& member : *extra->object()) {
      set(member.key, value_from_json(runtime_.heap, member.value));
    }
    return {};
  }

  const ParsedTemplate& program_;
  Runtime& runtime_;
  Scope& scope_;
};

}  // namespace
}  // namespace jinja

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program) : program_(std::move(program)) {}

ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string_view source) {
  auto program = std::make_unique<Program>();
  OPTIMA_TRY(jinja::parse_template(source, program->parsed));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(program)));
}

Result<std::string> ChatTemplate::render(const ChatTemplateInput& input,
                                         const ChatTemplateLimits& limits) const {
  const jinja::ParsedTemplate& parsed = program_->parsed;
  jinja::Runtime runtime(parsed.source, limits, input.now_unix_s);
  jinja::Value scope = runtime.heap.adopt(new jinja::Scope(jinja::Value()), sizeof(jinja::Scope));
  OPTIMA_TRY(
      jinja::InputReader(parsed, runtime, *static_cast<jinja::Scope*>(scope.object())).read(input));
  return jinja::Evaluator(parsed, runtime, std::move(scope)).run();
}

}  // namespace optima::tokenizer
