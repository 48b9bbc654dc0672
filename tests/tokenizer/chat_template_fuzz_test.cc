// Mutated templates under small limits: any status will do, but never a crash. Deterministic; the
// sanitizer presets run it too.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tokenizer/chat_template/chat_template.h"

namespace optima::tokenizer {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::string> sources;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           OPTIMA_SOURCE_DIR "/tests/goldens/chat_templates/templates")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    sources.push_back(text.str());
  }
  return sources;
}

const char* const kPieces[] = {
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{%-",
    "-%}",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "|",
    ".",
    ",",
    ":",
    "=",
    "==",
    "**",
    "//",
    "*",
    "-",
    "~",
    "'",
    "\"",
    "\\",
    "\n",
    "0",
    "9223372036854775807",
    "1.5",
    "none",
    "true",
    " in ",
    " is ",
    " not ",
    " if ",
    " else ",
    " and ",
    "|tojson",
    "|length",
    "|list",
    "|sort",
    "|map('string')",
    "|items",
    "|default('x')",
    "|join",
    "|int",
    "|reverse",
    "|select",
    ".items()",
    ".append(messages)",
    ".pop()",
    ".split()",
    ".format(1)",
    "[::-1]",
    "[:9]",
    "[-1]",
    "messages",
    "loop",
    "loop.length",
    "loop.nextitem",
    "namespace(a=messages)",
    "range(100)",
    "varargs",
    "kwargs",
    "{% break %}",
    "{% for m in messages %}",
    "{% endfor %}",
    "{% if messages %}",
    "{% endif %}",
    "{% macro m(a, b=a) %}",
    "{% endmacro %}",
    "{{ m(1) }}",
    "{% set messages = [messages, messages] %}",
    "{% raw %}",
    "{% endraw %}",
    "é",
    "\xff",
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

// A word of the text, from a random place on; empty if none follows.
std::pair<size_t, size_t> some_word(const std::string& text, std::mt19937& random) {
  size_t start = random() % (text.size() + 1);
  while (start < text.size() && !is_word(text[start])) ++start;
  size_t end = start;
  while (end < text.size() && is_word(text[end])) ++end;
  return {start, end - start};
}

std::string mutate(const std::vector<std::string>& sources, std::mt19937& random) {
  std::string source = sources[random() % sources.size()];
  const auto place = [&] { return random() % (source.size() + 1); };
  for (uint32_t edits = random() % 3 + 1; edits > 0; --edits) {
    const std::string& other = sources[random() % sources.size()];
    switch (random() % 10) {
      case 0:
        if (!source.empty()) source[random() % source.size()] = static_cast<char>(random());
        break;
      case 1:
        source.erase(place(), random() % 30);
        break;
      case 2: {
        const std::string copy = source.substr(place(), random() % 60);
        source.insert(place(), copy);
        break;
      }
      case 3:
        source.insert(place(), other.substr(random() % other.size(), random() % 80));
        break;
      case 4:
      case 5:
        source.insert(place(), kPieces[random() % std::size(kPieces)]);
        break;
      case 6: {
        const auto [at, size] = some_word(source, random);
        source.insert(at + size, kPieces[random() % std::size(kPieces)]);
        break;
      }
      default: {  // one word for another mostly leaves the syntax whole
        const auto [at, size] = some_word(source, random);
        const auto [from, length] = some_word(other, random);
        source.replace(at, size, other, from, length);
      }
    }
  }
  return source;
}

TEST(ChatTemplateFuzz, MutatedTemplatesEndInAStatus) {
  const std::vector<std::string> sources = corpus();
  ASSERT_GE(sources.size(), 30u);
  ChatTemplateInput input;
  input.messages_json =
      R"([{"role": "system", "content": "S é"}, {"role": "user", "content": [{"type": "text",
      "text": "a"}]}, {"role": "assistant", "content": null, "tool_calls": [{"id": "abcdefghi",
      "type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.5, {"y": null}]}}}]},
      {"role": "tool", "content": "r", "tool_call_id": "abcdefghi"}, {"role": "user",
      "content": "bye"}])";
  input.tools_json =
      R"([{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type":
      "object", "properties": {"x": {"type": "array", "items": {"type": "integer"}}}}}}])";
  ChatTemplateLimits limits;
  limits.output_bytes_max = 20'000;
  limits.iterations_max = 2'000;
  limits.depth_max = 30;
  limits.time_ms_max = 50;
  std::mt19937 random(1'777);
  int parsed_count = 0;
  int rendered_count = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto parsed = ChatTemplate::parse(mutate(sources, random));
    if (!parsed.ok()) continue;
    ++parsed_count;
    const Result<std::string> result = (*parsed)->render(input, limits);
    if (!result.ok()) continue;
    ++rendered_count;
    ASSERT_LE(result->size(), 20'000u);
  }
  // The mutations must reach past the parser, or this tests little.
  EXPECT_GT(parsed_count, 4'000);
  EXPECT_GT(rendered_count, 1'000);
}

}  // namespace
}  // namespace optima::tokenizer
