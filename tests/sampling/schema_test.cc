// JSON Schema: what each keyword accepts and refuses, and the words of refusals. Random schemas
// against other validators are in tests/long/schema_walks.py.
#include <gtest/gtest.h>

#include <string>

#include "tests/sampling/grammar_testing.h"

namespace optima::sampling {
namespace {

struct Example {
  const char* schema;
  std::vector<const char*> yes, no;
};

void check(const std::vector<Example>& examples) {
  for (const Example& example : examples) {
    Result<std::shared_ptr<const Grammar>> grammar =
        compile(GrammarKind::json_schema, example.schema);
    ASSERT_TRUE(grammar.ok()) << example.schema << ": " << grammar.status().message();
    for (const char* text : example.yes)
      EXPECT_EQ(verdict(*grammar, text), "yes") << example.schema << " on " << text;
    for (const char* text : example.no)
      EXPECT_NE(verdict(*grammar, text), "yes") << example.schema << " on " << text;
  }
}

TEST(Schema, Objects) {
  check({{R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},
              "c":{}},"required":["a","b"],"additionalProperties":false})",
          {R"({"a":1,"b":""})", R"({"b":"x","a":-2})", R"({"c":[null],"b":"x", "a" : 1})"},
          {R"({"a":1})", R"({"a":1,"b":"x","d":1})", R"({"a":1,"a":1,"b":""})", R"({"b":1,"a":1})",
           "{}"}},
         {R"({"type":"object","properties":{"a":{"type":"integer"}},
              "additionalProperties":{"type":"boolean"}})",
          {"{}", R"({"x":true,"a":1,"y":false})", R"({"ab":true,"":false})"},
          {R"({"a":true})", R"({"x":1})"}},
         {R"({"properties":{"a":{"const":1}},"required":["b"]})",
          {R"({"a":1,"b":2})", R"({"b":[],"z":1})", "17", R"("text")"},
          {R"({"a":1})", R"({"a":2,"b":1})"}},
         {R"({"type":"object","patternProperties":{"^x":{"type":"integer"},"y$":{"minimum":3}},
              "additionalProperties":false})",
          {R"({"xa":1,"xy":3,"by":"s"})", R"({"x\u00e9":1})"},
          {R"({"xy":2})", R"({"b":1})", R"({"x":"s"})"}},
         {R"({"type":"object","properties":{"a":{},"b":{},"c":{},"d":{}},"required":["d"],
              "minProperties":2,"maxProperties":3,"additionalProperties":false})",
          {R"({"a":1,"d":1})", R"({"d":1,"c":1,"b":1})"},
          {R"({"d":1})", R"({"a":1,"b":1,"c":1})", R"({"a":1,"b":1,"c":1,"d":1})"}},
         {R"({"type":"object","properties":{"é\"/":{}},"required":["é\"/"]})",
          {R"({"é\"/":1})", R"({"\u00e9\"\/":1})"},
          {"{}"}},
         {R"({"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":2},
              "b":{}},"additionalProperties":false})",
          {R"({"b":1})", "{}"},
          {R"({"a":3})"}}});
}

TEST(Schema, Arrays) {
  check({{R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],
              "items":{"type":"boolean"},"minItems":1,"maxItems":4})",
          {"[1]", R"([1,"a"])", R"([1,"a",true,false])"},
          {"[]", R"(["a"])", R"([1,"a",1])", R"([1,"a",true,true,true])"}},
         {R"({"type":"array","prefixItems":[{"type":"integer"}],"items":false})",
          {"[]", "[1]"},
          {"[1,1]"}},
         {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
          {"[1,2]", "[ 1 ,2, 3 ]"},
          {"[1]", "[]", "[1,2,3,4]", "[1,true]"}},
         {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}}});
}

TEST(Schema, Numbers) {
  check({{R"({"type":"integer","minimum":-17,"exclusiveMaximum":120})",
          {"-17", "0", "119", "-9", "99"},
          {"-18", "120", "1000", "-0", "01", "1.0", "-170"}},
         {R"({"type":"integer","exclusiveMinimum":0.5,"multipleOf":7})",
          {"7", "14", "700", "7000000000000000000007"},
          {"0", "8", "-7"}},
         {R"({"type":"integer","minimum":9223372036854775807})",
          {"9223372036854775807", "9223372036854775808"},
          {"9223372036854775806"}},
         {R"({"type":"number","minimum":-1.5,"exclusiveMaximum":2.25})",
          {"-1.5", "0", "-0.0", "2.249999", "1e-05", "2.24e0", "-1.5E+00", "1.5e-324", "-1.50"},
          {"2.25", "2.250", "2.25e0", "-1.51", "1e1", "3", "22.4e-1", "-1.6e0"}},
         {R"({"type":"number","exclusiveMinimum":0})",
          {"0.01", "1e308", "1e-323", "5e-324", "12"},
          {"0", "0.0", "-1", "1e-324", "0e5"}},
         {R"({"type":"number","minimum":1e20,"maximum":1.5e22})",
          {"100000000000000000000", "1e20", "1.5e+22", "15000000000000000000000.0"},
          {"99999999999999999999", "1.51e22", "9.9e19", "15000000000000000000000.1"}},
         {R"({"type":["integer","null"]})", {"5", "null"}, {"5.5", "\"\""}}});
}

