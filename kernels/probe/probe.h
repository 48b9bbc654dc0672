// Loops that do one thing as fast as the instruction set can: read memory, or multiply int8. They
// compute nothing useful; the probe times them to know the machine's roofs.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

// Sum (mod 2^64) of the 64-bit words of `data`: aligned to 64 bytes, `bytes` a multiple of 512.
using ReadFn = uint64_t (*)(const void* data, size_t bytes);
struct ReadKernel {
  ReadFn plain;
  ReadFn prefetched;  // with software prefetch ahead; may touch lines beyond the end
};
Variants<ReadKernel> read_variants();

// `rounds` rounds of int8 multiply-adds on registers. Returns a value that depends on all of them.
struct Int8Kernel {
  uint32_t (*run)(int64_t rounds);
  int64_t (*macs_per_round)();
};
Variants<Int8Kernel> int8_roof_variants();

}  // namespace optima::kernels
