// See fingerprint.h.
#include "model/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace optima::model {
namespace {

constexpr int64_t kEndBytes = 4096;

class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }
  void add(const void* bytes, size_t count) { XXH3_64bits_update(&state_, bytes, count); }
  void add(std::string_view text) {
    const uint64_t size = text.size();
    add(&size, sizeof size);
    add(text.data(), text.size());
  }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_{};
};

}  // namespace

uint64_t fingerprint(const ModelFile& file) {
  Hash hash;
  for (const auto& [key, value] : file.metadata().entries()) {
    hash.add(key);
    hash.add(to_string(value, SIZE_MAX));
  }
  for (const Tensor& tensor : file.tensors()) {
    hash.add(tensor.name);
    const auto type = static_cast<int32_t>(tensor.type);
    hash.add(&type, sizeof type);
    hash.add(tensor.shape.data(), sizeof tensor.shape);
    const int64_t ends = std::min(tensor.bytes, kEndBytes);
    hash.add(tensor.data, static_cast<size_t>(ends));
    hash.add(tensor.data + (tensor.bytes - ends), static_cast<size_t>(ends));
  }
  return hash.value();
}

}  // namespace optima::model
