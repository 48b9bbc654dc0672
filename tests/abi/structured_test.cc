// Structured output, the host's hook on logits, and weights quantised at load, through the C ABI;
// and clients that know none of the fields for them.
#include <cstddef>
#include <cstring>
#include <regex>
#include <stdexcept>

#include "fixture.h"

namespace optima_test {
namespace {

class StructuredTest : public TinyTest {
 protected:
  optima_request_desc desc_ = ask("the cat", 60);
};

TEST_F(StructuredTest, EveryLanguage) {
  struct Row {
    optima_grammar kind;
    const char* text;
    const char* pattern;
  };
  const Row rows[] = {
      {OPTIMA_GRAMMAR_REGEX, "[0-9]{4}", "[0-9]{4}"},
      {OPTIMA_GRAMMAR_GBNF, "root ::= \"a\" [b-d]", "a[b-d]"},
      {OPTIMA_GRAMMAR_JSON_SCHEMA, "{\"enum\":[\"x\",7,null]}", "\\s*(\"x\"|7|null)\\s*"},
      {OPTIMA_GRAMMAR_JSON_SCHEMA, "{\"type\":\"boolean\"}", "\\s*(true|false)\\s*"}};
  for (const Row& row : rows) {
    desc_.grammar_kind = row.kind;
    desc_.grammar = row.text;
    desc_.grammar_bytes = OPTIMA_NTS;
    desc_.temperature = 1;
    const Result result = generate(session_, desc_);
    const std::string text = optima_result_text(result.get(), nullptr);
    EXPECT_TRUE(std::regex_match(text, std::regex(row.pattern))) << row.text << ": " << text;
    EXPECT_EQ(optima_result_finish(result.get()), OPTIMA_FINISH_STOP);
  }
}

TEST_F(StructuredTest, BadGrammarsAreErrors) {
  const auto status = [&](optima_grammar kind, const char* text) {
    auto desc = ask("the cat", 4);
    desc.grammar_kind = kind;
    desc.grammar = text;
    desc.grammar_bytes = OPTIMA_NTS;
    optima_error* error = nullptr;
    const optima_status got = optima_generate(session_.get(), &desc, nullptr, &error);
    optima_error_destroy(error);
    return got;
  };
  EXPECT_EQ(status(OPTIMA_GRAMMAR_REGEX, "("), OPTIMA_E_ARG);
  EXPECT_EQ(status(OPTIMA_GRAMMAR_REGEX, "(?=a)"), OPTIMA_E_UNSUPPORTED);
  EXPECT_EQ(status(OPTIMA_GRAMMAR_JSON_SCHEMA, "{\"not\":{}}"), OPTIMA_E_UNSUPPORTED);
  EXPECT_EQ(status(OPTIMA_GRAMMAR_JSON_SCHEMA, "{"), OPTIMA_E_ARG);
  EXPECT_EQ(status(OPTIMA_GRAMMAR_GBNF, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(status(OPTIMA_GRAMMAR_NONE, "root ::= \"a\""), OPTIMA_E_ARG);
  EXPECT_EQ(status(99, "a"), OPTIMA_E_UNSUPPORTED);
  EXPECT_EQ(status(OPTIMA_GRAMMAR_JSON, nullptr), OPTIMA_OK);
}

TEST_F(StructuredTest, TheHookChoosesAndMayEndIt) {
  struct Seen {
    int calls = 0;
    int64_t vocabulary = 0, first_count = 0;
    int32_t answer = 0;
    bool throws = false;
  } seen;
  desc_.max_tokens = 3;
  desc_.flags = OPTIMA_REQUEST_IGNORE_EOS;
  desc_.user = &seen;
  desc_.on_logits = [](void* user, float* logits, int64_t vocabulary, const int32_t*,
                       int64_t count) -> int32_t {
    auto& s = *static_cast<Seen*>(user);
    if (s.throws) throw std::runtime_error("no");
    if (s.calls++ == 0) s.first_count = count;
    s.vocabulary = vocabulary;
    for (int64_t i = 0; i < vocabulary; ++i) logits[i] = i == 70 + s.calls ? 1.0f : 0.0f;
    return s.answer;
  };
  const Result result = generate(session_, desc_);
  EXPECT_EQ(token_ids(result), (std::vector<int32_t>{71, 72, 73}));
  EXPECT_EQ(seen.calls, 3);
  EXPECT_GT(seen.first_count, 0);
  seen.answer = 5;
  EXPECT_EQ(optima_generate(session_.get(), &desc_, nullptr, nullptr), OPTIMA_E_STATE);
  seen.throws = true;
  EXPECT_EQ(optima_generate(session_.get(), &desc_, nullptr, nullptr), OPTIMA_E_INTERNAL);
  desc_.on_logits = nullptr;
  EXPECT_EQ(optima_generate(session_.get(), &desc_, nullptr, nullptr), OPTIMA_OK);
}

// A client of the first header: its structs end where `release` ends.
TEST_F(StructuredTest, StructsOfOlderClientsAreTaken) {
  desc_.struct_size = offsetof(optima_request_desc, release) + sizeof desc_.release;
  std::memset(reinterpret_cast<char*>(&desc_) + desc_.struct_size, 0x5a,
              sizeof desc_ - desc_.struct_size);
  desc_.max_tokens = 4;
  EXPECT_EQ(optima_generate(session_.get(), &desc_, nullptr, nullptr), OPTIMA_OK);
  optima_model_options options;
  std::memset(&options, 0x5a, sizeof options);
  const size_t old = offsetof(optima_model_options, release) + sizeof options.release;
  std::memset(&options, 0, old);
  options.struct_size = static_cast<uint32_t>(old);
  optima_model* model = nullptr;
  EXPECT_EQ(optima_model_open_path(engine_.get(), tiny_path("llama-f32.gguf").c_str(), OPTIMA_NTS,
                                   &options, &model, nullptr),
            OPTIMA_OK);
  optima_model_destroy(model);
}

TEST_F(StructuredTest, WeightsAreQuantisedInTheEnginesMemory) {
  const auto used = [&] {
    auto memory = sized<optima_memory>();
    EXPECT_EQ(optima_mem_query(engine_.get(), &memory, nullptr), OPTIMA_OK);
    return memory.used_bytes;
  };
  const auto open = [&](const std::string& path, optima_weights weights, Model& out) {
    auto options = sized<optima_model_options>();
    options.weights = weights;
    optima_model* model = nullptr;
    const optima_status status =
        optima_model_open_path(engine_.get(), path.c_str(), path.size(), &options, &model, nullptr);
    out.reset(model);
    return status;
  };
  const std::string folder = OPTIMA_SOURCE_DIR "/tests/goldens/arch/llama_llama3";
  const int64_t before = used();
  Model model;
  for (const optima_weights weights : {OPTIMA_WEIGHTS_Q8_0, OPTIMA_WEIGHTS_Q4_0}) {
    ASSERT_EQ(open(folder, weights, model), OPTIMA_OK);
    EXPECT_GT(used(), before);
    model.reset();
    EXPECT_EQ(used(), before);
  }
  EXPECT_EQ(open(folder, 7, model), OPTIMA_E_UNSUPPORTED);
  // Rows that are not whole blocks of 32 anywhere: nothing could be quantised.
  EXPECT_EQ(open(tiny_path("llama-f32.gguf"), OPTIMA_WEIGHTS_Q8_0, model), OPTIMA_E_UNSUPPORTED);
}

}  // namespace
}  // namespace optima_test
