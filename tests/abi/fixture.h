// Handles that destroy themselves, and the tiny models, for the tests of the C ABI. Nothing here
// knows the library but through its public header.
#pragma once

#include <gtest/gtest.h>
#include <optima/optima.h>
#include <optima/optima_unstable.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace optima_test {

template <auto kDestroy>
struct Destroy {
  template <typename Handle>
  void operator()(Handle* handle) const {
    kDestroy(handle);
  }
};
using Engine = std::unique_ptr<optima_engine, Destroy<optima_engine_destroy>>;
using Model = std::unique_ptr<optima_model, Destroy<optima_model_destroy>>;
using Session = std::unique_ptr<optima_session, Destroy<optima_session_destroy>>;
using Request = std::unique_ptr<optima_request, Destroy<optima_request_destroy>>;
using Result = std::unique_ptr<optima_result, Destroy<optima_result_destroy>>;
using Buffer = std::unique_ptr<optima_buffer, Destroy<optima_buffer_destroy>>;
using Cancel = std::unique_ptr<optima_cancel, Destroy<optima_cancel_destroy>>;
using Options = std::unique_ptr<optima_options, Destroy<optima_options_destroy>>;
using Error = std::unique_ptr<optima_error, Destroy<optima_error_destroy>>;

// A struct at its defaults with its size set.
template <typename Struct>
Struct sized() {
  Struct value;
  std::memset(&value, 0, sizeof value);
  value.struct_size = sizeof value;
  return value;
}

// The status of a call, with the error object kept.
struct Outcome {
  optima_status status = OPTIMA_OK;
  Error error;
  std::string message() const { return optima_error_message(error.get()); }
};
template <typename Call>
Outcome outcome_of(Call call) {
  optima_error* error = nullptr;
  Outcome outcome;
  outcome.status = call(&error);
  outcome.error.reset(error);
  return outcome;
}

// Fails the test with the library's message.
template <typename Call>
void must(Call call) {
  const Outcome outcome = outcome_of(call);
  ASSERT_EQ(outcome.status, OPTIMA_OK) << outcome.message();
}

inline std::string tiny_path(const std::string& file) {
  return std::string(OPTIMA_SOURCE_DIR "/tests/goldens/tiny/") + file;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What the independent implementation says of the tiny model (make_tiny_model.py).
inline nlohmann::json tiny_golden() {
  return nlohmann::json::parse(read_file(tiny_path("llama-f32.json")));
}

inline Engine make_engine(optima_engine_options options = sized<optima_engine_options>()) {
  if (options.threads == 0) options.threads = 1;
  optima_engine* engine = nullptr;
  must([&](optima_error** err) { return optima_engine_create(&options, &engine, err); });
  return Engine(engine);
}

// No page of KV is lost, kept for nothing or miscounted, whatever state the engine is in.
inline void expect_sound_pages(const Engine& engine) {
  auto report = sized<optima_kv_audit_report>();
  must([&](optima_error** err) { return optima_kv_audit(engine.get(), &report, err); });
  EXPECT_EQ(report.leaked, 0);
  EXPECT_EQ(report.mis_retained, 0);
  EXPECT_EQ(report.miscounted, 0);
  EXPECT_EQ(report.inconsistent, 0);
  EXPECT_EQ(report.pages_free + report.pages_open + report.pages_sealed + report.pages_cached,
            report.pages_total);
}

inline Model open_tiny(const Engine& engine, const std::string& file = "llama-f32.gguf") {
  optima_model* model = nullptr;
  const std::string path = tiny_path(file);
  must([&](optima_error** err) {
    return optima_model_open_path(engine.get(), path.c_str(), OPTIMA_NTS, nullptr, &model, err);
  });
  return Model(model);
}

inline Session make_session(const Model& model, int64_t context_tokens = 0) {
  auto options = sized<optima_session_options>();
  options.context_tokens = context_tokens;
  optima_session* session = nullptr;
  must([&](optima_error** err) {
    return optima_session_create(model.get(), &options, &session, err);
  });
  return Session(session);
}

inline optima_request_desc ask(const char* prompt, int64_t max_tokens) {
  auto desc = sized<optima_request_desc>();
  desc.prompt = prompt;
  desc.prompt_bytes = OPTIMA_NTS;
  desc.max_tokens = max_tokens;
  return desc;
}

inline Result generate(const Session& session, const optima_request_desc& desc) {
  optima_result* result = nullptr;
  must([&](optima_error** err) { return optima_generate(session.get(), &desc, &result, err); });
  return Result(result);
}

inline std::vector<int32_t> token_ids(const Result& result) {
  int64_t count = 0;
  const int32_t* ids = optima_result_token_ids(result.get(), &count);
  return {ids, ids + count};
}

inline std::vector<int32_t> session_tokens(const Session& session) {
  optima_buffer* buffer = nullptr;
  must([&](optima_error** err) { return optima_session_tokens(session.get(), &buffer, err); });
  const Buffer owned(buffer);
  int64_t count = 0;
  const int32_t* ids = optima_buffer_ids(buffer, &count);
  return {ids, ids + count};
}

// Counts calls of a release hook.
inline void count_release(void* user) {
  ++*static_cast<int*>(user);
}

// An engine with the tiny model and a session.
class TinyTest : public testing::Test {
 protected:
  void TearDown() override {
    if (engine_ != nullptr) expect_sound_pages(engine_);
  }
  Engine engine_ = make_engine();
  Model model_ = open_tiny(engine_);
  Session session_ = make_session(model_);
};

// The golden request of the tiny model, and what comes out of it.
class GoldenTest : public TinyTest {
 protected:
  nlohmann::json golden_ = tiny_golden();
  std::string prompt_ = golden_["prompt"];
  std::vector<int32_t> prompt_ids_ = golden_["prompt_ids"];
  std::vector<int32_t> wanted_ = golden_["continuation_ids"];

  // The golden request: greedy, to the golden's length.
  optima_request_desc golden_desc() {
    auto desc = ask(prompt_.c_str(), static_cast<int64_t>(wanted_.size()));
    desc.flags = OPTIMA_REQUEST_IGNORE_EOS;
    return desc;
  }
};

}  // namespace optima_test
