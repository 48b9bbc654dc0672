// Declarations shared by the variants of this folder and their arrays (variants.cc).
#pragma once

#include "kernels/matmul/matmul.h"

namespace optima::kernels {

namespace baseline {
void quantise_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                   const QuantisedRows& out);
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
}  // namespace baseline

namespace avx2 {
void quantise_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                   const QuantisedRows& out);
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
size_t matmul_scratch_bytes(int64_t m, int64_t k);
size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k);
void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);
}  // namespace avx2

namespace avxvnni {
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
size_t matmul_scratch_bytes(int64_t m, int64_t k);
size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k);
void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);
}  // namespace avxvnni

namespace avx512 {
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
size_t matmul_scratch_bytes(int64_t m, int64_t k);
size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k);
void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);
void arrange_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end, void* arranged);
}  // namespace avx512

namespace avx512bf16 {
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
}  // namespace avx512bf16

namespace amx {
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
size_t matmul_scratch_bytes(int64_t m, int64_t k);
void arrange_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end, void* arranged);
}  // namespace amx

namespace neon {
void quantise_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                   const QuantisedRows& out);
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
size_t matmul_scratch_bytes(int64_t m, int64_t k);
size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k);
void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);
}  // namespace neon

namespace neon_dot {
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
size_t matmul_scratch_bytes(int64_t m, int64_t k);
size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k);
void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);
}  // namespace neon_dot

namespace neon_i8mm {
void matmul(const MatmulArgs& args, int64_t n_begin, int64_t n_end);
size_t matmul_scratch_bytes(int64_t m, int64_t k);
size_t matmul_panels_bytes(WeightType type, int64_t n, int64_t k);
void matmul_pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels);
}  // namespace neon_i8mm

}  // namespace optima::kernels
