// The vector operations of the matrix kernels on AVX2 with VNNI: vnni.h, and `Wide` vectors of 64
// bytes in two registers for the micro-kernels. The words are those of avx512.h.
#pragma once

#include "kernels/vec/vnni.h"

namespace optima::kernels {
namespace {

template <typename Instruction>
struct AvxVnniVector : VnniDots<Instruction> {
  static constexpr bool kSignedCodes = false;
  static constexpr bool kSquares = false;
  // Of 16 registers 6 hold sums of int32, 6 of fp32, 2 weights and 1 activations.
  static constexpr int kTileColumns = 3;
  static constexpr int kTilePanels = 1;
  static constexpr int kPanelColumns = 4;

  using WideFloats = Avx2::WideFloats;
  struct Wide {
    __m256i low;
    __m256i high;
  };
  static Wide wide_load(const void* p) {
    const auto* both = static_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(both), _mm256_loadu_si256(both + 1)};
  }
  static Wide wide_broadcast(const void* p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return twice(_mm256_set1_epi32(word));
  }
  static Wide wide_words(int16_t value) { return twice(_mm256_set1_epi16(value)); }
  static Wide wide_add_dot(Wide sum, Wide u, Wide a) {
    return {Instruction::add(sum.low, u.low, a.low), Instruction::add(sum.high, u.high, a.high)};
  }
  static Wide wide_fill(int8_t value) { return twice(_mm256_set1_epi8(value)); }
  static Wide wide_and(Wide a, Wide b) {
    return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
  }
  static Wide wide_or(Wide a, Wide b) {
    return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
  }
  template <int N>
  static Wide wide_shift(Wide a) {
    return {Avx2::shift<N>(a.low), Avx2::shift<N>(a.high)};
  }
  static Wide wide_dot_words(Wide a, Wide b) {
    return {_mm256_madd_epi16(a.low, b.low), _mm256_madd_epi16(a.high, b.high)};
  }
  static WideFloats wide_to_float(Wide a) {
    return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)};
  }
  static WideFloats wide_halves(const void* p) {
    const auto* both = static_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(both)), _mm256_cvtph_ps(_mm_loadu_si128(both + 1))};
  }
  static WideFloats wide_from_bytes(const void* p) {
    const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return wide_to_float(
        {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))});
  }
  static WideFloats wide_from_int8(const void* p) {
    const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return wide_to_float(
        {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))});
  }
  static WideFloats wide_mul(WideFloats a, WideFloats b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static WideFloats wide_sub(WideFloats a, WideFloats b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }

 private:
  static Wide twice(__m256i a) { return {a, a}; }
};

}  // namespace
}  // namespace optima::kernels
