// See kv_layout.h. Members of a group are ordered layer by layer, so that the kv heads of a layer
// are neighbours in a page.
#include "engine/kv_layout.h"

#include <algorithm>

namespace optima::engine {

static_assert(kv::kPageTokens == kernels::kPageTokens);

KvLayout kv_layout(const model::ModelConfig& config, kernels::KvType type) {
  KvLayout layout;
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    const model::LayerConfig& sizes = config.layers[layer];
    const int64_t window = sizes.window;
    const int64_t slot_bytes = kernels::kv_slot_bytes(type, sizes.head_dim);
    layout.bytes_per_position.push_back(sizes.kv_heads * slot_bytes / kv::kPageTokens);
    const auto owner = static_cast<size_t>(sizes.kv_owner);
    if (owner != layer) {
      layout.places.push_back(layout.places[owner]);
      continue;
    }
    auto group = std::find_if(
        layout.groups.begin(), layout.groups.end(),
        [&](const kv::KvGroup& g) { return g.window == window && g.slot_bytes == slot_bytes; });
    if (group == layout.groups.end())
      group = layout.groups.insert(group, kv::KvGroup{{}, slot_bytes, window});
    layout.places.push_back({static_cast<int32_t>(group - layout.groups.begin()),
                             slot_bytes * static_cast<int64_t>(group->members.size()), slot_bytes});
    for (int32_t head = 0; head < sizes.kv_heads; ++head)
      group->members.push_back({static_cast<int32_t>(layer), head});
  }
  return layout;
}

}  // namespace optima::engine
