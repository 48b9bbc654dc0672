// Divides a model's (layer, kv head) pairs into KV groups: the layers of one window and head size
// share a group, so that what a window has passed can be freed page by page and all slots of a page
// are of one size. A layer that reads another's keys and values has none of its own.
#pragma once

#include <vector>

#include "graph/program.h"
#include "kv/page_pool.h"
#include "model/config.h"

namespace optima::engine {

struct KvLayout {
  kernels::KvType type{};
  std::vector<kv::KvGroup> groups;
  std::vector<int64_t> head_dims;           // of the groups
  std::vector<graph::KvPlace> places;       // [layers]; where the layer's owner has its KV
  std::vector<int64_t> bytes_per_position;  // [layers]; K and V that attention reads
};

KvLayout kv_layout(const model::ModelConfig& config, kernels::KvType type);

// Zeroes positions [from, 16) of a page of a group, in all of its slots.
void clear_positions(const KvLayout& layout, size_t group, int64_t from, unsigned char* page);

}  // namespace optima::engine
