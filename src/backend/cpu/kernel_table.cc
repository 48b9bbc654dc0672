// Picks the kernel variants; see kernel_table.h.
#include "backend/cpu/kernel_table.h"

#include "backend/cpu/host_isa.h"

namespace optima::backend::cpu {
namespace {

KernelTable best_kernels(kernels::IsaMask available) {
  using kernels::best;
  return {
      .rms_norm = best(kernels::rms_norm_variants(), available).fn,
      .layer_norm = best(kernels::layer_norm_variants(), available).fn,
      .rope = best(kernels::rope_variants(), available).fn,
      .add = best(kernels::add_variants(), available).fn,
      .mul = best(kernels::mul_variants(), available).fn,
      .add_bias = best(kernels::add_bias_variants(), available).fn,
      .gated_act = best(kernels::gated_act_variants(), available).fn,
      .act = best(kernels::act_variants(), available).fn,
      .softcap = best(kernels::softcap_variants(), available).fn,
      .moe_route = best(kernels::moe_route_variants(), available).fn,
      .scale = best(kernels::scale_variants(), available).fn,
      .argmax = best(kernels::argmax_variants(), available).fn,
      .vocabulary = best(kernels::vocabulary_variants(), available).fn,
      .kv_store = best(kernels::kv_store_variants(), available).fn,
      .quantise_rows = best(kernels::quantise_rows_variants(), available).fn,
      .matmul = best(kernels::matmul_variants(), available).fn,
      .row_sums = kernels::RowSums::fastest,
      .attention = best(kernels::attention_variants(), available).fn,
      .attention_split = &best(kernels::attention_split_variants(), available).fn,
  };
}

}  // namespace

KernelTable fast_kernels() {
  return best_kernels(host_isa());
}

KernelTable deterministic_kernels() {
  // What tiles round depends on how many rows there are; so does attention by bfloat16.
  const kernels::IsaMask available = host_isa() & ~kernels::kIsaAmx;
  KernelTable kernels = best_kernels(available);
  kernels.attention = best(kernels::attention_variants(), available & ~kernels::kIsaAvx512Bf16).fn;
  kernels.row_sums = kernels::RowSums::alike;
  return kernels;
}

KernelTable reference_kernels() {
  return {
      .rms_norm = kernels::kRmsNormReference,
      .layer_norm = kernels::kLayerNormReference,
      .rope = kernels::kRopeReference,
      .add = kernels::kAddReference,
      .mul = kernels::kMulReference,
      .add_bias = kernels::kAddBiasReference,
      .gated_act = kernels::kGatedActReference,
      .act = kernels::kActReference,
      .softcap = kernels::kSoftcapReference,
      .moe_route = kernels::kMoeRouteReference,
      .scale = kernels::kScaleReference,
      .argmax = kernels::kArgmaxReference,
      .vocabulary = kernels::kVocabularyReference,
      .kv_store = kernels::kKvStoreReference,
      .quantise_rows = best(kernels::quantise_rows_variants(), kernels::kIsaNone).fn,
      .matmul = kernels::kMatmulReference,
      .row_sums = kernels::RowSums::alike,
      .attention = kernels::kAttentionReference,
      .attention_split = nullptr,
  };
}

}  // namespace optima::backend::cpu
