// Text parts of folders that hold more; see hf_composite.h. Tensors have two spellings: that of
// transformers' classes ("model.language_model.layers...") and an older one, which files keep
// ("language_model.model.layers...").
#include "model/hf/hf_composite.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace optima::model {
namespace {

constexpr HfComposite kComposites[] = {
    {"gemma3", "gemma3_text"},
    {"gemma4", "gemma4_text"},
    {"llava", "llama"},
    {"mistral3", "mistral"},
};

struct Defaults {
  std::string_view text_type;
  std::string_view json;
};
constexpr Defaults kDefaults[] = {
    {"gemma3_text",
     R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,)"
     R"("num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,)"
     R"("head_dim": 256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,)"
     R"("query_pre_attn_scalar": 256, "sliding_window": 4096})"},
    {"gemma4_text",
     R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,)"
     R"("num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4,)"
     R"("head_dim": 256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,)"
     R"("sliding_window": 512})"},
    {"llama",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,)"
     R"("num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 2048,)"
     R"("rms_norm_eps": 1e-6})"},
    {"mistral",
     R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,)"
     R"("num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,)"
     R"("max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "sliding_window": 4096})"},
};

// Keys beside text_config.
constexpr std::array<std::string_view, 24> kLeftOutKeys = {
    "text_config",          "vision_config",
    "audio_config",         "image_token_index",
    "image_token_id",       "video_token_id",
    "audio_token_id",       "boi_token_index",
    "eoi_token_index",      "boi_token_id",
    "eoi_token_id",         "boa_token_id",
    "eoa_token_id",         "eoa_token_index",
    "mm_tokens_per_image",  "vision_soft_tokens_per_image",
    "image_seq_length",     "ignore_index",
    "projector_hidden_act", "multimodal_projector_bias",
    "vision_feature_layer", "vision_feature_select_strategy",
    "spatial_merge_size",   "vocab_size"};

constexpr std::string_view kLeftOutParts[] = {"vision_tower.", "multi_modal_projector.",
                                              "embed_vision.", "audio_tower.", "embed_audio."};

struct Prefix {
  std::string_view from, to;
};
constexpr Prefix kPrefixes[] = {{"language_model.model.", "model."},
                                {"language_model.lm_head.", "lm_head."},
                                {"model.language_model.", "model."}};

bool is_left_out(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  return std::any_of(std::begin(kLeftOutParts), std::end(kLeftOutParts),
                     [name](std::string_view part) { return name.starts_with(part); });
}

}  // namespace

const HfComposite* find_hf_composite(std::string_view model_type) {
  for (const HfComposite& row : kComposites)
    if (row.model_type == model_type) return &row;
  return nullptr;
}

std::string hf_composite_types() {
  std::string out;
  for (const HfComposite& row : kComposites) out += text(out.empty() ? "" : ", ", row.model_type);
  return out;
}

std::string_view hf_text_defaults(std::string_view text_type) {
  for (const Defaults& row : kDefaults)
    if (row.text_type == text_type) return row.json;
  return "{}";
}

Status check_composite_keys(const HfConfig& root) {
  for (const std::string_view key : kLeftOutKeys) root.find(key);
  return root.all_read();
}

std::vector<SafeTensor> take_text_part(std::vector<SafeTensor> tensors, size_t& left_out) {
  const size_t all = tensors.size();
  std::erase_if(tensors, [](const SafeTensor& tensor) { return is_left_out(tensor.name); });
  left_out = all - tensors.size();
  for (SafeTensor& tensor : tensors)
    for (const Prefix& prefix : kPrefixes) {
      if (!tensor.name.starts_with(prefix.from)) continue;
      tensor.name.replace(0, prefix.from.size(), prefix.to);
      break;
    }
  return tensors;
}

}  // namespace optima::model
