// Checks of what the host passes in. Sizes first: nothing beyond struct_size is ever read, and a
// struct_size that no release can have had is an error before anything else is looked at.

#include "abi/structs.h"

#include <cstdint>

namespace optima::abi {

Status check_size(std::string_view name, uint32_t size, uint32_t size_min) {
  // Every release's size is a multiple of 8; another one would cut a field in two.
  constexpr uint32_t kAlignment = 8;
  if (size >= size_min && size <= kStructSizeMax && size % kAlignment == 0) return {};
  return Status(Code::invalid_argument,
                text(name, ": struct_size is ", size, ", must be a multiple of ", kAlignment,
                     " from ", size_min, " to ", kStructSizeMax, " (sizeof the struct)"),
                {.wanted = size_min, .available = size, .limit = kStructSizeMax});
}

Status check_tail(std::string_view name, const void* data, size_t known, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return Status(Code::unsupported, text(name, ": byte ", i, " of ", size,
                                            " is set, this version knows ", known, " bytes"));
    }
  }
  return {};
}

Status check_extensions(std::string_view name, const optima_ext* next) {
  constexpr int kExtensionsMax = 64;  // A longer chain is taken for a loop.
  for (int count = 0; next != nullptr; next = next->next, ++count) {
    if (count == kExtensionsMax) {
      return Status(Code::invalid_argument,
                    text(name, ": more than ", kExtensionsMax, " extensions, or a loop in next"));
    }
    if ((next->type & OPTIMA_EXT_OPTIONAL) == 0) {
      return Status(Code::unsupported,
                    text(name, ": extension of type ", next->type, " is not known"));
    }
  }
  return {};
}

Result<std::string_view> read_text(std::string_view name, const char* data, size_t bytes) {
  if (data == nullptr) {
    if (bytes == 0) return std::string_view();
    return Status(Code::invalid_argument, text(name, ": NULL"));
  }
  if (bytes == OPTIMA_NTS) return std::string_view(data);
  OPTIMA_TRY(check_array(name, data, bytes, 1));
  return std::string_view(data, bytes);
}

Status check_array(std::string_view name, const void* data, size_t count, size_t item_bytes) {
  if (data == nullptr && count != 0) {
    return Status(Code::invalid_argument, text(name, ": NULL with count ", count));
  }
  const size_t count_max = static_cast<size_t>(PTRDIFF_MAX) / item_bytes;
  if (count > count_max) {
    return Status(Code::invalid_argument,
                  text(name, ": count is ", count, ", at most ", count_max));
  }
  return {};
}

Status check_flags(std::string_view name, uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0) return {};
  return Status(Code::unsupported,
                text(name, ": bits ", flags & ~known, " are not known, known are ", known));
}

Status check_constant(std::string_view name, int32_t value, int32_t last) {
  if (value >= 0 && value <= last) return {};
  return Status(Code::unsupported, text(name, " is ", value, ", known are 0..", last));
}

}  // namespace optima::abi
