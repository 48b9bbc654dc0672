// Reads the wire format of protocol buffers, field by field, never past the end.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace optima::tokenizer::hf {

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) : bytes_(bytes) {}

  struct Field {
    uint32_t number = 0;
    uint64_t integer = 0;    // wire types 0, 1 and 5
    std::string_view bytes;  // wire type 2
    float real() const { return std::bit_cast<float>(static_cast<uint32_t>(integer)); }
  };
  // False at the end and after an error.
  bool next(Field& field);
  bool ok() const { return ok_; }

 private:
  uint64_t varint();
  std::string_view take(uint64_t count);

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace optima::tokenizer::hf
