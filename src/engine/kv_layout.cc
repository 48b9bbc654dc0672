// See kv_layout.h. Members of a group are ordered layer by layer, so that the kv heads of a layer
// are neighbours in a page.
#include "engine/kv_layout.h"

#include <algorithm>
#include <cstring>

namespace optima::engine {

static_assert(kv::kPageTokens == kernels::kPageTokens);

void clear_positions(const kv::KvGroup& group, kernels::KvType type, int64_t from,
                     unsigned char* page) {
  const int64_t element = kernels::kv_element_bytes(type);
  const int64_t dims = group.slot_bytes / (2 * kv::kPageTokens * element);
  const auto bytes = static_cast<size_t>((kv::kPageTokens - from) * element);
  for (size_t member = 0; member < group.members.size(); ++member) {
    unsigned char* keys = page + static_cast<int64_t>(member) * group.slot_bytes;
    for (int64_t dim = 0; dim < dims; ++dim)
      std::memset(keys + (dim * kv::kPageTokens + from) * element, 0, bytes);
    unsigned char* values = keys + group.slot_bytes / 2;
    std::memset(values + from * dims * element, 0, bytes * static_cast<size_t>(dims));
  }
}

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
