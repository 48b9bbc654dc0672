// Quantises activations on AVX2. The arithmetic is that of quantise_base.cc, so q, scale and the
// pair sums are equal bit for bit; only the order of the fp32 sums differs.

#include <immintrin.h>
#include <string.h>

#include "kernels/matmul/rows.h"

namespace optima::kernels {
namespace {

constexpr float kTiny = 1e-30f;  // see quantise_base.cc

float sum8(__m256 a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The largest of the bits of |x|: above infinity's where a NaN is present.
uint32_t largest_magnitude_bits(const __m256 (&v)[4]) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_and_si256(_mm256_castps_si256(v[0]), mask);
  for (int i = 1; i < 4; ++i) {
    largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(v[i]), mask));
  }
  __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}

// int32 [4] = {pair 0 and pair 1 of values 0..15, the same of 16..31}.
__m128i pair_sums(__m256i q) {
  const __m256i twos = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);  // sums of neighbours
  // Even 16-bit lanes belong to k % 4 in {0, 1}: widen and add four lanes of each half.
  const __m256i even = _mm256_srai_epi32(_mm256_slli_epi32(twos, 16), 16);
  const __m256i odd = _mm256_srai_epi32(twos, 16);
  const __m256i once = _mm256_hadd_epi32(even, odd);    // per half: e01 e23 o01 o23
  const __m256i twice = _mm256_hadd_epi32(once, once);  // per half: e o e o
  return _mm_unpacklo_epi64(_mm256_castsi256_si128(twice), _mm256_extracti128_si256(twice, 1));
}

void quantise_block(const float* x, int64_t block, const QuantisedRows& out) {
  __m256 v[4];
  for (int i = 0; i < 4; ++i) v[i] = _mm256_loadu_ps(x + 8 * i);
  const uint32_t bits = largest_magnitude_bits(v);
  float largest;
  memcpy(&largest, &bits, sizeof largest);
  const bool finite = bits < 0x7f800000u;
  const float inverse = finite && largest > kTiny ? 127.0f / largest : 0.0f;
  const float step = inverse > 0.0f ? largest / 127.0f : 0.0f;
  out.scale[block] = finite ? step : __builtin_nanf("");

  const __m256 low = _mm256_add_ps(v[0], v[1]);
  const __m256 high = _mm256_add_ps(v[2], v[3]);
  out.sum_x16[2 * block] = sum8(low);
  out.sum_x16[2 * block + 1] = sum8(high);
  out.sum_x[block] = sum8(_mm256_add_ps(low, high));

  __m256i codes[4];
  for (int i = 0; i < 4; ++i) {
    // Infinity and NaN times 0 convert to INT_MIN; the mask turns such a block into zeros.
    codes[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], _mm256_set1_ps(inverse)));
    codes[i] = _mm256_and_si256(codes[i], _mm256_set1_epi32(finite ? -1 : 0));
  }
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(codes[0], codes[1]),
                                            _mm256_packs_epi32(codes[2], codes[3]));
  const __m256i q = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.q + block * kActivationBlock), q);

  const __m128i pairs = pair_sums(q);
  const __m128i shorts = _mm_packs_epi32(pairs, pairs);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out.pairs16 + 4 * block), shorts);
  const __m128i whole = _mm_add_epi16(shorts, _mm_srli_epi64(shorts, 32));
  const int word = _mm_cvtsi128_si32(whole);
  memcpy(out.pairs + 2 * block, &word, sizeof word);
}

}  // namespace

namespace avx2 {

void quantise_rows(const float* x, int64_t k, int64_t row_begin, int64_t row_end,
                   const QuantisedRows& out) {
  const int64_t blocks = out.k_padded / kActivationBlock;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* values = x + row * k;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t rest = k - b * kActivationBlock;
      if (rest >= kActivationBlock) {
        quantise_block(values + b * kActivationBlock, row * blocks + b, out);
        continue;
      }
      float tail[kActivationBlock] = {};
      memcpy(tail, values + b * kActivationBlock, static_cast<size_t>(rest) * sizeof(float));
      quantise_block(tail, row * blocks + b, out);
    }
  }
}

}  // namespace avx2
}  // namespace optima::kernels
