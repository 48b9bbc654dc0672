// SmolLM3 (Hugging Face 2025): Llama's block, with layers that do not rotate (NoPE: Yang et al.
// 2025, arXiv:2501.18795).
#include "model/arch/arch.h"
#include "model/arch/blocks.h"
#include "model/hyper_parameters.h"
#include "model/rope.h"

namespace optima::model {
namespace {

constexpr size_t kPlainInterval = 4;  // every fourth layer does not rotate

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(add_rope(file, keys, {llama_pairs(file), config.head_dim}, config));
  OPTIMA_TRY(keys.read_activation("silu", config));
  OPTIMA_TRY(keys.read_windows(0, config));
  OPTIMA_ASSIGN(const auto* rotated, keys.flags("rope.layers"));
  if (rotated != nullptr && rotated->size() != config.layers.size())
    return Status(Code::format, "config.json: 'no_rope_layers' has not one value for each layer");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool rotates = rotated != nullptr ? (*rotated)[i] != 0 : (i + 1) % kPlainInterval != 0;
    if (!rotates) config.layers[i].rope = kNoRope;
  }
  return config;
}

Result<graph::ValueId> block(BlockBuilder& b, graph::ValueId x) {
  return pre_norm_block(b, x, {.qkv_bias = Bias::if_present, .output_bias = Bias::if_present},
                        {.bias = Bias::if_present});
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {block});
}

// no_rope_layers holds 1 where a layer rotates.
Status translate_rotated(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  OPTIMA_ASSIGN(const auto interval, config.integer("no_rope_layer_interval"));
  OPTIMA_ASSIGN(const auto listed, config.reals("no_rope_layers"));
  if (interval && *interval < 1)
    return Status(Code::format, "config.json: 'no_rope_layer_interval' < 1");
  std::vector<uint8_t> rotated;
  if (listed) {
    for (const double value : *listed) rotated.push_back(value != 0 ? 1 : 0);
  } else {
    const int64_t every = interval.value_or(kPlainInterval);
    for (int64_t i = 0; i < layers; ++i) rotated.push_back((i + 1) % every != 0 ? 1 : 0);
  }
  return out.flags("rope.layers", std::move(rotated));
}

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  config.find("attention_bias");  // shows in the tensors
  config.find("mlp_bias");
  OPTIMA_TRY(translate_rotated(config, out));
  OPTIMA_ASSIGN(const auto use, config.boolean("use_sliding_window"));
  config.find("max_window_layers");
  if (use.value_or(false)) {
    OPTIMA_TRY(translate_layer_types(config, {}, out));
  } else {
    config.find("sliding_window");
    config.find("layer_types");
  }
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config, {.head_dim = head_dim, .base_default = 2e6}, out);
}

constexpr HfForm kForms[] = {{"smollm3", "smollm3", translate, {}, kLlamaNames}};

}  // namespace

const Architecture kSmolLm3 = {"smollm3", configure, build, kForms};

}  // namespace optima::model
