// The KV store for AVX2 and F16C. V rows are converted eight values at a time. K goes in by 8 x 8
// blocks, transposed in registers, wherever eight tokens fill half a page; single tokens (decoding)
// and ragged ends are converted by vectors and scattered. fp32 pages, the reference path's, take
// the reference.
#include "kernels/vec/f32_avx2.h"

#include "kernels/kv_store/kv_store_q8.inl.h"

namespace optima::kernels {

void kv_store_ref(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);

namespace avx2 {
namespace {

using V = F32Avx2;
constexpr int64_t kLanes = V::kWidth;

// NaN passes: min and max keep their second operand.
__m256 saturated(const float* p) {
  const __m256 limit = V::set1(65504.0f);
  return V::max(V::set1(-65504.0f), V::min(limit, V::load(p)));
}

// One kv head of the run: where token 0 lies, and how its pages are found.
struct Head {
  const KvStoreArgs& args;
  int64_t head;

  const float* k(int64_t token) const {
    return args.k + token * args.k_stride + head * args.head_dim;
  }
  const float* v(int64_t token) const {
    return args.v + token * args.v_stride + head * args.head_dim;
  }
  uint16_t* slot(int64_t position) const {
    return reinterpret_cast<uint16_t*>(args.pages[position / kPageTokens] + args.slot_offset +
                                       head * args.slot_stride);
  }
};

void store_values(const Head& head, int64_t token) {
  const int64_t position = head.args.first_position + token;
  const int64_t head_dim = head.args.head_dim;
  uint16_t* v = head.slot(position) + (kPageTokens + position % kPageTokens) * head_dim;
  const float* from = head.v(token);
  for (int64_t d = 0; d < head_dim; d += kLanes) V::store_half(v + d, saturated(from + d));
}

void scatter_key(const Head& head, int64_t token) {
  const int64_t position = head.args.first_position + token;
  uint16_t* k = head.slot(position) + position % kPageTokens;
  const float* from = head.k(token);
  for (int64_t d = 0; d < head.args.head_dim; d += kLanes) {
    uint16_t halves[kLanes];
    V::store_half(halves, saturated(from + d));
    for (int64_t i = 0; i < kLanes; ++i) k[(d + i) * kPageTokens] = halves[i];
  }
}

// rows[i] lane j -> rows[j] lane i.
void transpose(__m256 (&rows)[8]) {
  __m256 pairs[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  __m256 quads[8];
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}

// Eight tokens that start at a multiple of eight.
void store_eight_keys(const Head& head, int64_t token) {
  const int64_t position = head.args.first_position + token;
  uint16_t* k = head.slot(position) + position % kPageTokens;
  for (int64_t d = 0; d < head.args.head_dim; d += kLanes) {
    __m256 rows[8];
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = saturated(head.k(token + i) + d);
    transpose(rows);
    for (int64_t i = 0; i < kLanes; ++i) V::store_half(k + (d + i) * kPageTokens, rows[i]);
  }
}

void store_head(const Head& head) {
  const KvStoreArgs& args = head.args;
  for (int64_t token = 0; token < args.tokens; ++token) store_values(head, token);
  for (int64_t token = 0; token < args.tokens;) {
    const bool aligned = (args.first_position + token) % kLanes == 0;
    if (aligned && token + kLanes <= args.tokens) {
      store_eight_keys(head, token);
      token += kLanes;
    } else {
      scatter_key(head, token);
      ++token;
    }
  }
}

}  // namespace

void kv_store(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  if (args.kv_type == KvType::f32) {
    kv_store_ref(args, head_begin, head_end);
    return;
  }
  for (int64_t head = head_begin; head < head_end; ++head) {
    args.kv_type == KvType::f16 ? store_head({args, head}) : encode_head<V>(args, head);
  }
}

}  // namespace avx2
}  // namespace optima::kernels
