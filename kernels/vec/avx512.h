// The vector operations of the matrix kernels on AVX-512 F/BW/DQ/VL + VNNI: those of vnni.h, some
// of them better, and `Wide` vectors of 64 bytes for the micro-kernel. sim512.h has the same names.
// Instruction is VNNI's, over 32 and over 64 bytes, or its simulation.
#pragma once

#include "kernels/vec/vnni.h"

namespace optima::kernels {
namespace {

template <typename Instruction>
struct Avx512Vector : VnniDots<Instruction> {
  using Bytes = __m256i;
  // What the micro-kernels (matmul/tile_dot.inl.h, matmul/panel_dot.inl.h) make of the registers.
  static constexpr bool kSignedCodes = false;  // 8-bit codes are unsigned, offset by 128
  static constexpr bool kSquares = false;      // there are no products of two rows by two
  static constexpr int kTileColumns = 6;
  static constexpr int kTilePanels = 2;
  static constexpr int kPanelColumns = 8;
  static constexpr int kFloatColumns = 12;  // of matmul/words.inl.h: 24 sums
  static constexpr int kFloatPanels = 2;

  static Bytes expand_bits(uint32_t bits, int8_t value) {
    return _mm256_maskz_set1_epi8(static_cast<__mmask32>(bits), value);
  }
  static void expand_bit_pair(const void* p, const void* q, int8_t value, Bytes& low, Bytes& high) {
    uint32_t first;
    uint32_t second;
    memcpy(&first, p, sizeof first);
    memcpy(&second, q, sizeof second);
    low = expand_bits((first & 0xffffu) | second << 16, value);
    high = expand_bits(first >> 16 | (second & 0xffff0000u), value);
  }

  // Sixteen lanes of 32 bits.
  using Wide = __m512i;
  using WideFloats = __m512;
  static Wide wide_load(const void* p) { return _mm512_loadu_si512(p); }
  static void wide_store(void* p, Wide a) { _mm512_storeu_si512(p, a); }
  // Four bytes into every lane.
  static Wide wide_broadcast(const void* p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
  }
  static Wide wide_words(int16_t value) { return _mm512_set1_epi16(value); }
  // sum + u * a in groups of four, u unsigned, a signed: no saturation.
  static Wide wide_add_dot(Wide sum, Wide u, Wide a) { return Instruction::add(sum, u, a); }
  // The same with four bytes of `a`, read where they lie, in every lane.
  static Wide wide_add_dot_quad(Wide sum, Wide u, const void* a) {
    return Instruction::add_quad(sum, u, a);
  }
  static Wide wide_add_bytes(Wide a, Wide b) { return _mm512_add_epi8(a, b); }
  static Wide wide_fill(int8_t value) { return _mm512_set1_epi8(value); }
  static Wide wide_and(Wide a, Wide b) { return _mm512_and_si512(a, b); }
  static Wide wide_or(Wide a, Wide b) { return _mm512_or_si512(a, b); }
  // As shift().
  template <int N>
  static Wide wide_shift(Wide a) {
    if constexpr (N > 0) return _mm512_srli_epi16(a, N);
    if constexpr (N < 0) return _mm512_slli_epi16(a, -N);
    return a;
  }
  // Sums of neighbouring int16 products.
  static Wide wide_dot_words(Wide a, Wide b) { return _mm512_madd_epi16(a, b); }
  // With a full mask: the plain intrinsic of GCC 12 warns of its own undefined operand.
  static WideFloats wide_to_float(Wide a) { return _mm512_maskz_cvtepi32_ps(0xffff, a); }
  // The same bits.
  static WideFloats wide_as_floats(Wide a) { return _mm512_castsi512_ps(a); }
  // To the nearest.
  static Wide wide_to_int(WideFloats a) { return _mm512_maskz_cvtps_epi32(0xffff, a); }
  // The low 16 bits of each lane, twice.
  static Wide wide_words_twice(Wide a) {
    return _mm512_or_si512(_mm512_and_si512(a, _mm512_set1_epi32(0xffff)),
                           _mm512_maskz_slli_epi32(0xffff, a, 16));
  }
  // The low halves of products of words, plus c.
  static Wide wide_mul_add_words(Wide a, Wide b, Wide c) {
    return _mm512_add_epi16(_mm512_mullo_epi16(a, b), c);
  }
  static WideFloats wide_zero() { return _mm512_setzero_ps(); }
  static WideFloats wide_load_floats(const float* p) { return _mm512_loadu_ps(p); }
  static WideFloats wide_halves(const void* p) {
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  // Sixteen unsigned bytes.
  static WideFloats wide_from_bytes(const void* p) {
    return wide_to_float(
        _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(static_cast<const __m128i*>(p))));
  }
  // Sixteen int8.
  static WideFloats wide_from_int8(const void* p) {
    return wide_to_float(
        _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(static_cast<const __m128i*>(p))));
  }
  // Of eight numbers (the first of sixteen, or the last), each twice.
  template <int Half>
  static WideFloats wide_twice(const float* p) {
    const __m512i lanes =
        _mm512_add_epi32(_mm512_set1_epi32(8 * Half),
                         _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
    return _mm512_maskz_permutexvar_ps(0xffff, lanes, _mm512_loadu_ps(p));
  }
  // Unsigned bytes 2 * Pair and 2 * Pair + 1 of eight quads (the first of sixteen, or the last).
  template <int Half, int Pair>
  static WideFloats wide_code_pairs(const uint8_t* quads) {
    const __m512i twos =
        _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29);
    const __m512i bytes = _mm512_add_epi32(twos, _mm512_set1_epi32(32 * Half + 2 * Pair));
    return wide_to_float(
        _mm512_maskz_permutexvar_epi8(0x1111111111111111, bytes, _mm512_loadu_si512(quads)));
  }
  static WideFloats wide_set(float a) { return _mm512_set1_ps(a); }
  static WideFloats wide_mul(WideFloats a, WideFloats b) { return _mm512_mul_ps(a, b); }
  static WideFloats wide_sub(WideFloats a, WideFloats b) { return _mm512_sub_ps(a, b); }
  static WideFloats wide_add(WideFloats a, WideFloats b) { return _mm512_add_ps(a, b); }
  static WideFloats wide_div(WideFloats a, WideFloats b) { return _mm512_div_ps(a, b); }
  // b where one of them is not a number.
  static WideFloats wide_max(WideFloats a, WideFloats b) {
    return _mm512_maskz_max_ps(0xffff, a, b);
  }
  static WideFloats wide_abs(WideFloats a) { return _mm512_abs_ps(a); }
  static WideFloats wide_fma(WideFloats a, WideFloats b, WideFloats c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  // The first `count` lanes, 0 <= count <= 16; the others are neither read nor written.
  static WideFloats wide_add_first(WideFloats a, const float* p, int count) {
    return _mm512_add_ps(a, _mm512_maskz_loadu_ps(first(count), p));
  }
  static void wide_store_floats(float* p, WideFloats a) { _mm512_storeu_ps(p, a); }
  static void wide_store_first(float* p, WideFloats a, int count) {
    _mm512_mask_storeu_ps(p, first(count), a);
  }

 private:
  static __mmask16 first(int count) { return static_cast<__mmask16>((1u << count) - 1); }
};

}  // namespace
}  // namespace optima::kernels
