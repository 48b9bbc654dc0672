// The vector operations of the matrix kernels on AVX2 + FMA + F16C: 32 bytes, 16 int16, 8 floats.
//
// sim512.h has the same names in plain loops. Everything lives in an anonymous namespace, since
// the header is compiled under flags that other objects do not have.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace optima::kernels {
namespace {

struct Avx2 {
  using Bytes = __m256i;
  using Floats = __m256;

  // Bytes.
  static Bytes load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static void store(void* p, Bytes a) { _mm256_storeu_si256(static_cast<__m256i*>(p), a); }
  static Bytes fill(int8_t value) { return _mm256_set1_epi8(value); }
  // 16 bytes into both halves.
  static Bytes load_twice(const void* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  // The low nibbles of 16 bytes, then the high nibbles.
  static Bytes load_nibbles(const void* p) {
    const __m128i low = _mm_loadu_si128(static_cast<const __m128i*>(p));
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_srli_epi16(low, 4), 1);
    return _mm256_and_si256(both, fill(15));
  }
  // The low nibbles of 16 bytes at p and 16 at q, and their high nibbles.
  static void load_nibble_pair(const void* p, const void* q, Bytes& low, Bytes& high) {
    const __m256i both = load_pair(p, q);
    low = _mm256_and_si256(both, fill(15));
    high = _mm256_and_si256(_mm256_srli_epi16(both, 4), fill(15));
  }
  // 16 bytes at p, then 16 at q.
  static Bytes load_pair(const void* p, const void* q) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p))),
        _mm_loadu_si128(static_cast<const __m128i*>(q)), 1);
  }
  static Bytes bit_and(Bytes a, Bytes b) { return _mm256_and_si256(a, b); }
  static Bytes bit_or(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
  static Bytes bit_xor(Bytes a, Bytes b) { return _mm256_xor_si256(a, b); }
  // Shifts the 16-bit lanes right by N, left where N is negative.
  template <int N>
  static Bytes shift(Bytes a) {
    if constexpr (N > 0) return _mm256_srli_epi16(a, N);
    if constexpr (N < 0) return _mm256_slli_epi16(a, -N);
    return a;
  }
  // table[index] of each half; index < 16.
  static Bytes lookup(Bytes table, Bytes index) { return _mm256_shuffle_epi8(table, index); }
  // `value` in byte i where bit i of `bits` is set, otherwise 0.
  static Bytes expand_bits(uint32_t bits, int8_t value) {
    const __m256i spread = _mm256_shuffle_epi8(
        _mm256_set1_epi32(static_cast<int>(bits)),
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    return expand(spread, value);
  }
  // Bits 0..15 of the words at p and q in the halves of `low`, bits 16..31 in those of `high`.
  static void expand_bit_pair(const void* p, const void* q, int8_t value, Bytes& low, Bytes& high) {
    const __m256i words = _mm256_castps_si256(
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_broadcast_ss(static_cast<const float*>(p))),
                             _mm_broadcast_ss(static_cast<const float*>(q)), 1));
    low = expand(_mm256_shuffle_epi8(
                     words, _mm256_setr_epi64x(0, 0x0101010101010101, 0, 0x0101010101010101)),
                 value);
    high = expand(
        _mm256_shuffle_epi8(words, _mm256_setr_epi64x(0x0202020202020202, 0x0303030303030303,
                                                      0x0202020202020202, 0x0303030303030303)),
        value);
  }
  // out[j] = 32-bit lane j of the eight rows.
  static void transpose(const Bytes row[8], Bytes out[8]) {
    Bytes pair[8];
    Bytes quad[8];
    for (int i = 0; i < 8; i += 2) {
      pair[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
      pair[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      quad[i] = _mm256_unpacklo_epi64(pair[i], pair[i + 2]);
      quad[i + 1] = _mm256_unpackhi_epi64(pair[i], pair[i + 2]);
      quad[i + 2] = _mm256_unpacklo_epi64(pair[i + 1], pair[i + 3]);
      quad[i + 3] = _mm256_unpackhi_epi64(pair[i + 1], pair[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
      out[i] = _mm256_permute2x128_si256(quad[i], quad[i + 4], 0x20);
      out[i + 4] = _mm256_permute2x128_si256(quad[i], quad[i + 4], 0x31);
    }
  }

  // Integer dot products in groups of four: eight int32, as floats.
  // u * a, u unsigned <= 63, |a| <= 127.
  static Floats dot(Bytes u, Bytes a) {
    return to_float(_mm256_madd_epi16(_mm256_maddubs_epi16(u, a), _mm256_set1_epi16(1)));
  }
  // The sum of two such products.
  static Floats dot_pair(Bytes u0, Bytes a0, Bytes u1, Bytes a1) {
    const __m256i sum =
        _mm256_add_epi16(_mm256_maddubs_epi16(u0, a0), _mm256_maddubs_epi16(u1, a1));
    return to_float(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)));
  }
  static Floats dot_signed_pair(Bytes w0, Bytes a0, Bytes w1, Bytes a1) {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i s0 = _mm256_maddubs_epi16(_mm256_abs_epi8(w0), _mm256_sign_epi8(a0, w0));
    const __m256i s1 = _mm256_maddubs_epi16(_mm256_abs_epi8(w1), _mm256_sign_epi8(a1, w1));
    return to_float(_mm256_add_epi32(_mm256_madd_epi16(s0, ones), _mm256_madd_epi16(s1, ones)));
  }
  // Element I of the lower four in the lower lanes, element 4 + I in the upper ones.
  template <int I>
  static Floats spread(Floats a) {
    return _mm256_permute_ps(a, I * 0x55);
  }
  // The same, the products scaled by int16.
  static Floats dot_scaled(Bytes u, Bytes a, Bytes scale) {
    return to_float(_mm256_madd_epi16(_mm256_maddubs_epi16(u, a), scale));
  }
  // w * a, both signed; the sign of w moves to a, since one operand must be unsigned.
  static Floats dot_signed(Bytes w, Bytes a) {
    const __m256i sum = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
    return to_float(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)));
  }
  // Sums of neighbouring int16 products.
  static Floats dot_shorts(Bytes a, Bytes b) { return to_float(_mm256_madd_epi16(a, b)); }
  // int16 lanes [16 * (I % 4), ...): word 2 (I % 4) eight times, then word 2 (I % 4) + 1, of a
  // vector that has the same eight words in both halves.
  template <int I>
  static Bytes spread_words(Bytes words) {
    constexpr int kLow = 0x0100 + 0x0404 * (I % 4);
    constexpr int kHigh = kLow + 0x0202;
    const __m256i index =
        _mm256_setr_epi32(kLow * 0x10001, kLow * 0x10001, kLow * 0x10001, kLow * 0x10001,
                          kHigh * 0x10001, kHigh * 0x10001, kHigh * 0x10001, kHigh * 0x10001);
    return _mm256_shuffle_epi8(words, index);
  }

  // Floats.
  static Floats to_float(Bytes ints) { return _mm256_cvtepi32_ps(ints); }
  static Bytes float_bits(Floats a) { return _mm256_castps_si256(a); }
  static Floats zero() { return _mm256_setzero_ps(); }
  static Floats set(float a) { return _mm256_set1_ps(a); }
  static Floats load_floats(const float* p) { return _mm256_loadu_ps(p); }
  // The first N floats, zero above; reads nothing else.
  template <int N>
  static Floats load_floats(const float* p) {
    if constexpr (N == 8) return _mm256_loadu_ps(p);
    if constexpr (N == 4) return _mm256_zextps128_ps256(_mm_loadu_ps(p));
    if constexpr (N == 2) {
      const __m128i two = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
      return _mm256_zextps128_ps256(_mm_castsi128_ps(two));
    }
    return _mm256_zextps128_ps256(_mm_load_ss(p));
  }
  static void store_floats(float* p, Floats a) { _mm256_storeu_ps(p, a); }
  static Floats load_broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static float sum(Floats a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // Eight unsigned bytes.
  static Floats from_bytes(uint64_t bytes) {
    const __m128i low = _mm_cvtsi64_si128(static_cast<int64_t>(bytes));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low));
  }
  // Eight int8, as int16 in both halves.
  static Bytes words_twice(uint64_t bytes) {
    return _mm256_broadcastsi128_si256(
        _mm_cvtepi8_epi16(_mm_cvtsi64_si128(static_cast<int64_t>(bytes))));
  }
  // Sixteen int8 as int16.
  static Bytes words(uint64_t low, uint64_t high) {
    return _mm256_cvtepi8_epi16(
        _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low)));
  }
  static float half(const void* p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return _cvtsh_ss(bits);
  }
  static Floats halves(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  static Floats bfloats(const void* p) {
    const __m128i bits = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  // N <= 8 halves, `stride` bytes apart, zero above.
  template <int N>
  static Floats gather_halves(const uint8_t* p, int stride) {
    __m128i h = _mm_cvtsi32_si128(word(p));
    if constexpr (N > 1) h = _mm_insert_epi16(h, word(p + stride), 1);
    if constexpr (N > 2) h = _mm_insert_epi16(h, word(p + 2 * stride), 2);
    if constexpr (N > 3) h = _mm_insert_epi16(h, word(p + 3 * stride), 3);
    if constexpr (N > 4) h = _mm_insert_epi16(h, word(p + 4 * stride), 4);
    if constexpr (N > 5) h = _mm_insert_epi16(h, word(p + 5 * stride), 5);
    if constexpr (N > 6) h = _mm_insert_epi16(h, word(p + 6 * stride), 6);
    if constexpr (N > 7) h = _mm_insert_epi16(h, word(p + 7 * stride), 7);
    return _mm256_cvtph_ps(h);
  }

  // The same of two neighbouring halves each.
  template <int N>
  static void gather_half_pairs(const uint8_t* p, int stride, Floats& first, Floats& second) {
    __m128i low = _mm_cvtsi32_si128(dword(p));
    __m128i high = _mm_setzero_si128();
    if constexpr (N > 1) low = _mm_insert_epi32(low, dword(p + stride), 1);
    if constexpr (N > 2) low = _mm_insert_epi32(low, dword(p + 2 * stride), 2);
    if constexpr (N > 3) low = _mm_insert_epi32(low, dword(p + 3 * stride), 3);
    if constexpr (N > 4) high = _mm_cvtsi32_si128(dword(p + 4 * stride));
    if constexpr (N > 5) high = _mm_insert_epi32(high, dword(p + 5 * stride), 1);
    if constexpr (N > 6) high = _mm_insert_epi32(high, dword(p + 6 * stride), 2);
    if constexpr (N > 7) high = _mm_insert_epi32(high, dword(p + 7 * stride), 3);
    const __m128i mask = _mm_set1_epi32(0xffff);
    first = _mm256_cvtph_ps(_mm_packus_epi32(_mm_and_si128(low, mask), _mm_and_si128(high, mask)));
    second = _mm256_cvtph_ps(_mm_packus_epi32(_mm_srli_epi32(low, 16), _mm_srli_epi32(high, 16)));
  }
  // 2^(e - 128) of N bytes e, `stride` apart, zero above; the subnormal ones (e < 2) are zero.
  template <int N>
  static Floats gather_exponents(const uint8_t* p, int stride) {
    uint64_t bytes = 0;
    for (int i = 0; i < N; ++i) bytes |= static_cast<uint64_t>(p[i * stride]) << (8 * i);
    const __m128i e =
        _mm_subs_epu8(_mm_cvtsi64_si128(static_cast<int64_t>(bytes)), _mm_set1_epi8(1));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(e), 23));
  }

  // Sixteen floats; what matmul/words.inl.h makes of the registers: of 16, 12 hold sums, 2 weights
  // and 1 an activation.
  static constexpr int kFloatColumns = 6;
  static constexpr int kFloatPanels = 1;
  struct WideFloats {
    __m256 low;
    __m256 high;
  };
  static WideFloats wide_zero() { return wide_set(0); }
  static WideFloats wide_load_floats(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  static WideFloats wide_set(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
  static WideFloats wide_fma(WideFloats a, WideFloats b, WideFloats c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  // The first `count` lanes, 0 <= count <= 16; the others are neither read nor written.
  static WideFloats wide_add_first(WideFloats a, const float* p, int count) {
    return {_mm256_add_ps(a.low, _mm256_maskload_ps(p, first(count))),
            _mm256_add_ps(a.high, _mm256_maskload_ps(p + 8, first(count - 8)))};
  }
  static void wide_store_first(float* p, WideFloats a, int count) {
    store_first(p, a.low, count);
    store_first(p + 8, a.high, count - 8);
  }

 private:
  // A store with a mask takes some twenty operations of AMD's CPUs.
  static void store_first(float* p, __m256 a, int count) {
    if (count >= 8) return _mm256_storeu_ps(p, a);
    _mm256_maskstore_ps(p, first(count), a);
  }
  static __m256i first(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  // `value` where bit i % 8 of byte i is set, otherwise 0.
  static Bytes expand(Bytes bytes, int8_t value) {
    const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201ull));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(set, fill(value));
  }
  static int dword(const uint8_t* p) {
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
  }
  static int word(const uint8_t* p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
  }
};

}  // namespace
}  // namespace optima::kernels
