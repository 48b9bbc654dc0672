// Variants of the probe's loops, best first.
#include "kernels/probe/probe.h"

namespace optima::kernels {

using SumFn = uint64_t(const void* data, size_t bytes);
using MultiplyFn = uint32_t(int64_t rounds);
using MacsFn = int64_t();

namespace avx512 {
SumFn read_plain;
SumFn read_prefetched;
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace avx512
namespace avxvnni {
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace avxvnni
namespace avx2 {
SumFn read_plain;
SumFn read_prefetched;
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace avx2
namespace neon {
SumFn read_plain;
SumFn read_prefetched;
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace neon
namespace neon_dot {
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace neon_dot
namespace neon_i8mm {
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace neon_i8mm
namespace baseline {
SumFn read_plain;
SumFn read_prefetched;
MultiplyFn multiply_int8;
MacsFn int8_macs_per_round;
}  // namespace baseline

Variants<ReadKernel> read_variants() {
  static constexpr auto kRows = rows_here<ReadKernel>({
      {"read_avx512", kIsaAvx512, {avx512::read_plain, avx512::read_prefetched}},
      {"read_avx2", kIsaAvx2, {avx2::read_plain, avx2::read_prefetched}},
      {"read_neon", kIsaNeon, {neon::read_plain, neon::read_prefetched}},
      {"read_base", kIsaNone, {baseline::read_plain, baseline::read_prefetched}},
  });
  return kRows.variants();
}

Variants<Int8Kernel> int8_roof_variants() {
  static constexpr auto kRows = rows_here<Int8Kernel>({
      {"int8_roof_avx512vnni",
       kIsaAvx512 | kIsaAvx512Vnni,
       {avx512::multiply_int8, avx512::int8_macs_per_round}},
      {"int8_roof_avxvnni",
       kIsaAvx2 | kIsaAvxVnni,
       {avxvnni::multiply_int8, avxvnni::int8_macs_per_round}},
      {"int8_roof_avx2", kIsaAvx2, {avx2::multiply_int8, avx2::int8_macs_per_round}},
      {"int8_roof_neoni8mm",
       kIsaNeon | kIsaNeonI8mm,
       {neon_i8mm::multiply_int8, neon_i8mm::int8_macs_per_round}},
      {"int8_roof_neondot",
       kIsaNeon | kIsaNeonDot,
       {neon_dot::multiply_int8, neon_dot::int8_macs_per_round}},
      {"int8_roof_neon", kIsaNeon, {neon::multiply_int8, neon::int8_macs_per_round}},
      {"int8_roof_base", kIsaNone, {baseline::multiply_int8, baseline::int8_macs_per_round}},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
