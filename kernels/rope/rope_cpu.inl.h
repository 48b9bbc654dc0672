// The rotary embedding over the words of kernels/vec/f32_*.h of eight lanes: eight values (adjacent
// pairs) or eight pairs (halves) at a time. The angles of a token are loaded once and used for all
// its heads.
#pragma once

#include "kernels/rope/rope.h"

namespace optima::kernels {
namespace {

// One token.
struct Token {
  float* x;  // [heads, head_dim]
  const float* cos_sin;
  int64_t heads;
  int64_t head_dim;
  int64_t half;  // rotary_dim / 2
};

inline void rotate_pair(float* first, float* second, const float* cos_sin) {
  const float x = *first;
  const float y = *second;
  *first = x * cos_sin[0] - y * cos_sin[1];
  *second = x * cos_sin[1] + y * cos_sin[0];
}

template <typename V>
void rotate_adjacent(const Token& token) {
  using Reg = typename V::Reg;
  int64_t pair = 0;
  for (; pair + 4 <= token.half; pair += 4) {
    const Reg angles = V::load(token.cos_sin + 2 * pair);
    const Reg cosines = V::even_twice(angles);
    const Reg sines = V::odd_twice(angles);
    for (int64_t head = 0; head < token.heads; ++head) {
      float* x = token.x + head * token.head_dim + 2 * pair;
      const Reg values = V::load(x);
      V::store(x, V::fma_alternate(values, cosines, V::mul(V::swap_pairs(values), sines)));
    }
  }
  for (; pair < token.half; ++pair) {
    for (int64_t head = 0; head < token.heads; ++head) {
      float* x = token.x + head * token.head_dim + 2 * pair;
      rotate_pair(x, x + 1, token.cos_sin + 2 * pair);
    }
  }
}

template <typename V>
void rotate_halves(const Token& token) {
  using Reg = typename V::Reg;
  int64_t pair = 0;
  for (; pair + 8 <= token.half; pair += 8) {
    const Reg low = V::load(token.cos_sin + 2 * pair);
    const Reg high = V::load(token.cos_sin + 2 * pair + 8);
    const Reg cosines = V::even_of(low, high);
    const Reg sines = V::odd_of(low, high);
    for (int64_t head = 0; head < token.heads; ++head) {
      float* first = token.x + head * token.head_dim + pair;
      float* second = first + token.half;
      const Reg x = V::load(first);
      const Reg y = V::load(second);
      V::store(first, V::fma_minus(x, cosines, V::mul(y, sines)));
      V::store(second, V::fma(x, sines, V::mul(y, cosines)));
    }
  }
  for (; pair < token.half; ++pair) {
    for (int64_t head = 0; head < token.heads; ++head) {
      float* first = token.x + head * token.head_dim + pair;
      rotate_pair(first, first + token.half, token.cos_sin + 2 * pair);
    }
  }
}

template <typename V>
void rotate_tokens(const RopeArgs& args, int64_t token_begin, int64_t token_end) {
  static_assert(V::kWidth == 8);
  for (int64_t i = token_begin; i < token_end; ++i) {
    const Token token = {args.x + i * args.x_stride, args.cos_sin + i * args.rotary_dim, args.heads,
                         args.head_dim, args.rotary_dim / 2};
    if (args.pairs == RopePairs::adjacent) {
      rotate_adjacent<V>(token);
    } else {
      rotate_halves<V>(token);
    }
  }
}

}  // namespace
}  // namespace optima::kernels
