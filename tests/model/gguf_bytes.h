// Hand-made GGUF bytes for tests, and opening them from memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gguf.h"

namespace optima::model::test {

inline std::string golden_path(std::string_view name) {
  return std::string(OPTIMA_SOURCE_DIR "/tests/goldens/gguf/") + std::string(name);
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<int64_t>(bytes.size()));
}

// Value type ids of the format.
enum ValueType : uint32_t {
  kUint8 = 0,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
};

// Appends little-endian values; every method returns *this for chaining.
class GgufBytes {
 public:
  template <typename T>
  GgufBytes& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& str(std::string_view value) {
    put<uint64_t>(value.size());
    bytes_.append(value);
    return *this;
  }
  GgufBytes& header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    bytes_.append("GGUF");
    return put(version).put(tensors).put(keys);
  }
  template <typename T>
  GgufBytes& key(std::string_view name, uint32_t type, T value) {
    return str(name).put(type).put(value);
  }
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                    uint64_t offset) {
    str(name).put(static_cast<uint32_t>(shape.size()));
    for (const uint64_t length : shape) put(length);
    return put(type).put(offset);
  }
  // Pads to the alignment, then appends `bytes` of data.
  GgufBytes& data(size_t bytes, size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    bytes_.append(bytes, '\x2a');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A model opened from bytes that lie in a block of exactly their size, so that a sanitizer sees
// the first byte read past them.
struct MemoryModel {
  explicit MemoryModel(std::string_view content)
      : bytes(new std::byte[content.size()]), gguf(Status()) {
    std::memcpy(bytes.get(), content.data(), content.size());
    gguf = open_gguf(MemorySource{bytes.get(), static_cast<int64_t>(content.size())}, allocator,
                      Progress());
  }
  Allocator allocator{HostAllocator(), 0};
  std::unique_ptr<std::byte[]> bytes;
  Result<std::unique_ptr<ModelFile>> gguf;
};

}  // namespace optima::model::test
