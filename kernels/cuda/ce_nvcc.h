// The nvcc half of kernels/cuda/ce.h. All PTX of the project stands in this file.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/cuda/ce_types.h"

#define CE_GLOBAL(threads) __global__ __launch_bounds__(threads) void
#define CE_DEVICE __device__ __forceinline__
// Before a loop whose count is a constant: arrays that it indexes stay in registers.
#define CE_UNROLL _Pragma("unroll")
#define CE_SHARED(name, Type, dimensions) __shared__ Type name dimensions
#define CE_DYN_SMEM(name) extern __shared__ __align__(16) unsigned char name[]

namespace optima::ce {

struct Status {
  cudaError_t error = cudaSuccess;
  bool ok() const { return error == cudaSuccess; }
};
using Stream = cudaStream_t;

// What a launcher has no kernel for.
inline Status refused(const char* /*why*/) {
  return {cudaErrorNotSupported};
}

struct Launch {
  const char* name;
  Dim grid;
  int threads;
  size_t shared_bytes;
  Stream stream;
};

// What a block may have of shared memory without asking for more.
inline constexpr size_t kSharedBytesUsual = 48 * 1024;

template <typename... Parameters, typename... Arguments>
Status launch(void (*kernel)(Parameters...), const Launch& config, Arguments... arguments) {
  static_assert((sizeof(Parameters) + ... + 0) <= kArgumentBytesMax);
  if (config.shared_bytes > kSharedBytesUsual) {
    const cudaError_t refused = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(config.shared_bytes));
    if (refused != cudaSuccess) return {refused};
  }
  cudaLaunchConfig_t native = {};
  native.gridDim = dim3(static_cast<unsigned>(config.grid.x), static_cast<unsigned>(config.grid.y),
                        static_cast<unsigned>(config.grid.z));
  native.blockDim = dim3(static_cast<unsigned>(config.threads));
  native.dynamicSmemBytes = config.shared_bytes;
  native.stream = config.stream;
  return {cudaLaunchKernelEx(&native, kernel, Parameters(arguments)...)};
}

CE_DEVICE int thread_x() {
  return static_cast<int>(threadIdx.x);
}
CE_DEVICE int block_threads() {
  return static_cast<int>(blockDim.x);
}
CE_DEVICE int block_x() {
  return static_cast<int>(blockIdx.x);
}
CE_DEVICE int block_y() {
  return static_cast<int>(blockIdx.y);
}
CE_DEVICE int block_z() {
  return static_cast<int>(blockIdx.z);
}
CE_DEVICE int grid_x() {
  return static_cast<int>(gridDim.x);
}
CE_DEVICE int grid_y() {
  return static_cast<int>(gridDim.y);
}
CE_DEVICE int grid_z() {
  return static_cast<int>(gridDim.z);
}
CE_DEVICE int lane() {
  return thread_x() % kWarp;
}
CE_DEVICE int warp() {
  return thread_x() / kWarp;
}

CE_DEVICE void sync() {
  __syncthreads();
}
CE_DEVICE void syncwarp(unsigned mask) {
  __syncwarp(mask);
}
CE_DEVICE void pause() {
  __nanosleep(32);
}

template <typename T>
CE_DEVICE T shfl(unsigned mask, T value, int from) {
  return __shfl_sync(mask, value, from);
}
template <typename T>
CE_DEVICE T shfl_up(unsigned mask, T value, int distance) {
  return __shfl_up_sync(mask, value, static_cast<unsigned>(distance));
}
template <typename T>
CE_DEVICE T shfl_down(unsigned mask, T value, int distance) {
  return __shfl_down_sync(mask, value, static_cast<unsigned>(distance));
}
template <typename T>
CE_DEVICE T shfl_xor(unsigned mask, T value, int bits) {
  return __shfl_xor_sync(mask, value, bits);
}
CE_DEVICE unsigned ballot(unsigned mask, bool vote) {
  return __ballot_sync(mask, vote);
}
CE_DEVICE bool any(unsigned mask, bool vote) {
  return __any_sync(mask, vote) != 0;
}
CE_DEVICE bool all(unsigned mask, bool vote) {
  return __all_sync(mask, vote) != 0;
}

