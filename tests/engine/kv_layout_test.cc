// KV groups of models whose layers differ in window, head size and owner.
#include "engine/kv_layout.h"

#include <gtest/gtest.h>

namespace optima::engine {
namespace {

struct Layer {
  int32_t window, kv_heads, head_dim, owner;
};

model::ModelConfig config_of(const std::vector<Layer>& layers) {
  model::ModelConfig config;
  for (const Layer& layer : layers) {
    auto& out = config.layers.emplace_back();
    out.window = layer.window;
    out.kv_heads = layer.kv_heads;
    out.head_dim = layer.head_dim;
    out.kv_owner = layer.owner;
  }
  return config;
}

void expect_place(const graph::KvPlace& place, int32_t group, int64_t offset, int64_t stride) {
  EXPECT_EQ(place.group, group);
  EXPECT_EQ(place.slot_offset, offset);
  EXPECT_EQ(place.slot_stride, stride);
}

TEST(KvLayout, LayersOfOneWindowAndHeadSizeShareAGroup) {
  const KvLayout layout = kv_layout(
      config_of({{9, 2, 16, 0}, {0, 1, 24, 1}, {9, 3, 16, 2}, {9, 1, 24, 3}, {0, 1, 24, 4}}),
      kernels::KvType::f16);
  // A slot holds K and V of 16 tokens in 2 bytes: 1024 for heads of 16, 1536 for heads of 24.
  ASSERT_EQ(layout.groups.size(), 3u);
  EXPECT_EQ(layout.groups[0].window, 9);
  EXPECT_EQ(layout.groups[0].page_bytes(), 5 * 1024);
  EXPECT_EQ(layout.groups[1].window, 0);
  EXPECT_EQ(layout.groups[1].page_bytes(), 2 * 1536);
  EXPECT_EQ(layout.groups[2].window, 9);
  EXPECT_EQ(layout.groups[2].page_bytes(), 1536);
  ASSERT_EQ(layout.places.size(), 5u);
  expect_place(layout.places[0], 0, 0, 1024);
  expect_place(layout.places[1], 1, 0, 1536);
  expect_place(layout.places[2], 0, 2 * 1024, 1024);
  expect_place(layout.places[3], 2, 0, 1536);
  expect_place(layout.places[4], 1, 1536, 1536);
  // Heads x (K and V) x head size x 2 bytes.
  EXPECT_EQ(layout.bytes_per_position, (std::vector<int64_t>{128, 96, 192, 96, 96}));
}

// Of two heads of 40, so of two blocks a row, nothing stays but positions 0 to 2.
TEST(KvLayout, ClearedPositionsLoseTheirCodesAndScales) {
  const KvLayout layout = kv_layout(config_of({{0, 2, 40, 0}}), kernels::KvType::q8_0);
  ASSERT_EQ(layout.groups.size(), 1u);
  const int64_t slot = layout.groups[0].slot_bytes;
  ASSERT_EQ(slot, 2 * (16 * 40 + 2 * 16 * 2));
  EXPECT_EQ(layout.bytes_per_position, (std::vector<int64_t>{2 * slot / 16}));
  std::vector<unsigned char> page(static_cast<size_t>(2 * slot), 0xee);
  clear_positions(layout, 0, 3, page.data());
  for (int64_t at = 0; at < 2 * slot; ++at) {
    const int64_t in_half = at % (slot / 2);
    const bool is_key = at % slot < slot / 2;
    const bool is_code = in_half < 16 * 40;
    int64_t position = is_key ? in_half % 16 : in_half / 40;
    if (!is_code) position = is_key ? (in_half - 16 * 40) / 2 % 16 : (in_half - 16 * 40) / 4;
    ASSERT_EQ(page[static_cast<size_t>(at)], position < 3 ? 0xee : 0) << "byte " << at;
  }
}

TEST(KvLayout, ALayerThatSharesHasItsOwnersPlaceAndNoMember) {
  const KvLayout layout = kv_layout(
      config_of({{9, 2, 16, 0}, {9, 2, 16, 1}, {0, 1, 24, 2}, {9, 2, 16, 1}, {0, 1, 24, 2}}),
      kernels::KvType::f32);
  ASSERT_EQ(layout.groups.size(), 2u);
  EXPECT_EQ(layout.groups[0].members.size(), 4u);
  EXPECT_EQ(layout.groups[1].members.size(), 1u);
  ASSERT_EQ(layout.places.size(), 5u);
  expect_place(layout.places[3], 0, 2 * 2048, 2048);
  expect_place(layout.places[4], 1, 0, 3072);
  // It reads as much as its owner does.
  EXPECT_EQ(layout.bytes_per_position, (std::vector<int64_t>{256, 256, 192, 256, 192}));
}

}  // namespace
}  // namespace optima::engine
