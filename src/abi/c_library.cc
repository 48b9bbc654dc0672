// The library itself: versions, features, names, and the function table for users of dlopen.

#include <array>

#include "abi/guard.h"
#include "optima/optima.h"

namespace {

#define OPTIMA_STRING_INNER(x) #x
#define OPTIMA_STRING(x) OPTIMA_STRING_INNER(x)
constexpr const char* kVersion = OPTIMA_STRING(OPTIMA_VERSION_MAJOR) "." OPTIMA_STRING(
    OPTIMA_VERSION_MINOR) "." OPTIMA_STRING(OPTIMA_VERSION_PATCH);

// Index = -status.
constexpr std::array kStatusNames = {"OK",        "ARG",      "STATE",        "IO",
                                     "FORMAT",    "OOM_HOST", "OOM_DEVICE",   "DEVICE_LOST",
                                     "CANCELLED", "DEADLINE", "CONTEXT_FULL", "BUSY",
                                     "FORKED",    "VERSION",  "INTERNAL",     "UNSUPPORTED"};
static_assert(kStatusNames.size() == 1 - OPTIMA_E_UNSUPPORTED);

// Index = finish.
constexpr std::array kFinishNames = {"none", "stop",      "stop_string", "length", "context",
                                     "host", "cancelled", "deadline",    "error",  "embedded"};
static_assert(kFinishNames.size() == OPTIMA_FINISH_EMBEDDED + 1);

// Index = cache miss.
constexpr std::array kMissNames = {"none", "short", "scored",    "encoder",  "not_begun",
                                   "new",  "other", "reclaimed", "not_kept", "window"};
static_assert(kMissNames.size() == OPTIMA_CACHE_MISS_WINDOW + 1);

constexpr optima_api_v1 kApi = {
    sizeof(optima_api_v1),
    OPTIMA_ABI_VERSION,
#include "abi/api_table.inc"
};

}  // namespace

using namespace optima::abi;

const char* optima_version(void) noexcept {
  return guard(Fallback<const char*>{""}, [] { return kVersion; });
}

uint32_t optima_abi_version(void) noexcept {
  return guard(Fallback<uint32_t>{0}, [] { return uint32_t{OPTIMA_ABI_VERSION}; });
}

uint64_t optima_features(void) noexcept {
  return guard(Fallback<uint64_t>{0}, [] {
    return OPTIMA_FEATURE_GGUF | OPTIMA_FEATURE_CHAT_TEMPLATE | OPTIMA_FEATURE_REFERENCE_PATH |
           OPTIMA_FEATURE_PROBE | OPTIMA_FEATURE_HUGGING_FACE | OPTIMA_FEATURE_GRAMMAR |
           OPTIMA_FEATURE_EMBEDDING;
  });
}

const optima_api_v1* optima_get_api(uint32_t abi) noexcept {
  return guard(Fallback<const optima_api_v1*>{nullptr}, [&]() -> const optima_api_v1* {
    return abi == OPTIMA_ABI_VERSION ? &kApi : nullptr;
  });
}

const char* optima_status_name(optima_status status) noexcept {
  return guard(Fallback<const char*>{"?"}, [&]() -> const char* {
    const int64_t index = -static_cast<int64_t>(status);
    const bool known = index >= 0 && index < static_cast<int64_t>(kStatusNames.size());
    return known ? kStatusNames[static_cast<size_t>(index)] : "?";
  });
}

const char* optima_finish_name(optima_finish finish) noexcept {
  return guard(Fallback<const char*>{"?"}, [&]() -> const char* {
    const bool known = finish >= 0 && finish < static_cast<int64_t>(kFinishNames.size());
    return known ? kFinishNames[static_cast<size_t>(finish)] : "?";
  });
}

const char* optima_cache_miss_name(optima_cache_miss miss) noexcept {
  return guard(Fallback<const char*>{"?"}, [&]() -> const char* {
    const bool known = miss >= 0 && miss < static_cast<int64_t>(kMissNames.size());
    return known ? kMissNames[static_cast<size_t>(miss)] : "?";
  });
}