TEST(Schema, Strings) {
  check(
      {{R"({"type":"string","minLength":2,"maxLength":3})",
        {"\"ab\"", "\"\U0001F600\U0001F600\"", R"("\ud83d\ude00\n\u0041")"},
        {"\"a\"", "\"abcd\"", R"("\u0041")"}},
       {R"({"type":"string","pattern":"b+"})", {"\"abc\"", "\"b\\n\""}, {"\"ac\""}},
       {R"({"type":"string","pattern":"^a.$","maxLength":9})", {"\"ab\""}, {"\"abc\"", "\"a\""}},
       {R"({"type":"string","pattern":"^[ab]*$","minLength":2,"maxLength":3})",
        {"\"ab\"", "\"aaa\""},
        {"\"a\"", "\"abab\"", "\"ac\""}},
       {R"({"type":"string","format":"date"})",
        {"\"2024-02-29\"", "\"1999-12-31\"", "\"2000-02-29\""},
        {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\""}},
       {R"({"type":"string","format":"date-time"})",
        {"\"2024-02-29T23:59:59.5Z\"", "\"2024-02-28t00:00:00+01:30\""},
        {"\"2024-02-29 23:59:59Z\"", "\"2024-02-29T24:00:00Z\"", "\"2024-02-29T23:59:59\""}},
       {R"({"type":"string","format":"ipv6"})",
        {"\"::\"", "\"1::8\"", "\"1:2:3:4:5:6:7:8\"", "\"::ffff:1.2.3.4\"", "\"1:2::7:8\""},
        {"\"1:2:3:4:5:6:7\"", "\":::\"", "\"1::2::3\"", "\"12345::\"", "\"1.2.3.4\""}},
       {R"({"type":"string","format":"uri"})",
        {"\"https://a.b:80/c?d=e#f\"", "\"mailto:x@y\"", "\"urn:isbn:1\"", "\"http://[::1]/\""},
        {"\"a b:c\"", "\"//host\"", "\"1http://a\"", "\"http://a/%zz\""}},
       {R"({"type":"string","format":"email"})", {"\"a.b+c@d-e.fr\""}, {"\"a@\"", "\"a..b@c\""}},
       {R"({"type":"string","format":"ipv4"})", {"\"255.0.10.1\""}, {"\"256.0.0.1\"", "\"1.2.3\""}},
       {R"({"type":"string","format":"duration"})",
        {"\"P1Y2M3DT4H\"", "\"P3W\""},
        {"\"P\"", "\"PT\""}},
       {R"({"type":"string","format":"uuid"})",
        {"\"123e4567-E89b-12d3-a456-426614174000\""},
        {"\"123e4567e89b12d3a456426614174000\""}}});
}

TEST(Schema, ChoicesAndConstants) {
  check({{R"({"enum":[1,"a\"b",null,{"p":[1,{}],"q":2.5}]})",
          {"1", R"("a\"b")", "null", R"({"q":2.5,"p":[1,{}]})", R"({ "p":[ 1,{} ],"q":2.50 })"},
          {"2", R"({"p":[1,{}]})", "1.0"}},
         {R"({"type":["integer","string"],"enum":[1,"abc",2.5,"x",[1]],"minLength":2})",
          {"1", "\"abc\""},
          {"\"x\"", "2.5", "[1]"}},
         {R"({"anyOf":[{"type":"integer"},{"type":"string"}],"minimum":3,"maxLength":1})",
          {"3", "\"a\""},
          {"2", "\"ab\"", "null"}},
         {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},
              "required":["k","x"]},{"type":"object","properties":{"k":{"const":"b"}},
              "required":["k"]}]})",
          {R"({"k":"a","x":1})", R"({"x":1,"k":"a"})", R"({"k":"b","x":"s"})"},
          {R"({"k":"a"})", R"({"k":"c"})", R"({"x":"s","k":"a"})"}},
         {R"({"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"^b"}]})",
          {"\"ab\"", "\"b\""},
          {"\"c\""}},
         {R"({"allOf":[{"properties":{"a":{"type":"integer"}},"additionalProperties":false},
              {"properties":{"a":{"minimum":5},"b":{}}}],"type":"object"})",
          {"{}", R"({"a":5})"},
          {R"({"a":4})", R"({"b":1})"}},
         {R"({"allOf":[{"anyOf":[{"const":1},{"const":2}]},{"anyOf":[{"const":2},{"const":3}]}]})",
          {"2"},
          {"1", "3"}},
         {"true", {"[{}]", "1"}, {""}}});
}

