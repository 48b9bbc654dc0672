// One architecture = one file in this folder and one row in registry.cc (docs/ADD_A_MODEL.md).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "model/config.h"
#include "model/hf/hf_form.h"
#include "model/model_file.h"
#include "model/weights.h"

namespace optima::model {

struct Architecture {
  const char* name;  // general.architecture
  Result<ModelConfig> (*configure)(const ModelFile& file);
  Result<graph::Graph> (*build)(const ModelConfig& config, Weights& weights);
  std::span<const HfForm> hf_forms;  // what it is called in Hugging Face folders
};

// Null for an architecture that is not known.
const Architecture* find_architecture(std::string_view name);
// "gemma3, llama", for messages.
std::string architecture_names();
// The form of a config.json's model_type; null when it is not known.
const HfForm* find_hf_form(std::string_view model_type);
std::string hf_model_types();

// A model as a graph. The file must outlive it: the graph points into its tensors.
struct Decoder {
  ModelConfig config;
  graph::Graph graph;
  std::vector<std::unique_ptr<float[]>> copies;
};

// Configures the file's architecture and describes it as it is written; errors name the file.
Result<Decoder> describe_decoder(const ModelFile& file);
// The same, rewritten by the passes, ready to be lowered.
Result<Decoder> build_decoder(const ModelFile& file);

// How queries and keys are paired for rotation: GGUF's converter permutes the rows of Llama's.
inline kernels::RopePairs llama_pairs(const ModelFile& file) {
  return file.format() == FileFormat::gguf ? kernels::RopePairs::adjacent
                                           : kernels::RopePairs::halves;
}

// The names of Llama's folders, which most others use too.
inline constexpr HfTensorName kLlamaNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias"},
    {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias"},
    {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},
    {"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"},
    {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"model.layers.{}.mlp.gate_proj.bias", "blk.{}.ffn_gate.bias"},
    {"model.layers.{}.mlp.up_proj.bias", "blk.{}.ffn_up.bias"},
    {"model.layers.{}.mlp.down_proj.bias", "blk.{}.ffn_down.bias"},
};

extern const Architecture kBert;
extern const Architecture kGemma2;
extern const Architecture kGemma3;
extern const Architecture kGemma4;
extern const Architecture kGpt2;
extern const Architecture kGptNeox;
extern const Architecture kGptOss;
extern const Architecture kLlama;
extern const Architecture kOlmo2;
extern const Architecture kPhi3;
extern const Architecture kQwen2;
extern const Architecture kQwen3;
extern const Architecture kQwen3Moe;
extern const Architecture kSmolLm3;

}  // namespace optima::model
