// The host half of kernels/cuda/ce.h: each word as a few lines over kernels/cuda_host/words.h. What
// touches the kernel's memory stands here and not there, so that it is compiled with the kernel.
#pragma once

#include <math.h>
#include <string.h>

#include <atomic>
#include <tuple>
#include <type_traits>

#include "kernels/cuda_host/machine.h"
#include "kernels/cuda_host/words.h"
#include "kernels/half.h"

#define CE_GLOBAL(threads) void
#define CE_DEVICE inline
#define CE_UNROLL
// The address of `ce_key_…` names the array, once for each instantiation of a template.
#define CE_SHARED(name, Type, dimensions)               \
  static const char ce_key_##name = 0;                  \
  using ce_type_##name = Type dimensions;               \
  ce_type_##name& name = *static_cast<ce_type_##name*>( \
      ::optima::cuda_host::shared_array(&ce_key_##name, sizeof(ce_type_##name)))
#define CE_DYN_SMEM(name) unsigned char* const name = ::optima::cuda_host::dynamic_shared()

namespace optima::ce {

using cuda_host::Deposit;
using cuda_host::Site;
using cuda_host::Status;
using cuda_host::WarpWord;
using Stream = cuda_host::Machine*;

// What a launcher has no kernel for.
inline Status refused(const char* why) {
  return {why};
}

struct Launch {
  const char* name;
  Dim grid;
  int threads;
  size_t shared_bytes;
  Stream stream;
};

template <typename... Parameters, typename... Arguments>
Status launch(void (*kernel)(Parameters...), const Launch& config, Arguments... arguments) {
  static_assert((sizeof(Parameters) + ... + 0) <= kArgumentBytesMax);
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  if (config.stream == nullptr) return {std::string(config.name) + ": launched without a stream"};
  const std::tuple<Parameters...> values{arguments...};
  const auto call = [&] { std::apply(kernel, values); };
  const cuda_host::Body body = {[](const void* to) { (*static_cast<decltype(&call)>(to))(); },
                                &call};
  return config.stream->launch({config.name, config.grid, config.threads, config.shared_bytes},
                               body);
}

inline int thread_x() {
  return cuda_host::current->thread;
}
inline int block_threads() {
  return cuda_host::current->threads;
}
inline int block_x() {
  return cuda_host::current->block.x;
}
inline int block_y() {
  return cuda_host::current->block.y;
}
inline int block_z() {
  return cuda_host::current->block.z;
}
inline int grid_x() {
  return cuda_host::current->grid.x;
}
inline int grid_y() {
  return cuda_host::current->grid.y;
}
inline int grid_z() {
  return cuda_host::current->grid.z;
}
inline int lane() {
  return thread_x() % kWarp;
}
inline int warp() {
  return thread_x() / kWarp;
}

inline void sync(Site site = Site::here()) {
  cuda_host::barrier(site);
}
inline void syncwarp(unsigned mask, Site site = Site::here()) {
  cuda_host::meet({WarpWord::syncwarp, mask, site}, {});
}
inline void pause() {
  cuda_host::pause();
}

namespace detail {

template <typename T>
Deposit deposit_of(const T& value) {
  static_assert(sizeof(T) <= sizeof(Deposit) && std::is_trivially_copyable_v<T>);
  Deposit deposit = {};
  __builtin_memcpy(&deposit, &value, sizeof value);
  return deposit;
}

// The value that lane `from` left.
template <typename T>
T taken(const Deposit* deposits, const cuda_host::WarpCall& call, int from) {
  if ((call.mask >> from & 1u) == 0) cuda_host::fail(call.site, "reads a lane outside the mask");
  T value;
  __builtin_memcpy(&value, &deposits[from], sizeof value);
  return value;
}

template <typename T>
T shuffled(const cuda_host::WarpCall& call, const T& value, int from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what the instruction exists for");
  return taken<T>(cuda_host::meet(call, deposit_of(value)), call, from);
}

inline unsigned votes(const cuda_host::WarpCall& call, bool vote) {
  const Deposit* deposits = cuda_host::meet(call, deposit_of(static_cast<int>(vote)));
  unsigned ballot = 0;
  for (int i = 0; i < kWarp; ++i) {
    if ((call.mask >> i & 1u) != 0 && deposits[i].word[0] != 0) ballot |= 1u << i;
  }
  return ballot;
}

}  // namespace detail

template <typename T>
T shfl(unsigned mask, T value, int from, Site site = Site::here()) {
  return detail::shuffled({WarpWord::shfl, mask, site}, value, from % kWarp);
}
template <typename T>
T shfl_up(unsigned mask, T value, int distance, Site site = Site::here()) {
  const int from = lane() - distance;
  return detail::shuffled({WarpWord::shfl_up, mask, site}, value, from < 0 ? lane() : from);
}
template <typename T>
T shfl_down(unsigned mask, T value, int distance, Site site = Site::here()) {
  const int from = lane() + distance;
  return detail::shuffled({WarpWord::shfl_down, mask, site}, value, from >= kWarp ? lane() : from);
}
template <typename T>
T shfl_xor(unsigned mask, T value, int bits, Site site = Site::here()) {
  return detail::shuffled({WarpWord::shfl_xor, mask, site}, value, lane() ^ bits);
}
inline unsigned ballot(unsigned mask, bool vote, Site site = Site::here()) {
  return detail::votes({WarpWord::ballot, mask, site}, vote);
}
inline bool any(unsigned mask, bool vote, Site site = Site::here()) {
  return detail::votes({WarpWord::any, mask, site}, vote) != 0;
}
inline bool all(unsigned mask, bool vote, Site site = Site::here()) {
  return detail::votes({WarpWord::all, mask, site}, vote) == mask;
}

// Loads and stores of a whole Pack, whose address is a multiple of its size.
template <typename T, int N>
Pack<T, N> load(const T* from, Site site = Site::here()) {
  cuda_host::check_aligned(from, sizeof(Pack<T, N>), site);
  Pack<T, N> pack;
  memcpy(&pack, from, sizeof pack);
  return pack;
}
template <typename T, int N>
void store(T* to, const Pack<T, N>& pack, Site site = Site::here()) {
  cuda_host::check_aligned(to, sizeof pack, site);
  memcpy(to, &pack, sizeof pack);
}
// The same for what is read once and never written while the kernel runs.
template <typename T, int N>
Pack<T, N> load_once(const T* from, Site site = Site::here()) {
  return load<T, N>(from, site);
}

// Sixteen bytes to shared memory, `source_bytes` of them from `from` and zeros behind. They are
// NaN until this thread has waited for their group, and another thread sees them after a barrier.
inline void copy_async16(void* to, const void* from, int source_bytes = 16,
                         Site site = Site::here()) {
  cuda_host::defer_copy({to, from, source_bytes}, site);
  memset(to, 0xff, 16);
}
inline void copy_commit() {
  cuda_host::commit_copies();
}
template <int kGroupsLeft>
void copy_wait() {
  cuda_host::DueCopy copy;
  while (cuda_host::next_due(kGroupsLeft, copy)) {
    memcpy(copy.to, copy.from, static_cast<size_t>(copy.source_bytes));
    memset(static_cast<char*>(copy.to) + copy.source_bytes, 0,
           16 - static_cast<size_t>(copy.source_bytes));
  }
}

namespace detail {

// Row addresses of kCount 8 x 8 matrices of 16 bits come from lanes 0 … 8 kCount - 1.
template <int kCount>
const Deposit* matrix_rows(const void* row, Site site) {
  if (lane() < 8 * kCount) cuda_host::check_aligned(row, 16, site);
  return cuda_host::meet({WarpWord::ldmatrix, kFullMask, site}, deposit_of(row));
}
inline unsigned element_of(const Deposit& row, int index) {
  const char* address;
  __builtin_memcpy(&address, &row, sizeof address);
  uint16_t element;
  memcpy(&element, address + index * 2, sizeof element);
  return element;
}

}  // namespace detail

// Register i gets two elements of matrix i: row lane / 4, columns 2 (lane % 4) and the next.
template <int kCount>
void ldmatrix(unsigned (&registers)[kCount], const void* row, Site site = Site::here()) {
  const Deposit* rows = detail::matrix_rows<kCount>(row, site);
  for (int i = 0; i < kCount; ++i) {
    const Deposit& mine = rows[8 * i + lane() / 4];
    const int column = lane() % 4 * 2;
    registers[i] = detail::element_of(mine, column) | detail::element_of(mine, column + 1) << 16;
  }
}
// The same of the transposed matrices.
template <int kCount>
void ldmatrix_transposed(unsigned (&registers)[kCount], const void* row, Site site = Site::here()) {
  const Deposit* rows = detail::matrix_rows<kCount>(row, site);
  for (int i = 0; i < kCount; ++i) {
    const Deposit* pair = rows + 8 * i + lane() % 4 * 2;
    registers[i] = detail::element_of(pair[0], lane() / 4) | detail::element_of(pair[1], lane() / 4)
                                                                 << 16;
  }
}

namespace detail {

template <int kA, int kB>
const Deposit* fragments(const unsigned (&a)[kA], const unsigned (&b)[kB], Site site) {
  Deposit mine = {};
  __builtin_memcpy(&mine.word[0], a, sizeof a);
  __builtin_memcpy(&mine.word[2], b, sizeof b);
  return cuda_host::meet({WarpWord::mma, kFullMask, site}, mine);
}

}  // namespace detail

// c += A B of a 16 x k by k x 8 product, spread over the warp (kernels/cuda_host/tensor.cc).
template <int kA, int kB>
void mma_f16(float (&c)[4], const unsigned (&a)[kA], const unsigned (&b)[kB],
             Site site = Site::here()) {
  static_assert(kA == 2 * kB && (kB == 1 || kB == 2));
  cuda_host::mma_floats({8 * kB, cuda_host::MmaShape::Type::f16}, detail::fragments(a, b, site),
                        lane(), c);
}
template <int kA, int kB>
void mma_bf16(float (&c)[4], const unsigned (&a)[kA], const unsigned (&b)[kB],
              Site site = Site::here()) {
  static_assert(kA == 2 * kB && (kB == 1 || kB == 2));
  cuda_host::mma_floats({8 * kB, cuda_host::MmaShape::Type::bf16}, detail::fragments(a, b, site),
                        lane(), c);
}
inline void mma_s8(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                   Site site = Site::here()) {
  cuda_host::mma_bytes(detail::fragments(a, b, site), lane(), c);
}

// c + Σ of the products of four signed bytes.
inline int dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int8_t>(static_cast<unsigned>(a) >> (8 * i)) *
         static_cast<int8_t>(static_cast<unsigned>(b) >> (8 * i));
  }
  return c;
}

