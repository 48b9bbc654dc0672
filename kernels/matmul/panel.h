// Panels: a second form of weights, made once from the file's, that few and many activation rows
// read faster. Sixteen rows lie side by side, so that one activation meets all of them, each lane
// of a vector sums one row, and no row ends with a sum across lanes.
//
// A panel holds rows 16 p .. 16 p + 15 (the last row repeated where there are fewer), block of 32
// after block of 32:
//   scales   binary16 [16], and where the type has minima as many of them; or, for super-blocks,
//            the factors of a block: uint8 [16] of the scale and of the minimum (Q4_K, Q5_K), or
//            int8 [2][16] of its halves (Q6_K). Then the scales, and minima, of the super-block
//            stand before its eight blocks
//   codes    8-bit types: 8 x 64 bytes, offset by 128; byte 4 r + t of j: code 4 j + t of row r.
//            Others: 4 x 64 bytes; byte 4 r + t of j: the low four bits of code 4 j + t of row r,
//            above them those of code 16 + 4 j + t
//   rest     bit 4 of 5-bit codes: 64 bytes; bit j of byte 4 r + t: that of code 4 j + t of row r.
//            Bits 4 and 5 of 6-bit codes: 2 x 64 bytes; bits 2 j, 2 j + 1 of byte 4 r + t of h:
//            those of code 16 h + 4 j + t
// The numbers are those of the file, so the products are equal to those of gemm.inl.h bit for bit.
#pragma once

#include <stdint.h>

#include "kernels/quant/weight_type.h"

namespace optima::kernels {

inline constexpr int kPanelRows = 16;

// What multiplies the scales of a super-block.
enum class PanelFactors : uint8_t {
  none,      // there are no super-blocks
  of_block,  // one number for the scale and one for the minimum of 32 weights
  of_halves  // one for each 16 weights; no minimum
};

// A kernel is compiled for each combination in use.
struct PanelTraits {
  int code_bits;  // 0: this type has no panels
  bool has_min;
  PanelFactors factors;
};

constexpr PanelTraits panel_traits(WeightType type) {
  switch (type) {
    case WeightType::q4_0:
      return {4, false, PanelFactors::none};
    case WeightType::q4_1:
      return {4, true, PanelFactors::none};
    case WeightType::q5_0:
      return {5, false, PanelFactors::none};
    case WeightType::q5_1:
      return {5, true, PanelFactors::none};
    case WeightType::q8_0:
      return {8, false, PanelFactors::none};
    case WeightType::q4_k:
      return {4, true, PanelFactors::of_block};
    case WeightType::q5_k:
      return {5, true, PanelFactors::of_block};
    case WeightType::q6_k:
      return {6, false, PanelFactors::of_halves};
    default:
      return {0, false, PanelFactors::none};
  }
}

constexpr int panel_code_offset(PanelTraits traits) {
  return 1 << (traits.code_bits - 1);
}
// Weights that share a scale.
constexpr int panel_sub(PanelTraits traits) {
  return traits.factors == PanelFactors::of_halves ? 16 : 32;
}
// Bytes before the codes of a block.
constexpr int panel_scale_bytes(PanelTraits traits) {
  if (traits.factors != PanelFactors::none) return kPanelRows * 2;
  return kPanelRows * (traits.has_min ? 4 : 2);
}
constexpr int panel_block_bytes(PanelTraits traits) {
  return panel_scale_bytes(traits) + 4 * traits.code_bits * kPanelRows;
}
// Bytes before eight blocks.
constexpr int panel_group_bytes(PanelTraits traits) {
  if (traits.factors == PanelFactors::none) return 0;
  return kPanelRows * (traits.has_min ? 4 : 2);
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
