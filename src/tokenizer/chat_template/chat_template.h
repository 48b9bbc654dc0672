// Chat templates: the subset of Jinja that model files use, as a bounded interpreter. A template
// comes from a file of unknown origin: recursion, loop turns, output and time are limited, and no
// attribute or function outside the documented set exists.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace optima::tokenizer {

struct ChatTemplateLimits {
  int64_t output_bytes_max = 64 << 20;
  int64_t iterations_max = 10'000'000;  // loop turns, all loops together
  int32_t depth_max = 100;              // nesting of calls and of expressions
  int64_t time_ms_max = 5'000;
};

enum class GenerationPrompt : uint8_t { omit, add };

struct ChatTemplateInput {
  std::string_view messages_json;  // an array of message objects
  std::string_view tools_json;     // an array, or empty = tools undefined (none)
  std::string_view extra_json;     // an object of further variables, or empty
  GenerationPrompt generation_prompt = GenerationPrompt::add;
  std::string_view bos_token, eos_token;
  int64_t now_unix_s = 0;  // what strftime_now sees (the core asks no clock of its own)
};

// Parsed once, rendered any number of times, from any thread.
class ChatTemplate {
 public:
  // Errors name line and column.
  static Result<std::unique_ptr<ChatTemplate>> parse(std::string_view source);
  ~ChatTemplate();
  Result<std::string> render(const ChatTemplateInput& input,
                             const ChatTemplateLimits& limits) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace optima::tokenizer
