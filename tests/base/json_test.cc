// The JSON reader, against cases written down from RFC 8259 and against nlohmann::json over
// thousands of mutated documents.
#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace optima::json {
namespace {

using Reference = nlohmann::ordered_json;

bool same(const Value& ours, const Reference& theirs) {
  switch (theirs.type()) {
    case Reference::value_t::null:
      return ours.is_null();
    case Reference::value_t::boolean:
      return ours.boolean() != nullptr && *ours.boolean() == theirs.get<bool>();
    case Reference::value_t::number_unsigned:
      if (theirs.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        return ours.real() != nullptr && *ours.real() == theirs.get<double>();
      }
      [[fallthrough]];
    case Reference::value_t::number_integer:
      return ours.integer() != nullptr && *ours.integer() == theirs.get<int64_t>();
    case Reference::value_t::number_float:
      return ours.real() != nullptr && *ours.real() == theirs.get<double>();
    case Reference::value_t::string:
      return ours.string() != nullptr && *ours.string() == theirs.get<std::string>();
    case Reference::value_t::array: {
      if (ours.array() == nullptr || ours.array()->size() != theirs.size()) return false;
      for (size_t i = 0; i < theirs.size(); ++i) {
        if (!same((*ours.array())[i], theirs[i])) return false;
      }
      return true;
    }
    case Reference::value_t::object: {
      if (ours.object() == nullptr || ours.object()->size() != theirs.size()) return false;
      auto member = ours.object()->begin();
      for (const auto& [key, value] : theirs.items()) {
        if (member->key != key || !same(member->value, value)) return false;
        ++member;
      }
      return true;
    }
    default:
      return false;
  }
}

// Both readers accept the text with the same meaning, or both refuse it.
void expect_agreement(const std::string& source) {
  const Reference theirs = Reference::parse(source, nullptr, /*allow_exceptions=*/false);
  const Result<Value> ours = parse(source);
  ASSERT_EQ(ours.ok(), !theirs.is_discarded())
      << source << "\n"
      << (ours.ok() ? "accepted" : ours.status().message());
  if (ours.ok()) {
    ASSERT_TRUE(same(*ours, theirs)) << source;
  }
}

const char* const kDocuments[] = {
    R"([])",
    R"({})",
    R"( {"a" : [1, -2, 3.5, 1e3, -0, 0.0, 1E-2, 12345678901234567890, 9223372036854775807]} )",
    R"({"text": "q\"b\\s\/\b\f\n\r\t\u00e9\ud83d\ude00 é 東京 👍", "": null})",
    R"([true, false, null, [[[[]]]], {"x": {"y": {"z": []}}}])",
    R"([1e400, -1e400, 1e-400, 5e-324, 1.7976931348623157e308])",
    R"({"k": 1, "l": 2, "k": 3})",
    R"(["\ud800", "\udc00", "\ud800\u0041", "\u12", "\x41"])",
    R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "n": 1.0}])",
    "[1,\n 2,\r\n\t3]",
};

TEST(Json, AgreesWithReferenceOnWholeDocuments) {
  for (const char* document : kDocuments) expect_agreement(document);
  for (const char* document : {"",
                               " ",
                               "1",
                               "\"a\"",
                               "nul",
                               "true false",
                               "01",
                               "1.",
                               ".5",
                               "+1",
                               "-",
                               "1e",
                               "1e+",
                               "[1,]",
                               "[,1]",
                               "{,}",
                               "{\"a\":}",
                               "{\"a\"}",
                               "{a:1}",
                               "{\"a\":1,}",
                               "'a'",
                               "\"a\nb\"",
                               "\"\t\"",
                               "[1 2]",
                               "\"\\",
                               "\"\\u",
                               "NaN",
                               "Infinity",
                               "// c\n1",
                               "[",
                               "]",
                               "{",
                               "}",
                               "\"",
                               "\xff",
                               "\"\xc3\"",
                               "\"\xc0\xaf\"",
                               "\"\xed\xa0\x80\"",
                               "\"\xf4\x90\x80\x80\"",
                               "-1e-7"}) {
    expect_agreement(document);
  }
}

TEST(Json, AgreesWithReferenceOnMutatedDocuments) {
  std::mt19937 random(20'240'817);
  const std::string pieces[] = {"{",    "}",     "[",        "]",        ",", ":", "\"",
                                "\\",   "\\u00", "1",        "-",        "e", ".", "0",
                                "null", "true",  "\xc3\xa9", "\xf0\x9f", " ", "\n"};
  for (int round = 0; round < 20'000; ++round) {
    std::string source = kDocuments[random() % std::size(kDocuments)];
    for (uint32_t edits = random() % 3 + 1; edits > 0 && !source.empty(); --edits) {
      const size_t at = random() % source.size();
      switch (random() % 4) {
        case 0:
          source[at] = static_cast<char>(random() % 255 + 1);
          break;
        case 1:
          source.erase(at, random() % 4 + 1);
          break;
        case 2:
          source.insert(at, pieces[random() % std::size(pieces)]);
          break;
        default:
          source.insert(at, source.substr(random() % source.size(), random() % 12));
      }
    }
    expect_agreement(source);
    if (HasFatalFailure()) return;
  }
}

TEST(Json, AgreesOnObjectsWithManyKeys) {
  std::string source = "{";
  for (int i = 0; i < 300; ++i) {
    source += (i > 0 ? ",\"k" : "\"k") + std::to_string(i * 7 % 97) + "\":" + std::to_string(i);
  }
  expect_agreement(source + "}");
}

TEST(Json, FindsMembers) {
  const Result<Value> value = parse(R"({"a": {"b": [1, "x"]}})");
  ASSERT_TRUE(value.ok());
  ASSERT_NE(value->find("a"), nullptr);
  const Value* const list = value->find("a")->find("b");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(*(*list->array())[0].integer(), 1);
  EXPECT_EQ(value->find("z"), nullptr);
  EXPECT_EQ(list->find("b"), nullptr);
}

TEST(Json, LimitsDepth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(parse(nested(128)).ok());
  EXPECT_FALSE(parse(nested(129)).ok());
  EXPECT_FALSE(parse(nested(1'000'000)).ok());
  EXPECT_TRUE(parse(nested(500), {.depth_max = 500}).ok());
  EXPECT_FALSE(parse("[1]", {.depth_max = 0}).ok());
}

TEST(Json, ErrorsNameThePlace) {
  const Result<Value> value = parse("{\n  \"a\": tru\n}");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().code(), Code::invalid_argument);
  EXPECT_EQ(value.status().message(), "JSON: line 2, column 8: unknown literal");
}

}  // namespace
}  // namespace optima::json
