// Metadata by key: absent, present, of another type; and values as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/model_file.h"

namespace optima::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Metadata sample() {
  Metadata metadata;
  const auto add = [&](std::string_view key, auto value) {
    EXPECT_TRUE(metadata.insert(key, MetadataValue{value}).ok());
  };
  add("i", int64_t{3});
  add("f", 2.5);
  add("b", true);
  add("s", std::string_view("text"));
  add("is", MetadataValue::Ints{1, 2, 3});
  add("fs", MetadataValue::Floats{0.5});
  add("bs", MetadataValue::Bools{1, 0});
  add("ss", MetadataValue::Strings{"x", "y"});
  return metadata;
}

TEST(Metadata, FindsByKeyAndType) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.integer("i")->value(), 3);
  EXPECT_EQ(metadata.real("f")->value(), 2.5);
  EXPECT_EQ(metadata.boolean("b")->value(), true);
  EXPECT_EQ(metadata.string("s")->value(), "text");
  EXPECT_EQ(**metadata.integers("is"), (MetadataValue::Ints{1, 2, 3}));
  EXPECT_EQ(**metadata.reals("fs"), MetadataValue::Floats{0.5});
  EXPECT_EQ(**metadata.strings("ss"), (MetadataValue::Strings{"x", "y"}));
  EXPECT_EQ(metadata.entries().size(), 8u);
  EXPECT_EQ(metadata.entries()[3].first, "s");
}

TEST(Metadata, WidensIntegersToFloat) {
  EXPECT_EQ(sample().real("i")->value(), 3.0);
}

TEST(Metadata, AbsentIsNotAnError) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.find("none"), nullptr);
  EXPECT_FALSE(metadata.integer("none")->has_value());
  EXPECT_FALSE(metadata.real("none")->has_value());
  EXPECT_FALSE(metadata.boolean("none")->has_value());
  EXPECT_FALSE(metadata.string("none")->has_value());
  EXPECT_EQ(*metadata.integers("none"), nullptr);
  EXPECT_EQ(*metadata.reals("none"), nullptr);
  EXPECT_EQ(*metadata.strings("none"), nullptr);
}

TEST(Metadata, AnotherTypeIsAnErrorThatNamesKeyAndTypes) {
  const Metadata metadata = sample();
  const auto expect = [](const Status& status, const char* has, const char* wanted) {
    EXPECT_EQ(status.code(), Code::format);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("'"), HasSubstr(has), HasSubstr(wanted)));
  };
  expect(metadata.integer("f").status(), "'f' is of type float", "not integer");
  expect(metadata.integer("b").status(), "'b' is of type bool", "not integer");
  expect(metadata.real("s").status(), "'s' is of type string", "not float");
  expect(metadata.boolean("i").status(), "'i' is of type integer", "not bool");
  expect(metadata.string("is").status(), "'is' is of type integer array", "not string");
  expect(metadata.integers("fs").status(), "'fs' is of type float array", "not integer array");
  expect(metadata.reals("bs").status(), "'bs' is of type bool array", "not float array");
  expect(metadata.strings("s").status(), "'s' is of type string", "not string array");
}

TEST(Metadata, ADuplicateKeyIsAnErrorAndKeepsTheFirst) {
  Metadata metadata = sample();
  EXPECT_EQ(metadata.insert("i", MetadataValue{int64_t{4}}).code(), Code::format);
  EXPECT_EQ(metadata.integer("i")->value(), 3);
  EXPECT_EQ(metadata.entries().size(), 8u);
}

TEST(MetadataText, ShowsScalars) {
  const auto shown = [](auto value) { return to_string(MetadataValue{value}, 10); };
  EXPECT_EQ(shown(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(shown(static_cast<double>(1e-5f)), "1e-05");  // 32 bits wide in the file
  EXPECT_EQ(shown(0.1), "0.1");
  EXPECT_EQ(shown(1e300), "1e+300");
  EXPECT_EQ(shown(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(shown(true), "true");
  EXPECT_EQ(shown(false), "false");
  EXPECT_EQ(shown(std::string_view("as \"it\"\nis")), "as \"it\"\nis");
}

TEST(MetadataText, CutsArrays) {
  const MetadataValue ints{MetadataValue::Ints{1, 2, 3}};
  EXPECT_EQ(to_string(ints, 3), "[1, 2, 3]");
  EXPECT_EQ(to_string(ints, 100), "[1, 2, 3]");
  EXPECT_EQ(to_string(ints, 2), "[1, 2, ... 3 items]");
  EXPECT_EQ(to_string(ints, 0), "[... 3 items]");
  EXPECT_EQ(to_string({MetadataValue::Ints{}}, 0), "[]");
  EXPECT_EQ(to_string({MetadataValue::Bools{1, 0}}, 9), "[true, false]");
  EXPECT_EQ(to_string({MetadataValue::Floats{0.5, -1e-5}}, 9), "[0.5, -1e-05]");
  EXPECT_EQ(to_string({MetadataValue::Strings{"a\"\\", "\n\t", "\xc3\xa9"}}, 9),
            "[\"a\\\"\\\\\", \"\\n\\x09\", \"\xc3\xa9\"]");
}

}  // namespace
}  // namespace optima::model
