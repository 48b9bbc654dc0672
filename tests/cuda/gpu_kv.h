// KV of one layer in GPU pages for tests, made from the CPU's by what both layouts say of
// themselves; pages lie scattered in the pool, and what was never stored is NaN.
#pragma once

#include <string.h>

#include <numeric>

#include "kernels/attention/gpu_pages.cuh"
#include "tests/cuda/element_testing.h"
#include "tests/kernels/paged_kv.h"

namespace optima::kernels::cuda {

// A slot of the CPU's with K turned: [head_dim][16] to [16][head_dim], its scales too.
inline std::vector<unsigned char> gpu_slot(const unsigned char* slot, KvType type,
                                           int64_t head_dim) {
  const auto element = static_cast<size_t>(kv_element_bytes(type));
  const auto dims = static_cast<size_t>(head_dim);
  const auto tokens = static_cast<size_t>(kPageTokens);
  std::vector<unsigned char> turned(slot, slot + kv_slot_bytes(type, head_dim));
  for (size_t d = 0; d < dims; ++d) {
    for (size_t t = 0; t < tokens; ++t) {
      memcpy(&turned[(t * dims + d) * element], slot + (d * tokens + t) * element, element);
    }
  }
  if (type != KvType::q8_0) return turned;
  const auto blocks = static_cast<size_t>(kv_blocks(head_dim));
  const size_t scales = tokens * dims;
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t t = 0; t < tokens; ++t) {
      memcpy(&turned[scales + (t * blocks + b) * 2], slot + scales + (b * tokens + t) * 2, 2);
    }
  }
  return turned;
}

// A pool of pages, each with one slot before those of the layer.
class GpuPool {
 public:
  GpuPool(KvType type, int64_t kv_heads, int64_t head_dim, int64_t pages)
      : type_(type), kv_heads_(kv_heads), head_dim_(head_dim) {
    memory_.assign(static_cast<size_t>(pages * page_bytes()), 0xff);
  }

  int64_t slot_bytes() const { return kv_slot_bytes(type_, head_dim_); }
  int64_t page_bytes() const { return (1 + kv_heads_) * slot_bytes(); }
  unsigned char* slot(int64_t page, int64_t kv_head) {
    return memory_.data() + page * page_bytes() + (1 + kv_head) * slot_bytes();
  }
  KvSlots slots() {
    return {memory_.data(),
            page_bytes(),
            slot_bytes(),
            slot_bytes(),
            static_cast<int>(kv_heads_),
            static_cast<int>(head_dim_)};
  }
  void fill_from(const unsigned char* cpu_page, const PagedKv& kv, int64_t page) {
    for (int64_t head = 0; head < kv_heads_; ++head) {
      const std::vector<unsigned char> turned =
          gpu_slot(cpu_page + kv.offset() + head * kv.slot_bytes(), type_, head_dim_);
      memcpy(slot(page, head), turned.data(), turned.size());
    }
  }

 private:
  KvType type_;
  int64_t kv_heads_;
  int64_t head_dim_;
  Vector<unsigned char> memory_;
};

}  // namespace optima::kernels::cuda
