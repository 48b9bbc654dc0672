// GBNF, regular expressions and plain JSON: what is accepted, what is refused and with which words.
#include "sampling/grammar/grammar.h"

#include <gtest/gtest.h>

#include "tests/sampling/grammar_testing.h"

namespace optima::sampling {
namespace {

struct Example {
  const char* text;
  std::vector<const char*> yes, no;
};

void check(GrammarKind kind, const std::vector<Example>& examples) {
  for (const Example& example : examples) {
    Result<std::shared_ptr<const Grammar>> grammar = compile(kind, example.text);
    ASSERT_TRUE(grammar.ok()) << example.text << ": " << grammar.status().message();
    for (const char* text : example.yes)
      EXPECT_EQ(verdict(*grammar, text), "yes") << example.text << " on " << text;
    for (const char* text : example.no)
      EXPECT_NE(verdict(*grammar, text), "yes") << example.text << " on " << text;
  }
}

TEST(Gbnf, AcceptsWhatTheRulesSay) {
  check(GrammarKind::gbnf,
        {{"root ::= \"a\" root \"b\" | \"c\"", {"c", "acb", "aacbb"}, {"", "acbb", "ab"}},
         {"root ::= item (\", \" item)* # a comment\nitem ::= [a-c]+ | [0-9]{2,3}\n",
          {"a", "abc, 12, 123"},
          {"1", "1234", "a,b", "d"}},
         {"root ::= [^a-y\\n]? \"\\x41\\u00e9\\U0001F600\"",
          {"A\u00e9\U0001F600", "zA\u00e9\U0001F600", "\u20acA\u00e9\U0001F600"},
          {"aA\u00e9\U0001F600", "A"}},
         {"root ::=\n  \"x\" |\n  ( \"y\"\n  \"z\" )+", {"x", "yz", "yzyz"}, {"y", "xyz"}},
         {"root ::= (\"a\"? \"b\"?){0,3} \".\"", {".", "a.", "abab.", "bbb."}, {"bbbb."}},
         {"root ::= (\"a\"* \"b\"*)* \"\"", {"", "aabba"}, {"c"}},
         {"root ::= [\\]\\-x\\^]{1,} .", {"]-^a", "x\u20ac"}, {"a", "]"}},
         {"root ::= \"a\"{3}", {"aaa"}, {"aa", "aaaa"}}});
}

TEST(Gbnf, DeepRecursionIsNotCut) {
  Result<std::shared_ptr<const Grammar>> grammar =
      compile(GrammarKind::gbnf, "root ::= \"(\" root \")\" | \"x\"");
  ASSERT_TRUE(grammar.ok());
  const std::string open(60000, '('), close(60000, ')');
  EXPECT_EQ(verdict(*grammar, open + "x" + close), "yes");
  EXPECT_EQ(verdict(*grammar, open + "x" + close + ")"), "no");
  GrammarState state(*grammar);
  const Status status = state.accept_text(std::string(70000, '('));
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_EQ(status.numbers().limit, 65536);
  // The state is as it was: it can go on.
  EXPECT_TRUE(state.accept_text("(x)").ok());
  EXPECT_TRUE(state.is_finished());
}

TEST(Gbnf, TailRecursionNeedsNoDepth) {
  Result<std::shared_ptr<const Grammar>> grammar =
      compile(GrammarKind::gbnf, "root ::= \"a\" root | \"b\"");
  ASSERT_TRUE(grammar.ok());
  EXPECT_EQ(verdict(*grammar, std::string(200000, 'a') + "b"), "yes");
}

TEST(Gbnf, AmbiguityIsShared) {
  // After n letters there are 2^n stacks of returns; they share their ends.
  Result<std::shared_ptr<const Grammar>> grammar =
      compile(GrammarKind::gbnf, "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"");
  ASSERT_TRUE(grammar.ok());
  std::string text(300, 'a');
  for (int i = 0; i < 299; ++i) text.push_back(i % 3 == 0 ? 'b' : 'c');
  EXPECT_EQ(verdict(*grammar, text), "yes");
  EXPECT_EQ(verdict(*grammar, text + "b"), "no");
}

TEST(Gbnf, RefusesWithThePlace) {
  const auto message = [](std::string_view text) {
    return compile(GrammarKind::gbnf, text).status().message();
  };
  EXPECT_EQ(message("root ::= expr\nexpr ::= expr \"+\" | \"1\""),
            "the rule 'expr' is left-recursive: it contains itself before it has read a byte");
  EXPECT_EQ(message("root ::= a root | \"y\"\na ::= \"x\"?\n"),
            "the rule 'root' is left-recursive: it contains itself before it has read a byte");
  EXPECT_EQ(message("root ::= \"a\"\nroot ::= \"b\""),
            "grammar, line 2, column 9: the rule 'root' is defined twice");
  EXPECT_EQ(message("root ::= x"), "grammar, line 1, column 10: the rule 'x' is not defined");
  EXPECT_EQ(message("other ::= \"a\""), "grammar: there is no rule 'root'");
  EXPECT_EQ(message("root ::= \"a"),
            "grammar, line 1, column 12: '\"' is missing at the end of a text");
  EXPECT_EQ(message("root ::= [b-a]"), "grammar, line 1, column 14: a range in the wrong order");
  EXPECT_EQ(message("root ::= \"a\"{3,2}"),
            "grammar, line 1, column 18: the counts {3,2} are in the wrong order");
  EXPECT_EQ(message("root ::= \"a\" root"), "no text satisfies the grammar: it can never end");
  EXPECT_EQ(message("root ::= \"\xff\""), "grammar, line 1, column 11: bytes that are no UTF-8");
  EXPECT_EQ(message("root ::= <think>"),
            "grammar, line 1, column 10: a token named by <...> is not supported");
}

TEST(Regex, AcceptsWhatItSays) {
  check(GrammarKind::regex,
        {{"^ab+c?$", {"ab", "abbc"}, {"a", "xab", "abcc"}},
         {"(foo|b[a\u00e4]r){2,3}?", {"foofoo", "barb\u00e4rfoo"}, {"foo", "foofoofoofoo"}},
         {"\\d{2}-\\w*\\s", {"12-a_9 ", "12-\n", "12-\u00a0"}, {"1-a ", "12-\u00e9 "}},
         {"[^\\d\\-]+", {"ab c", "\u20ac"}, {"a1", "-"}},
         {"(?:a|)(?<name>b)", {"ab", "b"}, {"a", ""}},
         {"a{,2}", {"a{,2}"}, {"aa"}},
         {"\\u00e9\\x41\\u{1F600}\\uD83D\\uDE00", {"\u00e9A\U0001F600\U0001F600"}, {"A"}},
         {".", {"a", "\U0001F600"}, {"\n", "ab"}},
         {"a|^b|c$", {"a", "b", "c"}, {"ab"}},
         {"a^b|x", {"x"}, {"ab"}},
         {"", {""}, {"a"}}});
}

TEST(Regex, RefusesByName) {
  const auto message = [](std::string_view text) {
    return compile(GrammarKind::regex, text).status().message();
  };
  EXPECT_EQ(message("(a)\\1"), "pattern, byte 4: a backreference or octal escape is not supported");
  EXPECT_EQ(message("a(?=b)"), "pattern, byte 3: lookaround is not supported");
  EXPECT_EQ(message("a(?<!b)"), "pattern, byte 3: lookaround is not supported");
  EXPECT_EQ(message("(?i)a"), "pattern, byte 2: a group with flags is not supported");
  EXPECT_EQ(message("\\bfoo"), "pattern, byte 1: a word boundary is not supported");
  EXPECT_EQ(message("\\p{L}"), "pattern, byte 1: the escape \\p is not supported");
  EXPECT_EQ(message("a++"), "pattern, byte 2: a possessive quantifier is not supported");
  EXPECT_EQ(message("(a"), "pattern, byte 2: '(' without ')'");
  EXPECT_EQ(message("a)"), "pattern, byte 1: ')' without '('");
  EXPECT_EQ(message("[a"), "pattern, byte 0: '[' without ']'");
  EXPECT_EQ(message("*a"), "pattern, byte 0: a quantifier without anything before it");
}

TEST(Json, AcceptsWhatRfc8259Says) {
  check(GrammarKind::json, {{"",
                             {"{}", "[]", "0", "-0.5e+10", "\"\"", "null", "true", "false",
                              "{ \"a\" :\t[ 1 ,\n2 ] , \"b\":{}}", "\"\\u00e9\\n\\/\"",
                              "\"\\ud83d\\ude00\"", "[[[[]]]]", "\"\u20ac\x7f\""},
                             {"",
                              "{,}",
                              "[1,]",
                              "01",
                              "1.",
                              ".5",
                              "+1",
                              "\"\\x\"",
                              "\"\n\"",
                              "nul",
                              "{\"a\"}",
                              "\"\\ud83d\"",
                              "\"\\ude00\"",
                              "\"\xff\"",
                              "\"\xc0\x80\"",
                              "\"\xed\xa0\x80\"",
                              "1e999",
                              "{a:1}",
                              "[1 2]",
                              "'a'"}}});
}

TEST(GrammarState, AcceptsTokensAndEnds) {
  Result<std::shared_ptr<const Grammar>> grammar = compile(GrammarKind::regex, "ab?");
  ASSERT_TRUE(grammar.ok());
  const int32_t control = 256, end = 257;
  GrammarState state(*grammar);
  EXPECT_FALSE(state.can_end());
  EXPECT_EQ(state.accept(end).code(), Code::invalid_argument);
  EXPECT_EQ(state.accept(control).code(), Code::invalid_argument);
  EXPECT_EQ(state.accept('b').code(), Code::invalid_argument);
  EXPECT_EQ(state.accept(1000).code(), Code::invalid_argument);
  EXPECT_TRUE(state.accept('a').ok());
  EXPECT_TRUE(state.can_end());
  EXPECT_FALSE(state.is_finished());
  EXPECT_EQ(state.bytes_to_end(), 0);
  GrammarState other = state;
  EXPECT_TRUE(other.accept('b').ok());
  EXPECT_TRUE(other.is_finished());
  Result<std::shared_ptr<const TokenMask>> mask = other.mask();
  ASSERT_TRUE(mask.ok());
  for (int32_t token = 0; token < 258; ++token) EXPECT_EQ((*mask)->allows(token), token == end);
  EXPECT_FALSE(state.is_finished());  // the copy went its own way
  EXPECT_TRUE(state.accept(end).ok());
  EXPECT_TRUE(state.is_finished());
  EXPECT_EQ(state.mask().status().code(), Code::invalid_state);
  EXPECT_EQ(state.accept('b').code(), Code::invalid_state);
}

TEST(GrammarState, NoTokenLeftIsAnError) {
  // The vocabulary has no "b".
  const std::string_view bytes[] = {"a", "c", ""};
  const TokenUse uses[] = {TokenUse::text, TokenUse::text, TokenUse::end};
  std::shared_ptr<const TokenTable> table = TokenTable::create(bytes, uses).take();
  Result<std::shared_ptr<const Grammar>> grammar =
      Grammar::compile({GrammarKind::regex, "ab"}, table);
  ASSERT_TRUE(grammar.ok());
  GrammarState state(*grammar);
  ASSERT_TRUE(state.mask().ok());
  ASSERT_TRUE(state.accept(0).ok());
  EXPECT_EQ(state.mask().status().code(), Code::invalid_state);
  EXPECT_EQ(state.mask().status().message(),
            "none of the 3 tokens can continue the text under its grammar, and it is not complete");
}

TEST(GrammarState, TellsTheShortestEnd) {
  Result<std::shared_ptr<const Grammar>> grammar = compile(
      GrammarKind::json_schema,
      R"({"type":"object","properties":{"ab":{"type":"integer"},"c":{"type":"array","minItems":2}},
          "required":["ab","c"],"additionalProperties":false})");
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  const std::string shortest = R"({"ab":1,"c":[1,1]})";
  GrammarState state(*grammar);
  for (size_t i = 0; i < shortest.size(); ++i) {
    EXPECT_EQ(state.bytes_to_end(), static_cast<int64_t>(shortest.size() - i)) << i;
    ASSERT_TRUE(state.accept_text(shortest.substr(i, 1)).ok());
  }
  EXPECT_EQ(state.bytes_to_end(), 0);
}

}  // namespace
}  // namespace optima::sampling
