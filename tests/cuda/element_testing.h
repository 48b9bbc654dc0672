// Arrays of the types that kernels store, and what their rounding allows.
#pragma once

#include <math.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <vector>

#include "tests/cuda/shim_testing.h"

namespace optima::kernels::cuda {

// Memory of a GPU begins at multiples of 256 bytes.
template <typename T>
struct DeviceAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{256};
  DeviceAllocator() = default;
  template <typename U>
  DeviceAllocator(const DeviceAllocator<U>& /*other*/) {}
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, size_t /*count*/) { ::operator delete(memory, kAlignment); }
  bool operator==(const DeviceAllocator& /*other*/) const { return true; }
};
template <typename T>
using Vector = std::vector<T, DeviceAllocator<T>>;

template <typename T>
std::vector<float> widened(const Vector<T>& values) {
  std::vector<float> wide;
  for (const T value : values) wide.push_back(ce::to_float(value));
  return wide;
}

template <typename T, typename Values>
Vector<T> narrowed(const Values& values) {
  Vector<T> narrow;
  for (const float value : values) narrow.push_back(ce::from_float<T>(value));
  return narrow;
}

// Half a unit in the last place of T at `value`, at most: what storing it as T may add. The bound
// holds for the smallest numbers too.
template <typename T>
float half_unit(float value) {
  if (std::is_same_v<T, float>) return 0;  // rounded as it was computed
  const bool half = std::is_same_v<T, ce::Half>;
  return fabsf(value) * (half ? 0x1p-11f : 0x1p-8f) + (half ? 0x1p-25f : 0x1p-134f);
}

// The first `width` values of each row, bit for bit.
template <typename T>
void expect_same_rows(const Vector<T>& got, const Vector<T>& want, int width, int stride) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (static_cast<int>(i) % stride >= width) continue;
    ASSERT_EQ(ce::to_float(got[i]), ce::to_float(want[i])) << "value " << i;
  }
}

}  // namespace optima::kernels::cuda
