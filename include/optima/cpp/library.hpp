// Where the C++ binding finds the functions of libsitsoptima: in the table of optima_get_api, so
// that a program works with older libraries and is told what they lack. With OPTIMA_LOAD the
// library is opened by its name when first needed.
#pragma once

#include <memory>

#ifdef OPTIMA_LOAD
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#endif

#include "optima/cpp/error.hpp"

namespace optima {
inline namespace OPTIMA_CPP_MODE {
namespace detail {

#ifdef OPTIMA_LOAD
inline std::atomic<const optima_api_v1*>& table() {
  static std::atomic<const optima_api_v1*> found{nullptr};
  return found;
}
// Only behind use_library().
inline const optima_api_v1& api() noexcept {
  return *table().load(std::memory_order_acquire);
}
#else
inline const optima_api_v1& api() noexcept {
  static const optima_api_v1& found = *optima_get_api(OPTIMA_ABI_VERSION);
  return found;
}
#endif

}  // namespace detail

#ifdef OPTIMA_LOAD
/// Opens the library: a path, or a name that the system looks for. Without a call of it, the first
/// use does it with the default. Later calls change nothing: the library stays.
inline Outcome<void> load(const std::string& name = "libsitsoptima.so.1") {
  if (detail::table().load(std::memory_order_acquire) != nullptr) return Outcome<void>();
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    const char* where = name.find('/') == std::string::npos
                            ? " (looked in the program's run path, LD_LIBRARY_PATH and the "
                              "system's library folders)"
                            : " (looked there only)";
    return detail::fail<void>(Error(Status::io, "cannot open the library " + name + where + ": " +
                                                    (reason != nullptr ? reason : "no reason")));
  }
  const optima_api_v1* (*get_api)(std::uint32_t) = nullptr;
  void* symbol = dlsym(handle, "optima_get_api");
  std::memcpy(&get_api, &symbol, sizeof get_api);
  const optima_api_v1* found = symbol == nullptr ? nullptr : get_api(OPTIMA_ABI_VERSION);
  if (found == nullptr) {
    dlclose(handle);
    return detail::fail<void>(
        Error(Status::version, name + " is no libsitsoptima with ABI version 1"));
  }
  detail::table().store(found, std::memory_order_release);
  return Outcome<void>();
}
#endif

namespace detail {

#ifdef OPTIMA_LOAD
inline Outcome<void> use_library() {
  return load();
}
#else
inline Outcome<void> use_library() {
  return Outcome<void>();
}
#endif

// The function of a row of the table; NULL when the library is older than the row.
template <typename Function>
Function find(Function optima_api_v1::*row) noexcept {
  const auto* begin = reinterpret_cast<const char*>(&api());
  const auto* at = reinterpret_cast<const char*>(&(api().*row));
  return at + sizeof(Function) <= begin + api().struct_size ? api().*row : nullptr;
}

inline Error absent(const char* name) {
  return Error(Status::version, std::string(name) + " is not in libsitsoptima " + api().version() +
                                    "; this program was built for " +
                                    std::to_string(OPTIMA_VERSION_MAJOR) + "." +
                                    std::to_string(OPTIMA_VERSION_MINOR));
}

// The error of a failed call; destroys it.
inline Error take(optima_status status, optima_error* error) {
  const auto kind = static_cast<Status>(status);
  if (error == nullptr) return Error(kind, api().status_name(status));
  Error taken(kind, api().error_message(error), api().error_wanted(error),
              api().error_available(error), api().error_limit(error));
  api().error_destroy(error);
  return taken;
}

// Throws what a callback of the call threw, instead of the error that C made of it.
inline void rethrow(Carried& carried, optima_error** error) {
  if (!carried) return;
  api().error_destroy(std::exchange(*error, nullptr));
  carried.rethrow();
}

// Calls call(&error), then make() for the value when it succeeded.
template <typename T, typename Call, typename Make>
Outcome<T> invoke(Call call, Make make) {
  optima_error* error = nullptr;
  const optima_status status = call(&error);
  if (status != OPTIMA_OK) return fail<T>(take(status, error));
  return make();
}

template <typename Call>
Outcome<void> invoke(Call call) {
  return invoke<void>(call, [] { return Outcome<void>(); });
}

// As invoke, for a function that is not in every library: call(function, &error).
template <typename T, typename Function, typename Call, typename Make>
Outcome<T> invoke_newer(Function optima_api_v1::*row, const char* name, Call call, Make make) {
  const Function function = find(row);
  if (function == nullptr) return fail<T>(absent(name));
  return invoke<T>([&](optima_error** error) { return call(function, error); }, make);
}

struct Destroy {
  void operator()(optima_engine* handle) const noexcept { api().engine_destroy(handle); }
  void operator()(optima_model* handle) const noexcept { api().model_destroy(handle); }
  void operator()(optima_session* handle) const noexcept { api().session_destroy(handle); }
  void operator()(optima_request* handle) const noexcept { api().request_destroy(handle); }
  void operator()(optima_result* handle) const noexcept { api().result_destroy(handle); }
  void operator()(optima_cancel* handle) const noexcept { api().cancel_destroy(handle); }
  void operator()(optima_buffer* handle) const noexcept { api().buffer_destroy(handle); }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, Destroy>;

inline std::string text_of(const optima_buffer* buffer) {
  std::int64_t bytes = 0;
  const char* text = api().buffer_text(buffer, &bytes);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(bytes));
}

inline std::vector<std::int32_t> ids_of(const optima_buffer* buffer) {
  std::int64_t count = 0;
  const std::int32_t* ids = api().buffer_ids(buffer, &count);
  return std::vector<std::int32_t>(ids, ids + count);
}

// Calls call(&buffer, &error), then read(buffer) for the value.
template <typename T, typename Call, typename Read>
Outcome<T> read_buffer(Call call, Read read) {
  optima_buffer* buffer = nullptr;
  return invoke<T>([&](optima_error** error) { return call(&buffer, error); },
                   [&] { return read(Owned<optima_buffer>(buffer).get()); });
}

// An out-struct with its size set.
template <typename Struct>
Struct sized() {
  Struct value{};
  value.struct_size = sizeof value;
  return value;
}

// Calls call(&value, &error) for an out-struct of C.
template <typename Struct, typename Call>
Outcome<Struct> query(Call call) {
  auto value = sized<Struct>();
  return invoke<Struct>([&](optima_error** error) { return call(&value, error); },
                        [&] { return value; });
}

}  // namespace detail

/// Such as "CONTEXT_FULL". Like the one below only where the library is in use (see optima::load).
inline const char* name(Status status) {
  return detail::api().status_name(static_cast<optima_status>(status));
}
/// Such as "stop_string".
inline const char* name(Finish finish) {
  return detail::api().finish_name(static_cast<optima_finish>(finish));
}

/// Release of the library, such as "1.1.0".
inline Outcome<std::string> version() {
  return detail::after<std::string>(detail::use_library,
                                    [] { return std::string(detail::api().version()); });
}

/// The bits of namespace features that the library has.
inline Outcome<std::uint64_t> feature_bits() {
  return detail::after<std::uint64_t>(detail::use_library, [] { return detail::api().features(); });
}

}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
