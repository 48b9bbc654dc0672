// Errors as values. A Status is one pointer wide and null when all is well; a failure owns its
// code, its text and the numbers a caller needs to act (wanted, available, limit).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace optima {

// Values are those of the C ABI (optima_status) and are frozen.
enum class Code : int32_t {
  ok = 0,
  invalid_argument = -1,
  invalid_state = -2,
  io = -3,
  format = -4,
  oom_host = -5,
  oom_device = -6,
  device_lost = -7,
  cancelled = -8,
  deadline = -9,
  context_full = -10,
  busy = -11,
  forked = -12,
  version = -13,
  internal = -14,
  unsupported = -15,
};

// The numbers of an error; -1 = does not apply. Units are those the message names.
struct ErrorNumbers {
  int64_t wanted = -1;
  int64_t available = -1;
  int64_t limit = -1;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, ErrorNumbers numbers = {})
      : info_(std::make_unique<Info>(Info{code, std::move(message), numbers})) {}
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other)
      : info_(other.info_ ? std::make_unique<Info>(*other.info_) : nullptr) {}
  Status& operator=(const Status& other) {
    if (this != &other) info_ = other.info_ ? std::make_unique<Info>(*other.info_) : nullptr;
    return *this;
  }

  bool ok() const { return info_ == nullptr; }
  explicit operator bool() const { return ok(); }
  Code code() const { return info_ ? info_->code : Code::ok; }
  const std::string& message() const { return info_ ? info_->message : empty(); }
  ErrorNumbers numbers() const { return info_ ? info_->numbers : ErrorNumbers{}; }

  // The same error with the place named first: "model.gguf: tensor 'x': ...".
  Status in(const std::string& place) && {
    if (info_) info_->message = place + ": " + info_->message;
    return std::move(*this);
  }

 private:
  struct Info {
    Code code;
    std::string message;
    ErrorNumbers numbers;
  };
  // Never destroyed: nothing of the library runs when the host exits or unloads it.
  static const std::string& empty() {
    union Forever {
      Forever() : text() {}
      ~Forever() {}
      std::string text;
    };
    static const Forever forever;
    return forever.text;
  }
  std::unique_ptr<Info> info_;
};

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  Status take_status() { return std::move(status_); }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T take() { return std::move(*value_); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace optima

#define OPTIMA_CONCAT_INNER(a, b) a##b
#define OPTIMA_CONCAT(a, b) OPTIMA_CONCAT_INNER(a, b)

// Returns the Status from the enclosing function when `expression` (a Status) failed.
#define OPTIMA_TRY(expression)                                                      \
  do {                                                                              \
    if (::optima::Status optima_try_status = (expression); !optima_try_status.ok()) \
      return optima_try_status;                                                     \
  } while (false)

// OPTIMA_ASSIGN(auto x, f()): x = the value of the Result, or return its Status.
#define OPTIMA_ASSIGN_INNER(holder, target, expression) \
  auto holder = (expression);                           \
  if (!holder.ok()) return holder.take_status();        \
  target = holder.take()
#define OPTIMA_ASSIGN(target, expression) \
  OPTIMA_ASSIGN_INNER(OPTIMA_CONCAT(optima_result_, __LINE__), target, expression)
