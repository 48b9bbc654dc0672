// Layout of quantised activations, and which weight types use them.

#include "kernels/matmul/matmul.h"

namespace optima::kernels {
namespace {

constexpr size_t kAlignment = 64;
constexpr int64_t kHalfBlock = kActivationBlock / 2;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t padded(int64_t k) {
  return (k + kActivationBlock - 1) / kActivationBlock * kActivationBlock;
}

struct ArrayBytes {
  size_t q, scale, sum_x, sum_x16, pairs, pairs16;
};

ArrayBytes array_bytes(int64_t rows, int64_t k) {
  const auto values = static_cast<size_t>(rows) * static_cast<size_t>(padded(k));
  const size_t blocks = values / kActivationBlock;
  const size_t half_blocks = values / kHalfBlock;
  return {aligned(values),
          aligned(blocks * sizeof(float)),
          aligned(blocks * sizeof(float)),
          aligned(half_blocks * sizeof(float)),
          aligned(blocks * 2 * sizeof(int16_t)),
          aligned(half_blocks * 2 * sizeof(int16_t))};
}

}  // namespace

size_t quantised_rows_bytes(int64_t rows, int64_t k) {
  const ArrayBytes b = array_bytes(rows, k);
  const size_t quantised = b.q + b.scale + b.sum_x + b.sum_x16 + b.pairs + b.pairs16;
  const auto arranged = static_cast<size_t>((rows + kArrangedRowsMax - 1) * padded(k)) *
                        kArrangedBytesMax / kActivationBlock;
  return quantised > arranged ? quantised : arranged;
}

QuantisedRows quantised_rows_at(void* block, int64_t rows, int64_t k) {
  const ArrayBytes b = array_bytes(rows, k);
  auto* p = static_cast<unsigned char*>(block);
  QuantisedRows out;
  out.k_padded = padded(k);
  out.q = reinterpret_cast<int8_t*>(p);
  p += b.q;
  out.scale = reinterpret_cast<float*>(p);
  p += b.scale;
  out.sum_x = reinterpret_cast<float*>(p);
  p += b.sum_x;
  out.sum_x16 = reinterpret_cast<float*>(p);
  p += b.sum_x16;
  out.pairs = reinterpret_cast<int16_t*>(p);
  p += b.pairs;
  out.pairs16 = reinterpret_cast<int16_t*>(p);
  return out;
}

bool uses_quantised_activations(WeightType type) {
  return type != WeightType::f32 && type != WeightType::f16 && type != WeightType::bf16;
}

}  // namespace optima::kernels