template <typename T>
T atomic_add(T* to, T value) {
  return std::atomic_ref<T>(*to).fetch_add(value, std::memory_order_relaxed);
}
inline int atomic_max(int* to, int value) {
  std::atomic_ref<int> target(*to);
  int old = target.load(std::memory_order_relaxed);
  while (old < value && !target.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  return old;
}
template <typename T>
T atomic_exchange(T* to, T value) {
  return std::atomic_ref<T>(*to).exchange(value, std::memory_order_relaxed);
}
// What was there; `value` is there now if that was `expected`.
template <typename T>
T atomic_compare_exchange(T* to, T expected, T value) {
  std::atomic_ref<T>(*to).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <typename T>
T atomic_load(const T* from) {
  return std::atomic_ref<T>(*const_cast<T*>(from)).load(std::memory_order_relaxed);
}

inline float to_float(float value) {
  return value;
}
inline float to_float(Half value) {
  return kernels::half_to_float(value.bits);
}
inline float to_float(Bf16 value) {
  return kernels::bf16_to_float(value.bits);
}
// To the nearest, ties to even; beyond the largest finite value an infinity.
template <typename T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, Half>) {
    return {kernels::float_to_half(value)};
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return {kernels::float_to_bf16(value)};
  } else {
    static_assert(std::is_same_v<T, float>);
    return value;
  }
}

inline float rsqrt(float value) {
  return 1.0f / sqrtf(value);
}

}  // namespace optima::ce
