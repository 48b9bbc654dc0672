// A sequence's KV in pages as the attention kernels see it, for tests: exact page sizes (so that
// ASan sees an overrun), NaN wherever nothing was stored, null below the window.
#pragma once

#include <string.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/kv_store/kv_store.h"

namespace optima::kernels {

inline std::vector<float> random_floats(std::mt19937& random, int64_t count, float scale = 1.0f) {
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

struct AttentionShape {
  int64_t tokens = 1;
  int64_t first_position = 0;
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t head_dim = 64;
  int64_t window = 0;
  float softcap = 0;
  KvType kv_type = KvType::f16;
  AttentionMask mask = AttentionMask::causal;
  bool sinks = false;  // whether a problem of this shape has them

  int64_t positions() const { return first_position + tokens; }
  int64_t pages() const { return (positions() + kPageTokens - 1) / kPageTokens; }
};

class PagedKv {
 public:
  static constexpr int64_t kSlotsBefore = 1;  // as if another layer's slot came first

  // k and v: [positions, kv_heads, head_dim].
  PagedKv(const AttentionShape& shape, const std::vector<float>& k, const std::vector<float>& v) {
    slot_bytes_ = kv_slot_bytes(shape.kv_type, shape.head_dim);
    const int64_t bytes = (kSlotsBefore + shape.kv_heads) * slot_bytes_;
    for (int64_t page = 0; page < shape.pages(); ++page) {
      memory_.push_back(std::make_unique<unsigned char[]>(static_cast<size_t>(bytes)));
      memset(memory_.back().get(), 0xff, static_cast<size_t>(bytes));  // NaN in f16 and f32
      pages_.push_back(memory_.back().get());
    }
    const int64_t row = shape.kv_heads * shape.head_dim;
    const KvStoreArgs store = {k.data(),          row,      v.data(),       row,
                               pages_.data(),     offset(), slot_bytes_,    shape.kv_type,
                               shape.positions(), 0,        shape.kv_heads, shape.head_dim};
    kKvStoreReference(store, 0, shape.kv_heads);
    const int64_t first_seen = shape.first_position - shape.window + 1;
    if (shape.window > 0) {
      for (int64_t page = 0; (page + 1) * kPageTokens <= first_seen; ++page) {
        pages_[static_cast<size_t>(page)] = nullptr;
      }
    }
  }

  int64_t offset() const { return kSlotsBefore * slot_bytes_; }
  int64_t slot_bytes() const { return slot_bytes_; }
  unsigned char* const* pages() const { return pages_.data(); }

 private:
  int64_t slot_bytes_ = 0;
  std::vector<std::unique_ptr<unsigned char[]>> memory_;
  std::vector<unsigned char*> pages_;
};

inline AttentionArgs attention_args(const AttentionShape& shape, const PagedKv& kv, const float* q,
                                    float* out) {
  AttentionArgs args = {};
  args.q = q;
  args.out = out;
  args.q_stride = args.out_stride = shape.heads * shape.head_dim;
  args.pages = kv.pages();
  args.slot_offset = kv.offset();
  args.slot_stride = kv.slot_bytes();
  args.kv_type = shape.kv_type;
  args.tokens = shape.tokens;
  args.first_position = shape.first_position;
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.head_dim = shape.head_dim;
  args.window = shape.window;
  args.scale = 1.0f / sqrtf(static_cast<float>(shape.head_dim));
  args.softcap = shape.softcap;
  args.mask = shape.mask;
  return args;
}

inline void run_all_items(const AttentionKernel& kernel, const AttentionArgs& args) {
  std::vector<unsigned char> scratch(
      kernel.scratch_bytes(args.heads, args.kv_heads, args.head_dim));
  kernel.run(args, 0, attention_items(args), scratch.data());
}

}  // namespace optima::kernels
