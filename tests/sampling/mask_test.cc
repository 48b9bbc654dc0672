// Masks against the definition: a token is allowed exactly when its bytes can be read one after the
// other. Random vocabularies, random texts, every state on the way.
#include <gtest/gtest.h>

#include <random>

#include "tests/sampling/grammar_testing.h"

namespace optima::sampling {
namespace {

std::vector<std::string> random_tokens(std::mt19937& random) {
  const std::vector<std::string> pieces{"a",  "b",    "\"", "\":", ",",   "{",    "}",    "[",
                                        "]",  "1",    "23", ".",   " ",   "\n",   "\\",   "\\u00",
                                        "e9", "true", "nu", "ll",  "abc", "\xc3", "\xa9", "-"};
  std::vector<std::string> tokens;
  tokens.emplace_back(30, 'a');
  tokens.push_back(std::string(60, 'b') + "\"");
  tokens.emplace_back(40, ' ');
  tokens.emplace_back(26, '1');
  for (int i = 0; i < 300; ++i) {
    std::string token;
    for (size_t count = 1 + random() % 5; count > 0; --count)
      token += pieces[random() % pieces.size()];
    tokens.push_back(token);
  }
  tokens.push_back(tokens.back());  // two tokens of the same bytes
  return tokens;
}

void walk(const std::shared_ptr<const Grammar>& grammar, std::mt19937& random, int steps) {
  const TokenTable& table = grammar->tokens();
  GrammarState state(grammar);
  std::string text;
  for (int step = 0; step < steps && !state.is_finished(); ++step) {
    Result<std::shared_ptr<const TokenMask>> mask = state.mask();
    ASSERT_TRUE(mask.ok()) << mask.status().message();
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < table.size(); ++token) {
      GrammarState next = state;
      const bool fits = next.accept(token).ok();
      ASSERT_EQ((*mask)->allows(token), fits)
          << "token " << token << " '" << table.bytes(token) << "' after " << text;
      if (fits && table.use(token) == TokenUse::text) allowed.push_back(token);
    }
    if (allowed.empty()) return;
    // Longer tokens are rarer, and take more of the ways.
    int32_t token = allowed[random() % allowed.size()];
    for (int i = 0; i < 3; ++i) {
      const int32_t other = allowed[random() % allowed.size()];
      if (table.bytes(other).size() > table.bytes(token).size()) token = other;
    }
    text += table.bytes(token);
    ASSERT_TRUE(state.accept(token).ok());
  }
}

TEST(Mask, IsWhatCanBeRead) {
  const std::vector<std::pair<GrammarKind, const char*>> grammars{
      {GrammarKind::json, ""},
      {GrammarKind::json_schema, R"({"type":"string","maxLength":100,"minLength":40})"},
      {GrammarKind::json_schema, R"({"type":"array","items":{"type":"string","maxLength":33}})"},
      {GrammarKind::json_schema,
       R"({"type":"object","properties":{"a":{"type":"integer","maximum":2311},"abc":{},
           "b":{"enum":["aab",true,null,[1]]}},"required":["b"],"maxProperties":3})"},
      {GrammarKind::json_schema, R"({"anyOf":[{"type":"string","pattern":"^[ab]*c$"},
           {"type":"array","items":{"$ref":"#"}},{"type":"number","minimum":-23.1}]})"},
      {GrammarKind::gbnf, "root ::= (x | y){3,50}\nx ::= \"a\"{2,40}\ny ::= [b1]+ \",\"?"},
      {GrammarKind::gbnf, "root ::= \"a\" root \"b\" | \"a\" root \"1\" | \"a\"? | .{26,30} \"]\""},
      {GrammarKind::gbnf, "root ::= ((\"a\"{1,60} \"b\"?){1,70} \",\"){2,30}"},
      {GrammarKind::regex, "(a|b)*a(a|b){4}|[^a]{10,60}"}};
  std::mt19937 random(3);
  for (const auto& [kind, text] : grammars) {
    const std::shared_ptr<const TokenTable> table = byte_table(random_tokens(random));
    for (const int64_t cache : {int64_t{64} << 20, int64_t{1} << 17}) {
      Result<std::shared_ptr<const Grammar>> grammar =
          Grammar::compile({kind, text}, table, {.cache_bytes = cache});
      ASSERT_TRUE(grammar.ok()) << grammar.status().message();
      for (int i = 0; i < 2; ++i) walk(*grammar, random, 20);
    }
  }
}

TEST(Mask, IsSharedBetweenRequests) {
  Result<std::shared_ptr<const Grammar>> grammar = compile(GrammarKind::json, "");
  GrammarState a(*grammar), b(*grammar);
  ASSERT_TRUE(a.accept_text("{\"x\":\"some ").ok());
  ASSERT_TRUE(b.accept_text("{\"another\" :  \"").ok());
  EXPECT_EQ(*a.mask(), *b.mask());  // the same object
}

TEST(Mask, ApplyForbids) {
  TokenMask mask{{0b101, 1}};
  std::vector<float> logits(65, 1);
  mask.apply(logits);
  for (size_t i = 0; i < logits.size(); ++i)
    EXPECT_EQ(logits[i] == 1, i == 0 || i == 2 || i == 64) << i;
}

TEST(TokenTable, RefusesWhatDoesNotFit) {
  const std::string_view bytes[] = {"a", "b"};
  const TokenUse uses[] = {TokenUse::text};
  EXPECT_EQ(TokenTable::create(bytes, uses).status().code(), Code::invalid_argument);
  const std::string huge(70000, 'x');
  const std::string_view long_token[] = {huge};
  EXPECT_EQ(TokenTable::create(long_token, {}).status().code(), Code::invalid_argument);
  EXPECT_TRUE(TokenTable::create({}, {}).ok());
}

}  // namespace
}  // namespace optima::sampling
