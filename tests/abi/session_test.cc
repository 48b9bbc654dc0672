// What a session can do beside generating: be forked, cut, saved and restored; and what the engine
// counts of it.
#include <cstdio>

#include "fixture.h"

namespace optima_test {
namespace {

using SessionTest = GoldenTest;

TEST_F(SessionTest, ForksContinueOnTheirOwn) {
  auto desc = golden_desc();
  desc.max_tokens = 0;
  desc.flags = OPTIMA_REQUEST_PROMPT_ONLY;
  generate(session_, desc);
  optima_session* handle = nullptr;
  must([&](optima_error** err) { return optima_session_fork(session_.get(), &handle, err); });
  const Session fork(handle);
  auto more = sized<optima_request_desc>();
  more.prompt = "";
  more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
  more.max_tokens = static_cast<int64_t>(wanted_.size());
  EXPECT_EQ(token_ids(generate(fork, more)), wanted_);
  EXPECT_EQ(session_tokens(session_), prompt_ids_);

  must([&](optima_error** err) { return optima_session_truncate(fork.get(), 5, err); });
  EXPECT_EQ(session_tokens(fork),
            std::vector<int32_t>(prompt_ids_.begin(), prompt_ids_.begin() + 5));
  EXPECT_EQ(optima_session_truncate(fork.get(), -1, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(optima_session_fork(fork.get(), nullptr, nullptr), OPTIMA_E_ARG);
}

TEST_F(SessionTest, SavedSessionsGoOn) {
  auto desc = golden_desc();
  desc.max_tokens = 4;
  generate(session_, desc);
  std::string saved;
  const auto append = [](void* user, const void* from, int64_t bytes) -> int32_t {
    static_cast<std::string*>(user)->append(static_cast<const char*>(from),
                                            static_cast<size_t>(bytes));
    return 0;
  };
  must(
      [&](optima_error** err) { return optima_session_save(session_.get(), append, &saved, err); });
  EXPECT_EQ(optima_session_save_bytes(session_.get()), static_cast<int64_t>(saved.size()));
  EXPECT_EQ(optima_session_save_bytes(nullptr), 0);
  const auto fails = [](void*, const void*, int64_t) -> int32_t { return 1; };
  EXPECT_EQ(optima_session_save(session_.get(), fails, nullptr, nullptr), OPTIMA_E_IO);
  const auto throws = [](void*, const void*, int64_t) -> int32_t { throw 1; };
  EXPECT_EQ(optima_session_save(session_.get(), throws, nullptr, nullptr), OPTIMA_E_IO);

  const std::string path = testing::TempDir() + "saved_session";
  must([&](optima_error** err) {
    return optima_session_save_path(session_.get(), path.c_str(), OPTIMA_NTS, err);
  });
  EXPECT_EQ(read_file(path), saved);
  EXPECT_EQ(optima_session_save_path(session_.get(), "/nowhere/at/all", OPTIMA_NTS, nullptr),
            OPTIMA_E_IO);

  auto io = sized<optima_io>();
  io.length = static_cast<int64_t>(saved.size());
  io.user = &saved;
  io.read = [](void* user, void* into, int64_t offset, int64_t bytes) -> int32_t {
    std::memcpy(into, static_cast<std::string*>(user)->data() + offset, static_cast<size_t>(bytes));
    return 0;
  };
  for (const bool from_path : {false, true}) {
    optima_session* handle = nullptr;
    must([&](optima_error** err) {
      return from_path ? optima_session_restore_path(model_.get(), nullptr, path.c_str(),
                                                     OPTIMA_NTS, &handle, err)
                       : optima_session_restore(model_.get(), nullptr, &io, &handle, err);
    });
    const Session restored(handle);
    EXPECT_EQ(session_tokens(restored), session_tokens(session_));
    auto more = sized<optima_request_desc>();
    more.prompt = "";
    more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
    more.max_tokens = 3;
    EXPECT_EQ(token_ids(generate(restored, more)),
              std::vector<int32_t>(wanted_.begin() + 4, wanted_.begin() + 7));
  }
  std::remove(path.c_str());
  const Model other = open_tiny(engine_, "llama-q8_0.gguf");
  optima_session* handle = nullptr;
  EXPECT_EQ(optima_session_restore(other.get(), nullptr, &io, &handle, nullptr), OPTIMA_E_VERSION);
  EXPECT_EQ(handle, nullptr);
  io.length -= 9;
  EXPECT_EQ(optima_session_restore(model_.get(), nullptr, &io, &handle, nullptr), OPTIMA_E_IO);
  EXPECT_EQ(
      optima_session_restore_path(model_.get(), nullptr, "/nowhere", OPTIMA_NTS, &handle, nullptr),
      OPTIMA_E_IO);
}

TEST_F(SessionTest, DraftsAreCountedAndChangeNothing) {
  auto desc = golden_desc();
  desc.draft_tokens = 6;
  const Result result = generate(session_, desc);
  EXPECT_EQ(token_ids(result), wanted_);
  auto counters = sized<optima_counters>();
  must([&](optima_error** err) { return optima_result_counters(result.get(), &counters, err); });
  EXPECT_GE(counters.draft_tokens, counters.draft_tokens_accepted);
  desc.draft_tokens = 33;
  EXPECT_EQ(optima_generate(session_.get(), &desc, nullptr, nullptr), OPTIMA_E_ARG);
}

TEST_F(SessionTest, MetricsCount) {
  auto metrics = sized<optima_metrics>();
  auto desc = golden_desc();
  desc.max_tokens = 4;
  generate(session_, desc);
  must([&](optima_error** err) { return optima_metrics_query(engine_.get(), &metrics, err); });
  EXPECT_EQ(metrics.output_tokens, 4u);
  EXPECT_EQ(metrics.prompt_tokens, prompt_ids_.size());
  EXPECT_EQ(metrics.requests_finished, 1u);
  EXPECT_EQ(metrics.first_token_count, 1u);
  EXPECT_EQ(metrics.inter_token_count, 3u);
  EXPECT_EQ(metrics.requests_running, 0);
  EXPECT_GT(metrics.kv_pages_held, 0);
  optima_buffer* text = nullptr;
  must([&](optima_error** err) {
    return optima_metrics_render(engine_.get(), OPTIMA_METRICS_VLLM, "e1", OPTIMA_NTS, &text, err);
  });
  const Buffer owned(text);
  EXPECT_NE(std::string(optima_buffer_text(text, nullptr))
                .find("vllm:generation_tokens_total{engine=\"e1\"} 4\n"),
            std::string::npos);
  EXPECT_EQ(optima_metrics_render(engine_.get(), 7, "", 0, &text, nullptr), OPTIMA_E_UNSUPPORTED);
}

}  // namespace
}  // namespace optima_test
