// How an architecture looks in a Hugging Face folder: the names of its tensors, and the keys of its
// config.json. Each architecture file has one of these for each model_type that it computes.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "model/hf/hf_config.h"

namespace optima::model {

// What has to be done with a tensor so that it is the GGUF one.
enum class HfTransform : uint8_t {
  none,
  add_one,         // Gemma's norms: the folder holds w, GGUF 1 + w
  transpose,       // the last two dimensions: GPT-2's Conv1D and gpt-oss's experts
  heads_to_parts,  // GPT-NeoX: rows by head, q k v of each, become all q, all k, all v
  // gpt-oss's experts: [experts, inputs, outputs], outputs of gate and up by turns
  gate_of_pairs,
  up_of_pairs,
  gate_of_bias_pairs,  // [experts, outputs]
  up_of_bias_pairs,
  // the same as MXFP4: "<name>_blocks" [experts, outputs, blocks, 16] with "<name>_scales"
  mxfp4,
  mxfp4_gate_of_pairs,
  mxfp4_up_of_pairs,
  read_with_blocks,  // such scales: no tensor of their own
  unused,            // it has no part in what is computed
};

// "{}" stands for the layer, a second "{}" for the expert. A tensor may have several rows.
struct HfTensorName {
  std::string_view hf;
  std::string_view gguf;
  HfTransform transform = HfTransform::none;
};

struct HfForm {
  std::string_view model_type;
  std::string_view architecture;  // GGUF's name
  // Writes the architecture's metadata from config.json.
  Status (*translate)(const HfConfig& config, MetadataWriter& out);
  std::span<const HfTensorName> tensors;
  std::span<const HfTensorName> shared;  // names that others use too; those above come first
};

// ---- parts that architectures share ----

// Sizes, heads, epsilon, context, embedding tie under the names that Llama's folders use.
Status translate_common(const HfConfig& config, MetadataWriter& out);
// The same without what may differ by layer: kv heads, head size, feed-forward width.
Status translate_sizes(const HfConfig& config, MetadataWriter& out);
// rope_theta with rope_scaling, or rope_parameters: base, type and numbers of the scaling, and
// partial_rotary_factor. `head_dim` is what a factor of 1 rotates.
struct RopeTranslation {
  int64_t head_dim = 0;
  double base_default = 10000.0;
  double partial_default = 1.0;
};
Status translate_rope(const HfConfig& config, const RopeTranslation& how, MetadataWriter& out);
// The same from one object of rope parameters.
Status translate_rope_of(const HfConfig& config, const json::Value& parameters,
                         const RopeTranslation& how, MetadataWriter& out);
// head_dim, or hidden_size / num_attention_heads.
Result<int64_t> hf_head_dim(const HfConfig& config);
// Writes attention.sliding_window and, per layer, whether it applies (from layer_types or
// `sliding`).
Status translate_layer_types(const HfConfig& config, std::span<const uint8_t> otherwise,
                             MetadataWriter& out);
// Its two halves: for each layer whether it is sliding, and the metadata of that.
Result<std::vector<uint8_t>> sliding_layers(const HfConfig& config,
                                            std::span<const uint8_t> otherwise);
Status write_windows(const HfConfig& config, std::vector<uint8_t> sliding, MetadataWriter& out);
// Writes what the activation is; a name that is not known is refused. Absent = the family's own.
Status translate_activation(const HfConfig& config, std::string_view key, MetadataWriter& out);
// The key must be absent or have this value: another one asks for what is not computed.
Status expect_string(const HfConfig& config, std::string_view key, std::string_view value);
Status expect_flag(const HfConfig& config, std::string_view key, bool value);

}  // namespace optima::model
