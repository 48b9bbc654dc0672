// Types of both halves of kernels/cuda/ce.h: nothing here depends on the compiler.
//
// fp16 and bf16 are forms of storage: kernels widen to fp32, compute, and round once when they
// store. So the project needs none of NVIDIA's headers to execute a kernel on the CPU, and has no
// operator that would round in the middle of a formula. The conversions of the host half are those
// of kernels/half.h; tests/cuda compares them with NVIDIA's where those headers are found.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace optima::ce {

// Blocks of a grid, or the index of one among them.
struct Dim {
  int x = 1;
  int y = 1;
  int z = 1;
};

struct Half {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

// N values that are loaded or stored by one instruction.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};
// Values of type T in the widest access, 16 bytes.
template <typename T>
inline constexpr int kWidest = 16 / static_cast<int>(sizeof(T));

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullMask = 0xffffffffu;

// Most bytes of arguments that a launch takes on every device.
inline constexpr size_t kArgumentBytesMax = 4096;

}  // namespace optima::ce
