// Variants of the probe's loops, best first.
#include "kernels/probe/probe.h"

namespace optima::kernels {

using SumFn = uint64_t(const void* data, size_t bytes);
using MultiplyFn = uint32_t(int64_t rounds);
using MacsFn = int64_t();

#if defined(__x86_64__)
namespace avx512 {
SumFn read_plain;
SumFn read_prefetched;
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace avx512
namespace avx2 {
SumFn read_plain;
SumFn read_prefetched;
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace avx2
#endif
namespace baseline {
SumFn read_plain;
SumFn read_prefetched;
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace baseline

Variants<ReadKernel> read_variants() {
  static constexpr Variant<ReadKernel> kRows[] = {
#if defined(__x86_64__)
    {"read_avx512", kIsaAvx512, {avx512::read_plain, avx512::read_prefetched}},
    {"read_avx2", kIsaAvx2, {avx2::read_plain, avx2::read_prefetched}},
#endif
    {"read_base", kIsaNone, {baseline::read_plain, baseline::read_prefetched}},
  };
  return {kRows, sizeof kRows / sizeof kRows[0]};
}

Variants<Int8Kernel> int8_roof_variants() {
  static constexpr Variant<Int8Kernel> kRows[] = {
#if defined(__x86_64__)
    {"int8_roof_avx512vnni",
     kIsaAvx512 | kIsaAvx512Vnni,
     {avx512::multiply_int8, avx512::int8_macs_per_round}},
    {"int8_roof_avx2", kIsaAvx2, {avx2::multiply_int8, avx2::int8_macs_per_round}},
#endif
    {"int8_roof_base", kIsaNone, {baseline::multiply_int8, baseline::int8_macs_per_round}},
  };
  return {kRows, sizeof kRows / sizeof kRows[0]};
}

}  // namespace optima::kernels
