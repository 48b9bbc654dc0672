// Hostile templates: each must end in a status, in bounded time and memory.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tokenizer/chat_template/chat_template.h"

namespace optima::tokenizer {
namespace {

std::string repeated(std::string_view piece, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += piece;
  return out;
}

Result<std::string> render(const std::string& source, const ChatTemplateLimits& limits = {}) {
  OPTIMA_ASSIGN(const auto parsed, ChatTemplate::parse(source));
  ChatTemplateInput input;
  input.messages_json = R"([{"role": "user", "content": "hi"}])";
  return parsed->render(input, limits);
}

void expect_error(const std::string& source, const std::string& part,
                  const ChatTemplateLimits& limits = {}) {
  const auto start = std::chrono::steady_clock::now();
  const Result<std::string> result = render(source, limits);
  const auto elapsed = std::chrono::steady_clock::now() - start;
  const std::string shown = source.substr(0, 100);
  ASSERT_FALSE(result.ok()) << shown;
  EXPECT_EQ(result.status().code(), Code::invalid_argument) << shown;
  EXPECT_NE(result.status().message().find(part), std::string::npos) << shown << "\n"
                                                                     << result.status().message();
  EXPECT_LT(elapsed, std::chrono::seconds(20)) << shown;
}

TEST(ChatTemplateLimits, DeepNestingIsAnError) {
  constexpr int kDeep = 20'000;
  expect_error("{{ " + repeated("(", 100'000) + repeated(")", 100'000) + " }}", "nested deeper");
  const std::pair<const char*, const char*> pairs[] = {
      {"(", ")"}, {"[", "]"}, {"{1:", "}"}, {"x[", "]"},          {"x[1:", "]"}, {"f(", ")"},
      {"-", ""},  {"+", ""},  {"not ", ""}, {"1 if 1 else ", ""}, {"2**(", ")"}, {"1 is eq(", ")"}};
  for (const auto& [opening, closing] : pairs) {
    expect_error("{{ " + repeated(opening, kDeep) + "1" + repeated(closing, kDeep) + " }}",
                 "nested deeper");
    expect_error("{{ " + repeated(opening, kDeep), "");
  }
  expect_error("{{ x" + repeated(".a", kDeep) + " }}", "nested deeper");
  expect_error("{{ x" + repeated("|upper", kDeep) + " }}", "nested deeper");
  expect_error("{{ x" + repeated("()", kDeep) + " }}", "nested deeper");
  expect_error("{{ x" + repeated("[0]", kDeep) + " }}", "nested deeper");
  expect_error(repeated("{% if x %}", kDeep), "nested deeper");
  expect_error(repeated("{% for x in y %}", kDeep), "nested deeper");
  expect_error(repeated("{% macro m() %}", kDeep), "nested deeper");
  expect_error(repeated("{% set x %}", kDeep), "nested deeper");
  expect_error("{% set " + repeated("(", kDeep), "");
  expect_error("{% filter upper" + repeated("|upper", kDeep) + " %}{% endfilter %}", "nested");
  expect_error("{{ [[1]]|map('map'" + repeated(", 'map'", kDeep) + ")|list }}", "");
}

TEST(ChatTemplateLimits, LongButFlatIsFine) {
  const Result<std::string> sum = render("{{ 1" + repeated("+1", 100'000) + " }}");
  ASSERT_TRUE(sum.ok()) << sum.status().message();
  EXPECT_EQ(*sum, "100001");
  const Result<std::string> text = render("{{ 'a'" + repeated("~'b'", 1000) + " }}");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->size(), 1001u);
  std::string branches = "{% if false %}";
  branches += repeated("{% elif false %}x", 20'000) + "{% else %}y{% endif %}";
  const Result<std::string> last = render(branches);
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_EQ(*last, "y");
}

TEST(ChatTemplateLimits, RecursionIsAnError) {
  expect_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper than the limit of 100");
  expect_error(
      "{% macro f(n) %}{% for i in [1] %}{{ f(n + 1) }}{% endfor %}{% endmacro %}{{ f(0) }}",
      "deeper");
  expect_error("{% macro f(x=f()) %}{% endmacro %}{{ f() }}", "deeper");
  ChatTemplateLimits limits;
  limits.depth_max = 10;
  const std::string counter =
      "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% endif %}.{% endmacro %}{{ f(";
  EXPECT_TRUE(render(counter + "8) }}", limits).ok());
  expect_error(counter + "10) }}", "limit of 10", limits);
  limits.depth_max = 1'000'000;  // cut to what the stack bears
  expect_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "limit of 128", limits);
  expect_error(
      "{% macro f(n) %}{% for i in [1] if f(n) or true %}{% if [f(n)|upper ~ 1][0] is eq 2 %}"
      "{% filter upper %}{{ f(n) }}{% endfilter %}{% endif %}{% endfor %}{% endmacro %}"
      "{% set x %}{{ f(1) }}{% endset %}",
      "deeper", limits);
}

TEST(ChatTemplateLimits, HugeValuesAreErrors) {
  expect_error("{{ 'a' * 1000000000 }}", "1000000000 bytes");
  expect_error("{{ 'ab' * 9223372036854775807 }}", "bytes");
  expect_error("{{ ([1] * 1000000000)|length }}", "1000000000 items");
  expect_error("{{ range(1000000000000) }}", "'range' of more than 100000");
  expect_error(
      "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "bytes");
  expect_error(
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "items");
  expect_error("{% set s = 'a' * 1000000 %}{{ ([s] * 100000)|join }}", "bytes");
  expect_error("{% set s = 'a' * 1000000 %}{{ s|replace('a', s)|length }}", "bytes");
  expect_error("{{ ('a' * 60000000)|list|length }}", "items");
  expect_error("{{ ('a,' * 30000000).split(',')|length }}", "items");
  expect_error("{{ ('[' ~ '[],' * 20000000 ~ '[]]')|from_json|length }}", "items");
  expect_error("{{ '%999999999d' % 1 }}", "width");
  expect_error("{{ '{:999999999}'.format(1) }}", "width");
  expect_error("{{ 'a'|indent(999999999999) }}", "bytes");
  ChatTemplateLimits limits;
  limits.output_bytes_max = 1000;
  expect_error("{% for i in range(101) %}0123456789{% endfor %}", "the limit is 1000", limits);
  EXPECT_TRUE(render("{% for i in range(100) %}0123456789{% endfor %}", limits).ok());
}

TEST(ChatTemplateLimits, SharedPartsDoNotMultiply) {
  const std::string doubling =
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% endfor %}";
  ChatTemplateLimits limits;
  limits.time_ms_max = 300;
  expect_error(doubling + "{{ ns.x }}", "", limits);
  expect_error(doubling + "{{ ns.x|tojson }}", "", limits);
  expect_error(doubling + "{{ ns.x == [ns.x[0], ns.x[1][:]] and ns.x[0][:] == ns.x[1] }}" +
                   doubling + "{{ ns.x|string|length }}",
               "", limits);
}

TEST(ChatTemplateLimits, DeepValuesAreFreedAndNotWalked) {
  const std::string deep =
      "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}"
      "{% endfor %}";
  EXPECT_TRUE(render(deep).ok());
  expect_error(deep + "{{ ns.x }}", "nested deeper");
  expect_error(deep + "{{ ns.x|tojson }}", "nested deeper");
  const std::string tuples =
      "{% set ns = namespace(x=()) %}{% for i in range(100000) %}{% set ns.x = (ns.x,) %}"
      "{% endfor %}";
  expect_error(tuples + "{{ {ns.x: 1} }}", "cannot be a key");
  const std::string other =
      "{% set ns2 = namespace(x=()) %}{% for i in range(100000) %}"
      "{% set ns2.x = (ns2.x,) %}{% endfor %}";
  expect_error(tuples + other + "{{ ns.x == ns2.x }}", "nested deeper");
  expect_error(tuples + other + "{{ ns.x < ns2.x }}", "nested deeper");
}

TEST(ChatTemplateLimits, CyclesAreFreed) {
  EXPECT_TRUE(render("{% set a = [] %}{% set _ = a.append(a) %}{{ a|length }}").ok());
  expect_error("{% set a = [] %}{% set _ = a.append(a) %}{{ a }}", "nested deeper");
  EXPECT_TRUE(render("{% set d = {} %}{% set _ = d.update({'d': d}) %}").ok());
  EXPECT_TRUE(render("{% set ns = namespace() %}{% set ns.ns = ns %}").ok());
  EXPECT_TRUE(render("{% for i in [1, 2] %}{% macro m() %}{{ m }}{% endmacro %}{% endfor %}").ok());
  EXPECT_TRUE(render("{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}"
                     "{% endfor %}{{ ns.l.index }}{{ ns.l.last }}{{ ns.l.length }}")
                  .ok());
}

TEST(ChatTemplateLimits, TurnsAndTimeAreLimited) {
  const std::string loops =
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  ChatTemplateLimits limits;
  limits.iterations_max = 5000;
  expect_error(loops, "more than 5000 loop turns", limits);
  expect_error("{% for a in range(6000) if false %}{% endfor %}", "loop turns", limits);
  limits = {};
  limits.time_ms_max = 100;
  limits.iterations_max = INT64_MAX;
  expect_error(loops, "longer than the limit of 100 ms", limits);
  limits.time_ms_max = 0;
  expect_error("{{ 1 }}", "limit of 0 ms", limits);
  limits.time_ms_max = 200;
  expect_error(
      "{% set s = 'a' * 60000000 %}{% for a in range(100000) %}{{ 'b' in s }}"
      "{% endfor %}",
      "ms", limits);
  expect_error(
      "{% set l = [] %}{% set _ = l.append(1) %}{% for x in l %}{% set _ = l.append(1) %}"
      "{% endfor %}",
      "", limits);
}

TEST(ChatTemplateErrors, NamePlaceAndCause) {
  expect_error("a\n  {{ foo.bar }}", "line 2, column 9: 'foo' is undefined");
  expect_error("{{ 1|frob }}", "line 1, column 6: no filter named 'frob'");
  expect_error("{{ 1 is frob }}", "no test named 'frob'");
  expect_error("{{ frob() }}", "'frob' is undefined");
  expect_error("{{ 'x'.frob() }}", "'frob' is undefined");
  expect_error("{% frob %}", "unknown tag 'frob'");
  expect_error("{{ raise_exception('as it is') }}", "as it is");
  expect_error("\xff", "invalid UTF-8");
  expect_error("{{ 'x", "string without end");
}

TEST(ChatTemplateErrors, BadInputIsAnError) {
  const auto parsed = ChatTemplate::parse("{{ messages }}{{ tools }}{{ x }}{{ bos_token }}");
  ASSERT_TRUE(parsed.ok());
  const auto render_input = [&](const ChatTemplateInput& input) {
    const Result<std::string> result = (*parsed)->render(input, {});
    return result.ok() ? *result : "error: " + result.status().message();
  };
  ChatTemplateInput input;
  EXPECT_NE(render_input(input).find("messages: JSON: line 1"), std::string::npos);
  input.messages_json = "{}";
  EXPECT_EQ(render_input(input), "error: messages: not an array");
  input.messages_json = "[]";
  EXPECT_EQ(render_input(input), "[]None");
  input.tools_json = "1";
  EXPECT_EQ(render_input(input), "error: tools: not an array");
  input.tools_json = "[1.0]";
  input.extra_json = "[]";
  EXPECT_EQ(render_input(input), "error: extra variables: not an object");
  input.extra_json = R"({"x": [1.50, {"k": null}], "unused": 1})";
  EXPECT_EQ(render_input(input), "[][1.0][1.5, {'k': None}]");
  input.bos_token = "\xff";
  EXPECT_EQ(render_input(input), "error: bos_token: invalid UTF-8");
}

TEST(ChatTemplate, OneTemplateServesManyThreads) {
  const auto parsed = ChatTemplate::parse(
      "{% set p = 'constant' %}{% for m in messages %}{{ p ~ m.content ~ 'tail' }}{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 500; ++round) {
        ChatTemplateInput input;
        input.messages_json = R"([{"content": "a"}, {"content": "b"}])";
        const Result<std::string> result = (*parsed)->render(input, {});
        wrong[t] += result.ok() && *result == "constantatailconstantbtail" ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace optima::tokenizer
