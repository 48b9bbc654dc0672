// Groups (wire types 3 and 4) are deprecated and in no file we read: they are an error.
#include "tokenizer/hf/protobuf_reader.h"

namespace optima::tokenizer::hf {

bool ProtobufReader::next(Field& field) {
  if (!ok_ || bytes_.empty()) return false;
  const uint64_t tag = varint();
  field = Field();
  field.number = static_cast<uint32_t>(tag >> 3);
  switch (tag & 7) {
    case 0:
      field.integer = varint();
      break;
    case 1:
    case 5: {
      const std::string_view fixed = take((tag & 7) == 1 ? 8 : 4);
      for (size_t i = fixed.size(); i-- > 0;) {
        field.integer = field.integer << 8 | static_cast<uint8_t>(fixed[i]);
      }
      break;
    }
    case 2:
      field.bytes = take(varint());
      break;
    default:
      ok_ = false;
  }
  return ok_;
}

uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  return 0;
}

std::string_view ProtobufReader::take(uint64_t count) {
  if (count > bytes_.size()) {
    ok_ = false;
    return {};
  }
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

}  // namespace optima::tokenizer::hf
