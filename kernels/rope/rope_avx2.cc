// The rotary embedding for AVX2: eight values (adjacent pairs) or eight pairs (halves) at a time.
// The angles of a token are loaded once and used for all its heads.
#include <immintrin.h>

#include "kernels/rope/rope.h"

namespace optima::kernels::avx2 {
namespace {

// One token.
struct Token {
  float* x;  // [heads, head_dim]
  const float* cos_sin;
  int64_t heads;
  int64_t head_dim;
  int64_t half;  // rotary_dim / 2
};

void rotate_pair(float* first, float* second, const float* cos_sin) {
  const float x = *first;
  const float y = *second;
  *first = x * cos_sin[0] - y * cos_sin[1];
  *second = x * cos_sin[1] + y * cos_sin[0];
}

void rotate_adjacent(const Token& token) {
  int64_t pair = 0;
  for (; pair + 4 <= token.half; pair += 4) {
    const __m256 angles = _mm256_loadu_ps(token.cos_sin + 2 * pair);
    const __m256 cosines = _mm256_moveldup_ps(angles);
    const __m256 sines = _mm256_movehdup_ps(angles);
    for (int64_t head = 0; head < token.heads; ++head) {
      float* x = token.x + head * token.head_dim + 2 * pair;
      const __m256 values = _mm256_loadu_ps(x);
      const __m256 swapped = _mm256_permute_ps(values, 0xb1);
      // Even lanes subtract, odd lanes add.
      _mm256_storeu_ps(x, _mm256_fmaddsub_ps(values, cosines, _mm256_mul_ps(swapped, sines)));
    }
  }
  for (; pair < token.half; ++pair) {
    for (int64_t head = 0; head < token.heads; ++head) {
      float* x = token.x + head * token.head_dim + 2 * pair;
      rotate_pair(x, x + 1, token.cos_sin + 2 * pair);
    }
  }
}

// Lanes 0 1 4 5 2 3 6 7 of a shuffle within 128-bit halves, put in order.
__m256 in_order(__m256 v) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}

void rotate_halves(const Token& token) {
  int64_t pair = 0;
  for (; pair + 8 <= token.half; pair += 8) {
    const __m256 low = _mm256_loadu_ps(token.cos_sin + 2 * pair);
    const __m256 high = _mm256_loadu_ps(token.cos_sin + 2 * pair + 8);
    const __m256 cosines = in_order(_mm256_shuffle_ps(low, high, 0x88));
    const __m256 sines = in_order(_mm256_shuffle_ps(low, high, 0xdd));
    for (int64_t head = 0; head < token.heads; ++head) {
      float* first = token.x + head * token.head_dim + pair;
      float* second = first + token.half;
      const __m256 x = _mm256_loadu_ps(first);
      const __m256 y = _mm256_loadu_ps(second);
      _mm256_storeu_ps(first, _mm256_fmsub_ps(x, cosines, _mm256_mul_ps(y, sines)));
      _mm256_storeu_ps(second, _mm256_fmadd_ps(x, sines, _mm256_mul_ps(y, cosines)));
    }
  }
  for (; pair < token.half; ++pair) {
    for (int64_t head = 0; head < token.heads; ++head) {
      float* first = token.x + head * token.head_dim + pair;
      rotate_pair(first, first + token.half, token.cos_sin + 2 * pair);
    }
  }
}

}  // namespace

void rope(const RopeArgs& args, int64_t token_begin, int64_t token_end) {
  for (int64_t i = token_begin; i < token_end; ++i) {
    const Token token = {args.x + i * args.x_stride, args.cos_sin + i * args.rotary_dim, args.heads,
                         args.head_dim, args.rotary_dim / 2};
    if (args.pairs == RopePairs::adjacent) {
      rotate_adjacent(token);
    } else {
      rotate_halves(token);
    }
  }
}

}  // namespace optima::kernels::avx2
