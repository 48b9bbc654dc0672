// Reads the host's structs and writes into them, whatever release of the header the host was
// compiled with: a shorter struct leaves the newer fields at their default, a longer one may only
// hold zeros where this release knows nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/status.h"
#include "base/text.h"
#include "optima/optima.h"
#include "optima/optima_unstable.h"

namespace optima::abi {

// sizeof the struct in the release that introduced it.
template <typename Struct>
inline constexpr uint32_t kSizeMin = 0;
#include "abi/struct_sizes.inc"

// No struct of any release is longer; a bound for what the library reads.
inline constexpr uint32_t kStructSizeMax = 1 << 16;

Status check_size(std::string_view name, uint32_t size, uint32_t size_min);
// Bytes [known, size) must be zero.
Status check_tail(std::string_view name, const void* data, size_t known, size_t size);
// Every extension must be optional: this release knows none.
Status check_extensions(std::string_view name, const optima_ext* next);

// The fields that the host has, unchecked, so that its release hooks can be called whatever becomes
// of the call; those of a newer release, and all when struct_size is no size, are zero.
template <typename Struct>
Struct given_fields(const Struct* in) {
  Struct out;
  std::memset(&out, 0, sizeof out);
  if (in != nullptr && in->struct_size >= kSizeMin<Struct> && in->struct_size <= kStructSizeMax) {
    std::memcpy(&out, in, std::min<size_t>(in->struct_size, sizeof out));
  }
  return out;
}

// A copy of the host's options; NULL gives the defaults.
template <typename Struct>
Result<Struct> read_struct(std::string_view name, const Struct* in) {
  Struct out;
  std::memset(&out, 0, sizeof out);
  if (in == nullptr) return out;
  const uint32_t size = in->struct_size;
  OPTIMA_TRY(check_size(name, size, kSizeMin<Struct>));
  std::memcpy(&out, in, std::min<size_t>(size, sizeof out));
  if (size > sizeof out) OPTIMA_TRY(check_tail(name, in, sizeof out, size));
  uint32_t reserved = out.reserved0;
  if constexpr (requires { out.reserved1; }) reserved |= out.reserved1;
  if constexpr (requires { out.reserved2; }) reserved |= out.reserved2;
  if (reserved != 0) {
    return Status(Code::unsupported, text(name, ": a reserved field is ", reserved, ", must be 0"));
  }
  OPTIMA_TRY(check_extensions(name, out.next));
  return out;
}

// Checked before the work, so that a call does not fail after it.
template <typename Struct>
Status check_out(std::string_view name, const Struct* out) {
  if (out == nullptr) return Status(Code::invalid_argument, text(name, ": NULL"));
  return check_size(name, out->struct_size, kSizeMin<Struct>);
}

// Writes at most `size` bytes; what a newer host knows beyond is set to zero.
template <typename Struct>
void write_struct(Struct* out, size_t size, Struct value) {
  value.struct_size = static_cast<uint32_t>(size);
  std::memcpy(out, &value, std::min(size, sizeof value));
  if (size > sizeof value) {
    std::memset(reinterpret_cast<unsigned char*>(out) + sizeof value, 0, size - sizeof value);
  }
}
template <typename Struct>
void write_struct(Struct* out, const Struct& value) {
  write_struct(out, out->struct_size, value);
}

// A string argument; `bytes` may be OPTIMA_NTS.
Result<std::string_view> read_text(std::string_view name, const char* data, size_t bytes);

// An array argument: NULL only with count 0, and a count that memory could hold.
Status check_array(std::string_view name, const void* data, size_t count, size_t item_bytes);

Status check_flags(std::string_view name, uint32_t flags, uint32_t known);
Status check_constant(std::string_view name, int32_t value, int32_t last);

}  // namespace optima::abi
