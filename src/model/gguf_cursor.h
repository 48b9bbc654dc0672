// Reads little-endian values one after another from bytes of unknown origin. No read goes past
// the end, and no count is believed before the bytes that it promises are known to be there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/status.h"
#include "base/text.h"

namespace optima::model {

class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  Result<T> number(std::string_view what) {
    static_assert(std::endian::native == std::endian::little);
    if (remaining() < sizeof(T)) return truncated(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // A 64-bit byte count and that many bytes.
  Result<std::string_view> string(std::string_view what) {
    OPTIMA_ASSIGN(const uint64_t length, number<uint64_t>("the length of a string"));
    if (length > remaining()) return truncated(what, length);
    const std::string_view value(reinterpret_cast<const char*>(bytes_.data()) + position_,
                                 static_cast<size_t>(length));
    position_ += static_cast<size_t>(length);
    return value;
  }

  // `count` items of at least `item_bytes` each: fails unless so many bytes are left.
  Status expect_items(std::string_view what, uint64_t count, uint64_t item_bytes) const {
    const uint64_t items_max = remaining() / item_bytes;
    if (count <= items_max) return {};
    return Status(Code::format,
                  text(what, " at byte ", position_, ": count ", count, ", but the ", remaining(),
                       " bytes that follow hold at most ", items_max),
                  {clamp(count), clamp(items_max), -1});
  }

 private:
  Status truncated(std::string_view what, uint64_t wanted) const {
    return Status(
        Code::format,
        text("truncated: ", what, " at byte ", position_, " takes ", wanted, " bytes, but only ",
             remaining(), " of the file's ", bytes_.size(), " follow"),
        {clamp(wanted), clamp(remaining()), -1});
  }
  static int64_t clamp(uint64_t value) {
    return value > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(value);
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace optima::model
