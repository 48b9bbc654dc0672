// Renders the templates and snippets of tests/goldens and compares with what jinja2 wrote, byte for
// byte. The goldens are made by tests/goldens/make_chat_templates.py.
#include "tokenizer/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace optima::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

std::string golden(const std::string& name) {
  std::ifstream file(OPTIMA_SOURCE_DIR "/tests/goldens/chat_templates/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Rendered {
  bool parsed = false;
  Status status;
  std::string output;
};

Rendered render(const std::string& source, const ChatTemplateInput& input) {
  Rendered result;
  Result<std::unique_ptr<ChatTemplate>> parsed = ChatTemplate::parse(source);
  result.parsed = parsed.ok();
  if (!parsed.ok()) {
    result.status = parsed.take_status();
    return result;
  }
  Result<std::string> output = (*parsed)->render(input, {});
  if (output.ok()) {
    result.output = output.take();
  } else {
    result.status = output.take_status();
  }
  return result;
}

// A golden is the output, {"raised": message}, or null for any other error.
void expect_golden(const Json& expected, const Rendered& rendered, const std::string& what) {
  if (expected.is_string()) {
    ASSERT_TRUE(rendered.status.ok()) << what << "\n" << rendered.status.message();
    ASSERT_EQ(rendered.output, expected.get<std::string>()) << what;
    return;
  }
  ASSERT_FALSE(rendered.status.ok()) << what << "\n" << rendered.output;
  EXPECT_EQ(rendered.status.code(), Code::invalid_argument) << what;
  const std::string& message = rendered.status.message();
  if (expected.is_object()) {
    EXPECT_EQ(message, expected["raised"].get<std::string>()) << what;
  } else {
    EXPECT_NE(message.find("line "), std::string::npos) << what << "\n" << message;
    EXPECT_NE(message.find(", column "), std::string::npos) << what << "\n" << message;
  }
}

class ChatTemplateGoldens : public testing::TestWithParam<std::string> {};

TEST_P(ChatTemplateGoldens, RendersAsJinja) {
  const std::string name = GetParam();
  const Json conversations = Json::parse(golden("conversations.json"));
  const Json rows = Json::parse(golden("renders.json"))[name];
  ASSERT_GE(rows.size(), 20u);
  const std::string source = golden("templates/" + name + ".jinja");
  for (const Json& row : rows) {
    const Json& conversation = conversations["conversations"][row[0].get<size_t>()];
    const std::string messages = conversation["messages"];
    const std::string tools = conversation["tools"];
    const std::string extra = conversation["extra"];
    const ChatTemplateInput input = {
        .messages_json = messages,
        .tools_json = tools,
        .extra_json = extra,
        .generation_prompt = row[1].get<bool>() ? GenerationPrompt::add : GenerationPrompt::omit,
        .bos_token = "<s>",
        .eos_token = "</s>",
        .now_unix_s = conversations["now_unix_s"],
    };
    expect_golden(row[2], render(source, input),
                  name + ", " + conversation["name"].get<std::string>());
  }
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  const Json renders = Json::parse(golden("renders.json"));
  for (const auto& [name, rows] : renders.items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Templates, ChatTemplateGoldens, testing::ValuesIn(template_names()),
                         [](const auto& row) { return row.param; });

TEST(ChatTemplate, SnippetsRenderAsJinja) {
  const Json goldens = Json::parse(golden("snippets.json"));
  const Json conversations = Json::parse(golden("conversations.json"));
  const std::string variables = goldens["variables"];
  ASSERT_GE(goldens["snippets"].size(), 800u);
  for (const Json& row : goldens["snippets"]) {
    const std::string source = row[0];
    ChatTemplateInput input;
    input.messages_json = "[]";
    input.extra_json = variables;
    input.now_unix_s = conversations["now_unix_s"];
    expect_golden(row[1], render(source, input), source);
  }
  for (const Json& source : goldens["outside"]) {
    ChatTemplateInput input;
    input.messages_json = "[]";
    input.extra_json = variables;
    expect_golden(Json(), render(source, input), source);
  }
}

}  // namespace
}  // namespace optima::tokenizer
