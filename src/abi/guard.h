// The one place where exceptions end. Every exported function is `return guard(...)`: what its body
// throws becomes a status, and the text reaches the caller's optima_error.
#pragma once

#include <cstring>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "abi/error.h"
#include "base/status.h"
#include "optima/optima.h"

namespace optima::abi {

// What an exception said, in memory that is there even when no other is.
struct Caught {
  Code code = Code::ok;
  char text[256] = {};
  void set(Code new_code, const char* new_text) noexcept {
    code = new_code;
    std::strncpy(text, new_text, sizeof text - 1);
  }
};

// Runs body() and catches everything.
template <typename Body>
Caught contain(Body&& body) noexcept {
  Caught caught;
  try {
    body();
  } catch (const std::bad_alloc&) {
    caught.set(Code::oom_host, "out of host memory");
  } catch (const std::exception& error) {
    caught.set(Code::internal, error.what());
  } catch (...) {
    caught.set(Code::internal, "an exception of unknown type");
  }
  return caught;
}

// For calls that can fail: body() returns a Status.
template <typename Body>
optima_status guard(optima_error** err, Body&& body) noexcept {
  if (err != nullptr) *err = nullptr;
  optima_status code = OPTIMA_OK;
  const Caught caught = contain([&] {
    Status status = body();
    code = static_cast<optima_status>(status.code());
    if (!status.ok() && err != nullptr) *err = make_error(std::move(status));
  });
  if (caught.code == Code::ok) return code;
  if (code != OPTIMA_OK) return code;  // The body failed by itself; making the error object threw.
  if (err != nullptr) {
    contain([&] { *err = make_error(Status(caught.code, caught.text)); });
  }
  return static_cast<optima_status>(caught.code);
}

// For calls that return a value: body() returns it, `fallback` stands in when it throws.
template <typename Value>
struct Fallback {
  Value value;
};
template <typename Value, typename Body>
Value guard(Fallback<Value> fallback, Body&& body) noexcept {
  Value value = fallback.value;
  contain([&] { value = body(); });
  return value;
}

// For calls that return nothing.
template <typename Body>
void guard(Body&& body) noexcept {
  contain(body);
}

}  // namespace optima::abi
