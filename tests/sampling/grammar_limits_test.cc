// Hostile grammars: each ends, within seconds, with a status that names a number, or is simply
// cheap.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/sampling/grammar_testing.h"

namespace optima::sampling {
namespace {

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

class Limits : public testing::Test {
 protected:
  // The code of compiling; the time is bounded.
  Code code(GrammarKind kind, std::string_view text) {
    const auto start = std::chrono::steady_clock::now();
    const Status status = compile(kind, text).status();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    EXPECT_LT(spent.count(), 20) << text.substr(0, 80);
    EXPECT_TRUE(status.ok() || status.message().find_first_of("0123456789") != std::string::npos);
    return status.code();
  }
};

TEST_F(Limits, OfNesting) {
  const int deep = 1'000'000;
  EXPECT_EQ(code(GrammarKind::json_schema, repeated("[", deep)), Code::invalid_argument);
  EXPECT_EQ(code(GrammarKind::json_schema, repeated("{\"not\":", deep / 2)),
            Code::invalid_argument);
  EXPECT_EQ(code(GrammarKind::gbnf, "root ::= " + repeated("(", deep)), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::regex, repeated("(", deep)), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::regex, repeated("a?", deep)), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::gbnf, std::string(5 << 20, 'a')), Code::unsupported);
}

// Nothing is read between one reference and the next, so that only a count can end it.
TEST_F(Limits, OfChoicesThatChooseThemselves) {
  for (const char* schema :
       {R"({"anyOf":[{"$ref":"#","maxLength":1}]})", R"({"anyOf":[{"$ref":"#"}],"maxLength":1})",
        R"({"oneOf":[{"$ref":"#","maxLength":1},{"$ref":"#","minLength":3}]})"})
    EXPECT_EQ(code(GrammarKind::json_schema, schema), Code::unsupported) << schema;
}

TEST_F(Limits, OfCounts) {
  EXPECT_EQ(code(GrammarKind::regex, "a{1,1000000000}"), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::regex, "(((a{90}){90}){90}){90}"), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::regex, "(((a?){90}){90}b?){9}"), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::regex, "(){1000000000000}"), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::gbnf, "root ::= (\"a\"?){0,1000000000}"), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::gbnf, "root ::= " + repeated("\"abcdefgh\" ", 400'000)),
            Code::unsupported);
  EXPECT_EQ(code(GrammarKind::json_schema, R"({"type":"integer","multipleOf":1000000007})"),
            Code::unsupported);
  EXPECT_EQ(code(GrammarKind::json_schema, R"({"pattern":"^a*$","maxLength":1000000000})"),
            Code::unsupported);
  EXPECT_EQ(code(GrammarKind::json_schema, R"({"pattern":"^(ab|b)*$","minLength":1000000000})"),
            Code::unsupported);
}

TEST_F(Limits, CountsCostNoStates) {
  Result<std::shared_ptr<const Grammar>> grammar =
      compile(GrammarKind::gbnf, "root ::= ([a-z]{1,1000000000} \",\"){5,1000000000}");
  ASSERT_TRUE(grammar.ok());
  EXPECT_LT((*grammar)->state_count(), 20);
  EXPECT_EQ(verdict(*grammar, repeated("abc,", 4)), "more");
  EXPECT_EQ(verdict(*grammar, repeated("abc,", 5)), "yes");
  grammar = compile(GrammarKind::json_schema,
                    R"({"type":"array","items":{"type":"string","maxLength":1000000000},
                        "minItems":3,"maxItems":1000000000})");
  ASSERT_TRUE(grammar.ok());
  EXPECT_EQ(verdict(*grammar, R"(["a","b"])"), "no");
  EXPECT_EQ(verdict(*grammar, R"(["a","b","c"])"), "yes");
}

TEST_F(Limits, OfReferences) {
  std::string bomb = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 40; ++i) {
    const std::string next = R"({"$ref":"#/$defs/d)" + std::to_string(i + 1) + R"("})";
    bomb += "\"d" + std::to_string(i) + R"(":{"allOf":[)" + next + "," + next + "]},";
  }
  bomb += R"("d40":{"type":"integer"}}})";
  EXPECT_EQ(code(GrammarKind::json_schema, bomb), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::json_schema, R"({"$ref":"#"})"), Code::unsupported);
  EXPECT_EQ(code(GrammarKind::json_schema, R"({"allOf":[{"$ref":"#"}]})"), Code::unsupported);
  EXPECT_EQ(compile(GrammarKind::json_schema, R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})")
                .status()
                .message(),
            "the schema at # is left-recursive: it contains itself before it has read a byte");
}

TEST_F(Limits, OfChoices) {
  std::string all;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "\"p" + std::to_string(i) + "\"";
    all += (i ? "," : "") + (R"({"anyOf":[{"required":[)" + name + R"(]},{"properties":{)" + name +
                             R"(:{"type":"integer"}}}]})");
  }
  EXPECT_EQ(code(GrammarKind::json_schema, R"({"type":"object","allOf":[)" + all + "]}"),
            Code::unsupported);
  std::string alternatives = "root ::= \"a\"";
  for (int i = 0; i < 20000; ++i) alternatives += " | r" + std::to_string(i % 100);
  for (int i = 0; i < 100; ++i)
    alternatives += "\nr" + std::to_string(i) + " ::= \"b\" root \"" + std::to_string(i) + "\"";
  EXPECT_EQ(code(GrammarKind::gbnf, alternatives), Code::ok);
}

TEST_F(Limits, OfAmbiguity) {
  // Every byte doubles what has to be remembered.
  std::string rules = "root ::= x{1,60}\nx ::= ";
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i + 2);
    rules += (i ? " | " : "") + ("(\"a\"{1," + n + "}){1," + n + "}");
  }
  Result<std::shared_ptr<const Grammar>> grammar = compile(GrammarKind::gbnf, rules);
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  GrammarState state(*grammar);
  Status status;
  for (int i = 0; i < 60 && status.ok(); ++i) {
    status = state.mask().status();
    if (status.ok()) status = state.accept('a');
  }
  EXPECT_TRUE(status.ok() || status.code() == Code::unsupported) << status.message();
  grammar::Limits small;
  small.work = 100;
  grammar = compile(GrammarKind::gbnf, rules, small);
  ASSERT_TRUE(grammar.ok());
  GrammarState limited(*grammar);
  status = limited.accept_text("aaaaaaaaaa");
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_EQ(status.numbers().limit, 100);
}

TEST_F(Limits, OfACacheAreNotNoticed) {
  grammar::Limits small;
  small.cache_bytes = 1 << 12;
  Result<std::shared_ptr<const Grammar>> grammar = compile(GrammarKind::json, "", small);
  ASSERT_TRUE(grammar.ok());
  const std::string text = R"({"a":[1,{"b":"text"}],"c":null})";
  GrammarState state(*grammar);
  GrammarState other(*grammar);
  for (const char c : text) {
    ASSERT_TRUE(state.mask().ok());
    ASSERT_TRUE(state.accept(static_cast<uint8_t>(c)).ok());
    ASSERT_TRUE(other.mask().ok());
  }
  EXPECT_TRUE(state.is_finished());
  EXPECT_TRUE(other.accept_text(text).ok());
}

}  // namespace
}  // namespace optima::sampling
