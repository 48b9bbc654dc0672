// optima_result: a copy of what a request produced; it needs no engine and outlives all others.

#include "abi/event.h"
#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/result.h"
#include "abi/structs.h"

namespace optima::abi {

optima_result* make_result(const engine::RequestResult& value) {
  auto result = std::make_unique<optima_result>();
  result->value = value;
  result->token_ids.reserve(value.tokens.size());
  result->logprobs.reserve(value.tokens.size());
  for (const engine::OutputToken& token : value.tokens) {
    result->token_ids.push_back(token.id);
    result->logprobs.push_back(token.logprob);
  }
  return result.release();
}

namespace {

// guard() for a borrowed array of the result and its length.
template <typename Item, typename Get>
const Item* guard_array(const optima_result* result, int64_t* count, Get get) {
  if (count != nullptr) *count = 0;
  return guard(Fallback<const Item*>{nullptr}, [&]() -> const Item* {
    if (!live(result)) return nullptr;
    const auto& items = get(*result);
    if (count != nullptr) *count = static_cast<int64_t>(items.size());
    return items.data();
  });
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Status;

optima_finish optima_result_finish(const optima_result* result) noexcept {
  return guard(Fallback<optima_finish>{OPTIMA_FINISH_NONE}, [&]() -> optima_finish {
    if (!live(result)) return OPTIMA_FINISH_NONE;
    return static_cast<optima_finish>(result->value.finish);
  });
}

int32_t optima_result_stop_index(const optima_result* result) noexcept {
  return guard(Fallback<int32_t>{-1},
               [&]() -> int32_t { return live(result) ? result->value.stop_index : -1; });
}

const char* optima_result_text(const optima_result* result, int64_t* bytes) noexcept {
  return guard_array<char>(
      result, bytes, [](const auto& r) -> auto& { return r.value.text; });
}

const char* optima_result_bytes(const optima_result* result, int64_t* bytes) noexcept {
  return guard_array<char>(
      result, bytes, [](const auto& r) -> auto& { return r.value.bytes; });
}

const int32_t* optima_result_prompt_ids(const optima_result* result, int64_t* count) noexcept {
  return guard_array<int32_t>(
      result, count, [](const auto& r) -> auto& { return r.value.prompt_ids; });
}

const int32_t* optima_result_token_ids(const optima_result* result, int64_t* count) noexcept {
  return guard_array<int32_t>(
      result, count, [](const auto& r) -> auto& { return r.token_ids; });
}

const float* optima_result_logprobs(const optima_result* result, int64_t* count) noexcept {
  return guard_array<float>(
      result, count, [](const auto& r) -> auto& { return r.logprobs; });
}

const optima_token_logprob* optima_result_top_logprobs(const optima_result* result, int64_t index,
                                                       int64_t* count) noexcept {
  if (count != nullptr) *count = 0;
  return guard(Fallback<const optima_token_logprob*>{nullptr},
               [&]() -> const optima_token_logprob* {
                 if (!live(result) || index < 0) return nullptr;
                 const auto& tokens = result->value.tokens;
                 if (index >= static_cast<int64_t>(tokens.size())) return nullptr;
                 const auto& top = tokens[static_cast<size_t>(index)].top;
                 if (count != nullptr) *count = static_cast<int64_t>(top.size());
                 return as_c(top);
               });
}

const float* optima_result_prompt_logprobs(const optima_result* result, int64_t* count) noexcept {
  return guard_array<float>(
      result, count, [](const auto& r) -> auto& { return r.value.prompt_logprobs; });
}

const float* optima_result_embedding(const optima_result* result, int64_t* count) noexcept {
  return guard_array<float>(
      result, count, [](const auto& r) -> auto& { return r.value.embedding; });
}

optima_status optima_result_counters(const optima_result* result, optima_counters* out,
                                     optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_TRY(check(result));
    OPTIMA_TRY(check_out("out", out));
    const optima::engine::Counters& counters = result->value.counters;
    optima_counters c{};
    c.prompt_tokens = counters.prompt_tokens;
    c.cached_tokens = counters.cached_tokens;
    c.output_tokens = counters.output_tokens;
    c.queue_ns = counters.queue_ns;
    c.prefill_ns = counters.prefill_ns;
    c.decode_ns = counters.decode_ns;
    c.first_token_ns = counters.first_token_ns;
    c.weight_bytes_read = counters.weight_bytes_read;
    c.kv_bytes_read = counters.kv_bytes_read;
    c.draft_tokens = counters.draft_tokens;
    c.draft_tokens_accepted = counters.draft_tokens_accepted;
    c.cache_miss = static_cast<optima_cache_miss>(counters.cache_miss);
    c.shifted_tokens = counters.shifted_tokens;
    write_struct(out, c);
    return {};
  });
}

void optima_result_destroy(optima_result* result) noexcept {
  guard([&] {
    if (live(result) && result->magic.exchange(0) == optima_result::kMagic) delete result;
  });
}
