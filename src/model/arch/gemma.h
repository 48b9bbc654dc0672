// What Gemma 2 and 3 have in common.
#pragma once

#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"

namespace optima::model {

// Embedding scaled by sqrt(hidden), tanh-GELU gate, attention.scale where the file gives it. The
// largest model of each generation scales queries by its hidden size per head, all others by head
// size; GGUF files do not say which, so that it is told by `layers_of_largest`.
Status configure_gemma(const HyperParameters& keys, size_t layers_of_largest, ModelConfig& config);

// x + post_norm(attention(norm(x))), then the same with the feed-forward.
Result<graph::ValueId> gemma_block(BlockBuilder& block, graph::ValueId x);

// Sizes, activation, attention scale; what no Gemma checkpoint has is refused.
Status translate_gemma(const HfConfig& config, MetadataWriter& out);

// rope_parameters of the windowed layers, which are not scaled: rope.freq_base_swa.
Status translate_sliding_rope(const json::Value& parameters, MetadataWriter& out);

inline constexpr HfTensorName kGemmaNames[] = {
    {"model.norm.weight", "output_norm.weight", HfTransform::add_one},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", HfTransform::add_one},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight",
     HfTransform::add_one},
    {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight",
     HfTransform::add_one},
    {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight",
     HfTransform::add_one},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", HfTransform::add_one},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", HfTransform::add_one},
};

}  // namespace optima::model
