// The variants of this folder, best first.

#include "kernels/matmul/rows.h"

namespace optima::kernels {
namespace {

constexpr auto kQuantiseRows = rows_here<QuantiseRowsFn>({
    {"quantise_rows_avx2", kIsaAvx2, avx2::quantise_rows},
    {"quantise_rows_neon", kIsaNeon, neon::quantise_rows},
    {"quantise_rows_base", kIsaNone, baseline::quantise_rows},
});

// Fewer activation rows do not make up for weights unpacked to floats: 32 rows take the same time
// either way.
constexpr int64_t kAmxArrangeFrom = 64;
// With fewer, unpacking to whole bytes takes what is won (32 rows: x0.9).
constexpr int64_t kVnniArrangeFrom = 48;

// Measured on Emerald Rapids: four streams for short panels too, asked for further ahead.
constexpr PanelReading kAlwaysAside = {0, 2048, 768};
// On Zen 4: one stream is faster than four, however long panels are.
constexpr PanelReading kNeverAside = {INT64_MAX, 1024, 1024};

constexpr auto kMatmul = rows_here<MatmulKernel>({
    {"matmul_amx",
     kIsaAvx2 | kIsaAvx512 | kIsaAvx512Vnni | kIsaAvx512Bf16 | kIsaAmx,
     {amx::matmul, amx::matmul_scratch_bytes, 32, avx512::matmul_panels_bytes, avx512::matmul_pack,
      amx::arrange_rows, kAmxArrangeFrom, kAlwaysAside}},
    {"matmul_avx512bf16",
     kIsaAvx2 | kIsaAvx512 | kIsaAvx512Vnni | kIsaAvx512Bf16 | kIsaFastBf16,
     {avx512bf16::matmul, avx512::matmul_scratch_bytes, 32, avx512::matmul_panels_bytes,
      avx512::matmul_pack, avx512::arrange_rows, kVnniArrangeFrom, kNeverAside}},
    {"matmul_avx512vnni",
     kIsaAvx2 | kIsaAvx512 | kIsaAvx512Vnni,
     {avx512::matmul, avx512::matmul_scratch_bytes, 32, avx512::matmul_panels_bytes,
      avx512::matmul_pack, avx512::arrange_rows, kVnniArrangeFrom, kAlwaysAside}},
    {"matmul_avxvnni",
     kIsaAvx2 | kIsaAvxVnni,
     {avxvnni::matmul, avxvnni::matmul_scratch_bytes, 16, avxvnni::matmul_panels_bytes,
      avxvnni::matmul_pack}},
    {"matmul_avx2",
     kIsaAvx2,
     {avx2::matmul, avx2::matmul_scratch_bytes, 16, avx2::matmul_panels_bytes, avx2::matmul_pack}},
    {"matmul_neoni8mm",
     kIsaNeon | kIsaNeonDot | kIsaNeonI8mm,
     {neon_i8mm::matmul, neon_i8mm::matmul_scratch_bytes, 16, neon_i8mm::matmul_panels_bytes,
      neon_i8mm::matmul_pack}},
    {"matmul_neondot",
     kIsaNeon | kIsaNeonDot,
     {neon_dot::matmul, neon_dot::matmul_scratch_bytes, 16, neon_dot::matmul_panels_bytes,
      neon_dot::matmul_pack}},
    {"matmul_neon",
     kIsaNeon,
     {neon::matmul, neon::matmul_scratch_bytes, 16, neon::matmul_panels_bytes, neon::matmul_pack}},
    {"matmul_base", kIsaNone, {baseline::matmul, nullptr, 1, nullptr, nullptr}},
});

}  // namespace

Variants<QuantiseRowsFn> quantise_rows_variants() {
  return kQuantiseRows.variants();
}
Variants<MatmulKernel> matmul_variants() {
  return kMatmul.variants();
}

}  // namespace optima::kernels
