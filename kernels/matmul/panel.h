// Panels: a second form of weights, made once from the file's, that few and many activation rows
// read faster. Sixteen rows lie side by side, so that one activation meets all of them, each lane
// of a vector sums one row, and no row ends with a sum across lanes.
//
// A panel holds rows 16 p .. 16 p + 15 (the last row repeated where there are fewer), block of 32
// after block of 32:
//   4-bit types   scale    binary16 [16]
//                 minimum  binary16 [16]         types that have one
//                 codes    4 x 64 bytes; byte 4 r + t of j: code 4 j + t of row r in the low
//                          nibble, code 16 + 4 j + t in the high one
//   8-bit types   scale    binary16 [16]
//                 codes    8 x 64 bytes, offset by 128; byte 4 r + t of j: code 4 j + t of row r
//   Q4_K          before eight blocks their scale and minimum, binary16 [16] each; before a block's
//                 codes its factors of both, uint8 [16] each
// The numbers are those of the file, so the products are equal to those of gemm.inl.h bit for bit.
#pragma once

#include <stdint.h>

#include "kernels/quant/weight_type.h"

namespace optima::kernels {

inline constexpr int kPanelRows = 16;

// A kernel is compiled for each combination in use.
struct PanelTraits {
  int code_bits;  // 0: this type has no panels
  bool has_min;
  bool has_factors;
};

constexpr PanelTraits panel_traits(WeightType type) {
  switch (type) {
    case WeightType::q4_0:
      return {4, false, false};
    case WeightType::q4_1:
      return {4, true, false};
    case WeightType::q4_k:
      return {4, true, true};
    case WeightType::q8_0:
      return {8, false, false};
    default:
      return {0, false, false};
  }
}

// Bytes before the codes of a block: its scales or its factors.
constexpr int panel_scale_bytes(PanelTraits traits) {
  const int numbers = traits.has_min ? 2 : 1;
  return kPanelRows * numbers * (traits.has_factors ? 1 : 2);
}
constexpr int panel_block_bytes(PanelTraits traits) {
  return panel_scale_bytes(traits) + 4 * traits.code_bits * kPanelRows;
}
// Bytes before eight blocks.
constexpr int panel_group_bytes(PanelTraits traits) {
  return traits.has_factors ? kPanelRows * 4 : 0;
}
// Where the header of eight blocks that block b belongs to starts, where its codes do, and (with
// the number of blocks) how many bytes a panel has.
constexpr int64_t panel_group_at(PanelTraits traits, int64_t b) {
  return b / 8 * (8 * panel_block_bytes(traits) + panel_group_bytes(traits));
}
constexpr int64_t panel_codes_at(PanelTraits traits, int64_t b) {
  return panel_group_at(traits, b) + panel_group_bytes(traits) + b % 8 * panel_block_bytes(traits) +
         panel_scale_bytes(traits);
}
constexpr int64_t panel_bytes(PanelTraits traits, int64_t blocks) {
  return blocks * panel_block_bytes(traits) + (blocks + 7) / 8 * panel_group_bytes(traits);
}

}  // namespace optima::kernels
