// optima_error: what the host asks about a failure.

#include "abi/guard.h"
#include "abi/handle.h"

namespace optima::abi {

optima_error* make_error(Status status) {
  return new optima_error(std::move(status));
}

namespace {

enum class Number { wanted, available, limit };

int64_t number_of(const optima_error* error, Number which) {
  if (!live(error)) return -1;
  const ErrorNumbers numbers = error->status.numbers();
  switch (which) {
    case Number::wanted:
      return numbers.wanted;
    case Number::available:
      return numbers.available;
    case Number::limit:
      return numbers.limit;
  }
  return -1;
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;

optima_status optima_error_code(const optima_error* error) noexcept {
  return guard(Fallback<optima_status>{OPTIMA_E_INTERNAL}, [&]() -> optima_status {
    if (error == nullptr) return OPTIMA_OK;
    return live(error) ? static_cast<optima_status>(error->status.code()) : OPTIMA_E_ARG;
  });
}

const char* optima_error_message(const optima_error* error) noexcept {
  return guard(Fallback<const char*>{""},
               [&]() -> const char* { return live(error) ? error->status.message().c_str() : ""; });
}

int64_t optima_error_wanted(const optima_error* error) noexcept {
  return guard(Fallback<int64_t>{-1}, [&] { return number_of(error, Number::wanted); });
}

int64_t optima_error_available(const optima_error* error) noexcept {
  return guard(Fallback<int64_t>{-1}, [&] { return number_of(error, Number::available); });
}

int64_t optima_error_limit(const optima_error* error) noexcept {
  return guard(Fallback<int64_t>{-1}, [&] { return number_of(error, Number::limit); });
}

void optima_error_destroy(optima_error* error) noexcept {
  guard([&] {
    if (live(error) && error->magic.exchange(0) == optima_error::kMagic) delete error;
  });
}
