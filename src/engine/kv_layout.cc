// See kv_layout.h. Members of a group are ordered layer by layer, so that the kv heads of a layer
// are neighbours in a page.
#include "engine/kv_layout.h"

#include <algorithm>
#include <cstring>

namespace optima::engine {

static_assert(kv::kPageTokens == kernels::kPageTokens);

namespace {

// Zeroes the columns [from, 16) of `rows` rows of 16 elements.
void clear_columns(unsigned char* table, int64_t rows, int64_t element, int64_t from) {
  for (int64_t row = 0; row < rows; ++row)
    std::memset(table + (row * kv::kPageTokens + from) * element, 0,
                static_cast<size_t>((kv::kPageTokens - from) * element));
}

// Zeroes the rows [from, 16) of `row_bytes` bytes.
void clear_rows(unsigned char* table, int64_t row_bytes, int64_t from) {
  std::memset(table + from * row_bytes, 0,
              static_cast<size_t>((kv::kPageTokens - from) * row_bytes));
}

}  // namespace

void clear_positions(const KvLayout& layout, size_t group, int64_t from, unsigned char* page) {
  const kv::KvGroup& of = layout.groups[group];
  const int64_t dims = layout.head_dims[group];
  const int64_t element = kernels::kv_element_bytes(layout.type);
  const int64_t scale_bytes = kernels::kv_scale_bytes(layout.type, dims) / kv::kPageTokens;
  const int64_t scales_at = kv::kPageTokens * dims * element;
  for (size_t member = 0; member < of.members.size(); ++member) {
    unsigned char* keys = page + static_cast<int64_t>(member) * of.slot_bytes;
    clear_columns(keys, dims, element, from);
    clear_columns(keys + scales_at, scale_bytes / 2, 2, from);
    unsigned char* values = keys + of.slot_bytes / 2;
    clear_rows(values, dims * element, from);
    clear_rows(values + scales_at, scale_bytes, from);
  }
}

KvLayout kv_layout(const model::ModelConfig& config, kernels::KvType type) {
  KvLayout layout;
  layout.type = type;
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
    if (group == layout.groups.end()) {
      group = layout.groups.insert(group, kv::KvGroup{{}, slot_bytes, window});
      layout.head_dims.push_back(sizes.head_dim);
    }
    layout.places.push_back({static_cast<int32_t>(group - layout.groups.begin()),
                             slot_bytes * static_cast<int64_t>(group->members.size()), slot_bytes});
    for (int32_t head = 0; head < sizes.kv_heads; ++head)
      group->members.push_back({static_cast<int32_t>(layer), head});
  }
  return layout;
}

}  // namespace optima::engine
