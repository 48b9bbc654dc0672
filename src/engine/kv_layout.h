// Divides a model's (layer, kv head) pairs into KV groups: all layers of one window share a group,
// so that what a window has passed can be freed page by page.
#pragma once

#include <vector>

#include "graph/program.h"
#include "kv/page_pool.h"
#include "model/config.h"

namespace optima::engine {

struct KvLayout {
  std::vector<kv::KvGroup> groups;
  std::vector<graph::KvPlace> places;  // [layers]
};

KvLayout kv_layout(const model::ModelConfig& config, kernels::KvType type);

}  // namespace optima::engine
