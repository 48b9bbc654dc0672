// Every function of the table with nothing but NULLs and zeros, and with things that are not
// handles: an error, never a crash.
#include <tuple>
#include <type_traits>

#include "fixture.h"

namespace optima_test {
namespace {

const auto kFunctions = std::make_tuple(
#include "abi/api_table.inc"
    nullptr);

int calls = 0;

template <typename Returned, typename... Args>
void call_with_zeros(Returned (*function)(Args...)) {
  ++calls;
  constexpr size_t kArgs = sizeof...(Args);
  constexpr bool kCanFail = kArgs > 0 && (std::is_same_v<Args, optima_error**> || ...) &&
                            std::is_same_v<Returned, optima_status>;
  if constexpr (std::is_void_v<Returned>) {
    function(Args{}...);
  } else {
    const Returned returned = function(Args{}...);
    if constexpr (kCanFail) {
      EXPECT_EQ(returned, OPTIMA_E_ARG) << "function " << calls - 1 << " of the table";
    }
  }
}
template <typename Returned, typename... Args>
void call_with_zeros(Returned (*function)(Args...) noexcept) {
  call_with_zeros(static_cast<Returned (*)(Args...)>(function));
}
void call_with_zeros(std::nullptr_t) {}

TEST(NullTest, EveryFunctionTakesZeros) {
  std::apply([](auto... functions) { (call_with_zeros(functions), ...); }, kFunctions);
  EXPECT_EQ(calls + 1u, std::tuple_size_v<decltype(kFunctions)>);
}

TEST(NullTest, UnstableFunctionsTakeZeros) {
  call_with_zeros(optima_kv_audit);
  call_with_zeros(optima_kv_events_poll);
}

TEST(NullTest, TableHasEveryFunction) {
  const optima_api_v1* api = optima_get_api(1);
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(api->struct_size, sizeof *api);
  EXPECT_EQ(api->abi, 1u);
  EXPECT_EQ(reinterpret_cast<void*>(api->version), reinterpret_cast<void*>(optima_version));
  EXPECT_EQ(reinterpret_cast<void*>(api->result_destroy),
            reinterpret_cast<void*>(optima_result_destroy));
  EXPECT_EQ(optima_get_api(0), nullptr);
  EXPECT_EQ(optima_get_api(2), nullptr);
}

TEST(NullTest, WrongKindsOfHandlesAreErrors) {
  const Engine engine = make_engine();
  auto* as_session = reinterpret_cast<optima_session*>(engine.get());
  const auto desc = ask("x", 1);
  const Outcome outcome = outcome_of(
      [&](optima_error** err) { return optima_generate(as_session, &desc, nullptr, err); });
  EXPECT_EQ(outcome.status, OPTIMA_E_ARG);
  EXPECT_NE(outcome.message().find("session"), std::string::npos) << outcome.message();
  optima_session_destroy(as_session);  // Not one: ignored.
  EXPECT_EQ(optima_engine_threads(engine.get()), 1);
  alignas(16) unsigned char zeros[256] = {};
  optima_engine_destroy(reinterpret_cast<optima_engine*>(zeros));
  EXPECT_EQ(optima_request_cancel(reinterpret_cast<optima_request*>(zeros)), OPTIMA_E_ARG);
}

TEST(NullTest, NamesAndVersions) {
  EXPECT_STREQ(optima_version(), "1.1.0");
  EXPECT_EQ(optima_abi_version(), 1u);
  EXPECT_EQ(optima_features() & OPTIMA_FEATURE_GGUF, OPTIMA_FEATURE_GGUF);
  EXPECT_STREQ(optima_status_name(OPTIMA_OK), "OK");
  EXPECT_STREQ(optima_status_name(OPTIMA_E_CONTEXT_FULL), "CONTEXT_FULL");
  EXPECT_STREQ(optima_status_name(OPTIMA_E_UNSUPPORTED), "UNSUPPORTED");
  EXPECT_STREQ(optima_status_name(1), "?");
  EXPECT_STREQ(optima_status_name(INT32_MIN), "?");
  EXPECT_STREQ(optima_finish_name(OPTIMA_FINISH_STOP_STRING), "stop_string");
  EXPECT_STREQ(optima_finish_name(99), "?");
  EXPECT_STREQ(optima_cache_miss_name(OPTIMA_CACHE_MISS_RECLAIMED), "reclaimed");
  EXPECT_STREQ(optima_cache_miss_name(-1), "?");
  EXPECT_EQ(optima_error_code(nullptr), OPTIMA_OK);
  EXPECT_STREQ(optima_error_message(nullptr), "");
}

TEST(NullTest, BadEngineOptions) {
  struct Row {
    const char* what;
    void (*spoil)(optima_engine_options&);
    optima_status status;
  };
  const Row rows[] = {
      {"threads", [](auto& o) { o.threads = -1; }, OPTIMA_E_ARG},
      {"many threads", [](auto& o) { o.threads = 1 << 30; }, OPTIMA_E_ARG},
      {"priority", [](auto& o) { o.priority = 20; }, OPTIMA_E_ARG},
      {"low priority", [](auto& o) { o.priority = -1; }, OPTIMA_E_ARG},
      {"drive", [](auto& o) { o.drive = 2; }, OPTIMA_E_UNSUPPORTED},
      {"log level", [](auto& o) { o.log_level = 5; }, OPTIMA_E_UNSUPPORTED},
      {"limit", [](auto& o) { o.memory_limit_bytes = -1; }, OPTIMA_E_ARG},
      {"affinity", [](auto& o) { o.affinity_words = 1; }, OPTIMA_E_ARG},
      {"alloc alone",
       [](auto& o) { o.alloc = [](void*, size_t, size_t) -> void* { return nullptr; }; },
       OPTIMA_E_ARG},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    auto options = sized<optima_engine_options>();
    int released = 0;
    options.log_user = &released;
    options.log_release = count_release;
    row.spoil(options);
    optima_engine* engine = nullptr;
    const Outcome outcome = outcome_of(
        [&](optima_error** err) { return optima_engine_create(&options, &engine, err); });
    EXPECT_EQ(outcome.status, row.status) << outcome.message();
    EXPECT_EQ(optima_error_code(outcome.error.get()), row.status);
    EXPECT_EQ(engine, nullptr);
    EXPECT_EQ(released, 1);
  }
}

}  // namespace
}  // namespace optima_test
