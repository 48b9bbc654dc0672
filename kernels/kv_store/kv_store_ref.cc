// Scatters rows of keys and values into their pages, one value at a time: K transposed inside the
// page, V as it comes.
#include <math.h>

#include "kernels/half.h"
#include "kernels/kv_store/kv_store.h"

namespace optima::kernels {
namespace {

constexpr float kHalfMax = 65504.0f;

// NaN stays NaN; everything beyond the largest finite f16 becomes that value.
uint16_t narrow(float value) {
  if (value > kHalfMax) value = kHalfMax;
  if (value < -kHalfMax) value = -kHalfMax;
  return float_to_half(value);
}

void put(float value, float* element) {
  *element = value;
}
void put(float value, uint16_t* element) {
  *element = narrow(value);
}

template <typename Element>
void store_heads(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    const int64_t position = args.first_position + token;
    unsigned char* page = args.pages[position / kPageTokens];
    const int64_t t = position % kPageTokens;
    for (int64_t head = head_begin; head < head_end; ++head) {
      const int64_t offset = args.slot_offset + head * args.slot_stride;
      Element* k = reinterpret_cast<Element*>(page + offset);
      Element* v = k + kPageTokens * args.head_dim;
      const float* k_in = args.k + token * args.k_stride + head * args.head_dim;
      const float* v_in = args.v + token * args.v_stride + head * args.head_dim;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        put(k_in[d], k + d * kPageTokens + t);
        put(v_in[d], v + t * args.head_dim + d);
      }
    }
  }
}

}  // namespace

void kv_store_ref(const KvStoreArgs& args, int64_t head_begin, int64_t head_end) {
  if (args.kv_type == KvType::f32) {
    store_heads<float>(args, head_begin, head_end);
  } else {
    store_heads<uint16_t>(args, head_begin, head_end);
  }
}

const KvStoreFn kKvStoreReference = kv_store_ref;

}  // namespace optima::kernels