TEST(Schema, ReferencesAndRecursion) {
  check({{R"({"$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},
              "kids":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["v"],
              "additionalProperties":false}},"$ref":"#/$defs/t"})",
          {R"({"v":1,"kids":[{"v":2},{"kids":[],"v":3}]})"},
          {R"({"v":1,"kids":[{}]})"}},
         {R"({"$defs":{"a/b~c":{"type":"integer"}},"items":{"$ref":"#/$defs/a~1b~0c"},
              "type":"array"})",
          {"[1]"},
          {"[\"\"]"}},
         {R"({"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n","minimum":5})", {"5"}, {"4"}},
         {R"({"$defs":{"a":{"type":"object","properties":{"k":{"const":"a"},"n":{"$ref":"#"}},
              "required":["k"]},"b":{"type":"object","properties":{"k":{"const":"b"},
              "n":{"$ref":"#"}},"required":["k"]}},
              "anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]})",
          {R"({"n":{"n":{"n":{"k":"a"},"k":"b"},"k":"a"},"k":"b"})"},
          {R"({"n":{"k":"c"},"k":"a"})"}}});
}

TEST(Schema, RefusesByNameAndPlace) {
  const auto refusal = [](std::string_view schema) {
    const Status status = compile(GrammarKind::json_schema, schema).status();
    return std::to_string(static_cast<int>(status.code())) + " " + status.message();
  };
  EXPECT_EQ(refusal(R"({"properties":{"a/b":{"not":{}}}})"),
            "-15 schema, #/properties/a/b/not: the keyword 'not' is not supported");
  EXPECT_EQ(refusal(R"({"items":{"uniqueItems":true}})"),
            "-15 schema, #/items/uniqueItems: the keyword 'uniqueItems' is not supported");
  EXPECT_EQ(refusal(R"({"requird":["a"]})"),
            "-15 schema, #/requird: the keyword 'requird' is not supported");
  EXPECT_EQ(
      refusal(R"({"format":"iri"})"),
      "-15 schema, #/format: the format 'iri' is not supported; known: date, time, date-time, "
      "duration, email, hostname, ipv4, ipv6, uri, uuid");
  EXPECT_EQ(refusal("{\"pattern\":\"(?=a)\"}"),
            "-15 schema, #/pattern: pattern, byte 2: lookaround is not supported");
  EXPECT_EQ(refusal(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"),
            "-15 schema, #/oneOf: branches 0 and 1 have values in common; oneOf is supported where "
            "none have, use anyOf otherwise");
  EXPECT_EQ(refusal(R"({"$ref":"other.json"})"),
            "-15 schema, #/$ref: the reference 'other.json' is not supported: only # and #/...");
  EXPECT_EQ(refusal(R"({"$ref":"#/nothing"})"),
            "-1 schema, #/$ref: there is nothing at '#/nothing'");
  EXPECT_EQ(refusal(R"({"multipleOf":0.1})"),
            "-15 schema, #/multipleOf: multipleOf is supported for whole numbers of 63 bits");
  EXPECT_EQ(refusal(R"({"minProperties":3})"),
            "-15 schema, #/minProperties: 3 is supported only where additionalProperties is false "
            "or all are required");
  EXPECT_EQ(refusal(R"({"type":"strin"})"), "-1 schema, #/type: names no type");
  EXPECT_EQ(refusal(R"({"minLength":-1})"),
            "-1 schema, #/minLength: must be a whole number of 0 or more");
  EXPECT_EQ(refusal("{"), "-1 JSON: line 1, column 2: expected a key in double quotes");
  EXPECT_EQ(refusal(R"({"type":"integer","minimum":2,"maximum":1})"),
            "-1 no text satisfies the grammar: it can never end");
}

TEST(Schema, PassesOverAnnotations) {
  check({{R"({"title":"t","description":"d","default":3,"examples":[1],"$schema":"s","$id":"i",
              "$comment":"c","deprecated":true,"readOnly":true,"x-order":1,"type":"integer"})",
          {"3"},
          {"\"\""}}});
}

}  // namespace
}  // namespace optima::sampling
