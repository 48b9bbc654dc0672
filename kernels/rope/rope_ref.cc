// Rotation of value pairs by position-dependent angles, in plain loops, and the table of angles
// that all variants read.
#include <math.h>

#include "kernels/rope/rope.h"

namespace optima::kernels {
namespace {

void rotate_pair(float* a, float* b, double cosine, double sine) {
  const double x = *a;
  const double y = *b;
  *a = static_cast<float>(x * cosine - y * sine);
  *b = static_cast<float>(x * sine + y * cosine);
}

}  // namespace

void rope_ref(const RopeArgs& args, int64_t token_begin, int64_t token_end) {
  const int64_t half = args.rotary_dim / 2;
  const int64_t step = args.pairs == RopePairs::adjacent ? 2 : 1;
  const int64_t partner = args.pairs == RopePairs::adjacent ? 1 : half;
  for (int64_t token = token_begin; token < token_end; ++token) {
    const float* cos_sin = args.cos_sin + token * args.rotary_dim;
    for (int64_t head = 0; head < args.heads; ++head) {
      float* x = args.x + token * args.x_stride + head * args.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        float* first = x + i * step;
        rotate_pair(first, first + partner, cos_sin[2 * i], cos_sin[2 * i + 1]);
      }
    }
  }
}

const RopeFn kRopeReference = rope_ref;

void rope_table(const int32_t* positions, int64_t tokens, const double* inverse_frequency,
                int64_t rotary_dim, double magnitude, float* cos_sin) {
  for (int64_t token = 0; token < tokens; ++token) {
    float* row = cos_sin + token * rotary_dim;
    for (int64_t i = 0; i < rotary_dim / 2; ++i) {
      const double angle = positions[token] * inverse_frequency[i];
      row[2 * i] = static_cast<float>(magnitude * cos(angle));
      row[2 * i + 1] = static_cast<float>(magnitude * sin(angle));
    }
  }
}

}  // namespace optima::kernels
