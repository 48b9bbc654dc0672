// Errors of the C++ binding: one class with the numbers, a subclass for each status to catch by,
// and Expected for programs that do not throw.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "optima/cpp/types.hpp"

namespace optima {
inline namespace OPTIMA_CPP_MODE {

/// Why a call failed. Thrown as the ErrorOf its status, or the error of an Expected.
class Error : public std::exception {
 public:
  Error(Status status, std::string message, std::int64_t wanted = -1, std::int64_t available = -1,
        std::int64_t limit = -1)
      : status_(status),
        message_(std::move(message)),
        wanted_(wanted),
        available_(available),
        limit_(limit) {}
  Status status() const noexcept { return status_; }
  /// English text with the numbers.
  const char* what() const noexcept override { return message_.c_str(); }
  /// What was wanted (bytes, tokens, ..., as the text says). -1 = does not apply.
  std::int64_t wanted() const noexcept { return wanted_; }
  /// What there was. -1 = does not apply.
  std::int64_t available() const noexcept { return available_; }
  /// The limit that was met. -1 = does not apply.
  std::int64_t limit() const noexcept { return limit_; }

 private:
  Status status_;
  std::string message_;
  std::int64_t wanted_;
  std::int64_t available_;
  std::int64_t limit_;
};

template <Status kStatus>
class ErrorOf final : public Error {
 public:
  explicit ErrorOf(Error error) : Error(std::move(error)) {}
};
using ArgumentError = ErrorOf<Status::arg>;
using StateError = ErrorOf<Status::state>;
using IoError = ErrorOf<Status::io>;
using FormatError = ErrorOf<Status::format>;
using HostMemoryError = ErrorOf<Status::oom_host>;
using DeviceMemoryError = ErrorOf<Status::oom_device>;
using DeviceLostError = ErrorOf<Status::device_lost>;
using CancelledError = ErrorOf<Status::cancelled>;
using DeadlineError = ErrorOf<Status::deadline>;
using ContextFullError = ErrorOf<Status::context_full>;
using BusyError = ErrorOf<Status::busy>;
using ForkedError = ErrorOf<Status::forked>;
using VersionError = ErrorOf<Status::version>;
using InternalError = ErrorOf<Status::internal>;
using UnsupportedError = ErrorOf<Status::unsupported>;

/// A value or the error that prevented it.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  /// Only when there is a value.
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  /// Only when there is no value.
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(Error error) : state_(std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  /// Only when the call failed.
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<std::monostate, Error> state_;
};

/// What a call that can fail returns: T, or Expected<T> with OPTIMA_NO_EXCEPTIONS.
#ifdef OPTIMA_NO_EXCEPTIONS
template <typename T>
using Outcome = Expected<T>;
#else
template <typename T>
using Outcome = T;
#endif

namespace detail {

#ifdef OPTIMA_NO_EXCEPTIONS
template <typename T>
Outcome<T> fail(Error error) {
  return error;
}

// What `use` makes of the value, or the error.
template <typename T, typename From, typename Use>
Outcome<T> then(Expected<From> from, Use use) {
  if (!from) return from.error();
  return use(*std::move(from));
}

// What `use` makes after `first` succeeded, or its error.
template <typename T, typename First, typename Use>
Outcome<T> after(First first, Use use) {
  const Expected<void> done = first();
  if (!done) return done.error();
  return use();
}
#else
template <Status... kStatus>
[[noreturn]] void raise(Error error) {
  ((error.status() == kStatus ? throw ErrorOf<kStatus>(std::move(error)) : void()), ...);
  throw error;  // a status of a newer library
}

template <typename T>
[[noreturn]] Outcome<T> fail(Error error) {
  raise<Status::arg, Status::state, Status::io, Status::format, Status::oom_host,
        Status::oom_device, Status::device_lost, Status::cancelled, Status::deadline,
        Status::context_full, Status::busy, Status::forked, Status::version, Status::internal,
        Status::unsupported>(std::move(error));
}

template <typename T, typename From, typename Use>
Outcome<T> then(From from, Use use) {
  return use(std::move(from));
}

template <typename T, typename First, typename Use>
Outcome<T> after(First first, Use use) {
  first();
  return use();
}
#endif

// What a callback threw: kept while C is between the callback and its caller.
class Carried {
 public:
  // The result of `call`, or `otherwise` when it threw.
  template <typename Result, typename Call>
  Result run(Result otherwise, Call call) noexcept {
#ifdef __cpp_exceptions
    try {
      return call();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
      return otherwise;
    }
#else
    static_cast<void>(otherwise);
    return call();
#endif
  }
  explicit operator bool() const {
    return thrown_ != nullptr;
  }
  // Throws what was thrown, in the throwing mode and in the other.
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  std::exception_ptr thrown_;
};

}  // namespace detail
}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
