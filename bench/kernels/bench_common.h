// What the kernel benches share: memory that is present, and the roofs of this run.
#pragma once

#include <benchmark/benchmark.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cpu_words.h"
#include "kernels/isa.h"

namespace optima::kernels {

// The instruction sets of this machine: rows that need others are left out.
inline IsaMask host_isa() {
  const CpuWords words = cpu_words();
  return detect_isa({words.hwcap, words.hwcap2, words.states});
}

// Pages of our own, present before the clock starts and with ordinary page size.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : bytes_(bytes),
        data_(static_cast<unsigned char*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    // 0x11 everywhere: small scales, and codes that are valid in every type.
    memset(data_, 0x11, bytes_);
  }
  ~Buffer() { munmap(data_, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  unsigned char* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  size_t bytes_;
  unsigned char* data_;
};

// 10^9 a second of `threads` threads together: bytes from DRAM, int8 and fp32 multiply-adds from
// registers. Measured when first asked for, then kept.
struct Roofs {
  double read;
  double int8;
  double f32;
};
enum class Roof { read, int8, f32 };
const Roofs& measured_roofs(int threads);

// What one thread did in an iteration, in 10^9 bytes and multiply-adds.
struct Done {
  double gb;
  double gmac;
};
// Counters GB/s, GMAC/s and the share of one roof in per cent, all threads together.
void count_work(benchmark::State& state, const Done& done, Roof roof);

}  // namespace optima::kernels
