// The loops of any CPU: 64-bit loads, and scalar multiply-adds that the compiler may vectorise.

#include "kernels/probe/probe.h"

namespace optima::kernels::baseline {
namespace {

constexpr size_t kStepWords = 64;  // 512 bytes
constexpr size_t kAheadBytes = 2048;

template <bool kPrefetch>
uint64_t read(const void* data, size_t bytes) {
  const uint64_t* words = static_cast<const uint64_t*>(data);
  uint64_t sum[4] = {};
  for (size_t at = 0; at < bytes / sizeof(uint64_t); at += kStepWords) {
    for (size_t line = 0; line < kStepWords; line += 8) {
      if constexpr (kPrefetch) {
        __builtin_prefetch(reinterpret_cast<const char*>(words + at + line) + kAheadBytes);
      }
      for (size_t i = 0; i < 8; ++i) sum[i % 4] += words[at + line + i];
    }
  }
  return sum[0] + sum[1] + sum[2] + sum[3];
}

constexpr int64_t kMacs = 256;

uint32_t multiply(int64_t rounds) {
  int8_t a[kMacs];
  int8_t b[kMacs];
  for (int64_t i = 0; i < kMacs; ++i) {
    a[i] = static_cast<int8_t>(i);
    b[i] = static_cast<int8_t>(3 * i + 1);
  }
  int32_t sum = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    __asm__ volatile("" : : "r"(a), "r"(b) : "memory");  // The products may not be hoisted.
    for (int64_t i = 0; i < kMacs; ++i) sum += a[i] * b[i];
    sum &= 0xffff;
  }
  return static_cast<uint32_t>(sum);
}

}  // namespace

uint64_t read_plain(const void* data, size_t bytes) {
  return read<false>(data, bytes);
}

uint64_t read_prefetched(const void* data, size_t bytes) {
  return read<true>(data, bytes);
}

uint32_t multiply_int8(int64_t rounds) {
  return multiply(rounds);
}

int64_t int8_macs_per_round() {
  return kMacs;
}

}  // namespace optima::kernels::baseline