namespace detail {

// The type whose load and store is one instruction of kBytes bytes.
template <int kBytes>
struct Word;
template <>
struct Word<16> {
  using Type = uint4;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<4> {
  using Type = unsigned;
};
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<1> {
  using Type = unsigned char;
};

CE_DEVICE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace detail

template <typename T, int N>
CE_DEVICE Pack<T, N> load(const T* from) {
  using Word = typename detail::Word<sizeof(Pack<T, N>)>::Type;
  Pack<T, N> pack;
  *reinterpret_cast<Word*>(&pack) = *reinterpret_cast<const Word*>(from);
  return pack;
}
template <typename T, int N>
CE_DEVICE void store(T* to, const Pack<T, N>& pack) {
  using Word = typename detail::Word<sizeof(Pack<T, N>)>::Type;
  *reinterpret_cast<Word*>(to) = *reinterpret_cast<const Word*>(&pack);
}
template <typename T, int N>
CE_DEVICE Pack<T, N> load_once(const T* from) {
  using Word = typename detail::Word<sizeof(Pack<T, N>)>::Type;
  Pack<T, N> pack;
  *reinterpret_cast<Word*>(&pack) = __ldcs(reinterpret_cast<const Word*>(from));
  return pack;
}

// Compute capability 7.5 has no such copies: there they happen at once.
CE_DEVICE void copy_async16(void* to, const void* from, int source_bytes = 16) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(detail::shared_address(to)),
               "l"(from), "r"(source_bytes)
               : "memory");
#else
  if (source_bytes == 16) {
    *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
  } else {
    for (int i = 0; i < 16; ++i) {
      static_cast<char*>(to)[i] = i < source_bytes ? static_cast<const char*>(from)[i] : 0;
    }
  }
#endif
}
CE_DEVICE void copy_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kGroupsLeft>
CE_DEVICE void copy_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroupsLeft) : "memory");
#endif
}

template <int kCount>
CE_DEVICE void ldmatrix(unsigned (&r)[kCount], const void* row) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4);
  const unsigned address = detail::shared_address(row);
  if constexpr (kCount == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r[0])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  }
}
template <int kCount>
CE_DEVICE void ldmatrix_transposed(unsigned (&r)[kCount], const void* row) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4);
  const unsigned address = detail::shared_address(row);
  if constexpr (kCount == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r[0])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  }
}

// Products that an older compute capability lacks in one piece are made of smaller ones there, or
// trap: which kernels a device gets is decided by its launcher.
CE_DEVICE void mma_f16(float (&c)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
CE_DEVICE void mma_f16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const unsigned low_a[2] = {a[0], a[1]};
  const unsigned high_a[2] = {a[2], a[3]};
  const unsigned low_b[1] = {b[0]};
  const unsigned high_b[1] = {b[1]};
  mma_f16(c, low_a, low_b);
  mma_f16(c, high_a, high_b);
#endif
}
CE_DEVICE void mma_bf16(float (&c)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#else
  (void)c, (void)a, (void)b;
  __trap();
#endif
}
CE_DEVICE void mma_bf16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  (void)c, (void)a, (void)b;
  __trap();
#endif
}
CE_DEVICE void mma_s8(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  (void)c, (void)a, (void)b;
  __trap();
#endif
}

CE_DEVICE int dp4a(int a, int b, int c) {
  return __dp4a(a, b, c);
}

template <typename T>
CE_DEVICE T atomic_add(T* to, T value) {
  return atomicAdd(to, value);
}
CE_DEVICE int atomic_max(int* to, int value) {
  return atomicMax(to, value);
}
template <typename T>
CE_DEVICE T atomic_exchange(T* to, T value) {
  return atomicExch(to, value);
}
template <typename T>
CE_DEVICE T atomic_compare_exchange(T* to, T expected, T value) {
  return atomicCAS(to, expected, value);
}
template <typename T>
CE_DEVICE T atomic_load(const T* from) {
  return *static_cast<const volatile T*>(from);
}

CE_DEVICE float to_float(float value) {
  return value;
}
CE_DEVICE float to_float(Half value) {
  return __half2float(__ushort_as_half(value.bits));
}
CE_DEVICE float to_float(Bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
namespace detail {
template <typename T>
struct FromFloat;
template <>
struct FromFloat<float> {
  static CE_DEVICE float convert(float value) { return value; }
};
template <>
struct FromFloat<Half> {
  static CE_DEVICE Half convert(float value) { return {__half_as_ushort(__float2half_rn(value))}; }
};
template <>
struct FromFloat<Bf16> {
  static CE_DEVICE Bf16 convert(float value) {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
  }
};
}  // namespace detail
template <typename T>
CE_DEVICE T from_float(float value) {
  return detail::FromFloat<T>::convert(value);
}

CE_DEVICE float rsqrt(float value) {
  return rsqrtf(value);
}

}  // namespace optima::ce
