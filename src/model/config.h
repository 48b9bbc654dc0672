// Hyper-parameters of a decoder model, the same for every architecture and file format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/moe_route/moe_route.h"

namespace optima::model {

enum class NormKind : uint8_t { rms, layer };

// What is normalised between the projection and the rotation of queries and keys.
enum class QkNorm : uint8_t { none, each_head, all_heads };

// Whether the feed-forward reads what attention has added to the residual, or what it read itself.
enum class Residual : uint8_t { serial, parallel };

inline constexpr int32_t kNoRope = -1;

enum class FeedForwardKind : uint8_t { dense, experts };

// What a layer's values are made of.
enum class Values : uint8_t {
  projection,       // attn_v
  keys_projection,  // attn_k, before what is done to keys: there has to be a norm of the values
};

// How the hidden rows of a text become its embedding; the numbers are GGUF's.
enum class Pooling : uint8_t {
  mean = 1,
  cls = 2,  // the first token's row
  last = 3,
};

// What may differ between the layers of a model. HyperParameters::common fills in all of it.
struct LayerConfig {
  int32_t window = 0;  // 0 = all positions
  int32_t rope = 0;    // index into ModelConfig::ropes, or kNoRope
  FeedForwardKind feed_forward = FeedForwardKind::dense;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t ffn = 0;
  // The layer whose keys and values this one reads: itself, or an earlier one that owns some and
  // has the same window, kv_heads and head_dim. A layer that shares stores none.
  int32_t kv_owner = 0;
  Values values = Values::projection;
  float attention_scale_factor = 1.0f;  // times ModelConfig::attention_scale
};

// Mixture of experts, of the layers that have one; experts 0 = none does.
struct MoeConfig {
  int32_t experts = 0;
  int32_t used = 0;  // by a token
  int32_t ffn = 0;   // of one expert
  kernels::MoeScoring scoring = kernels::MoeScoring::softmax_then_top;
  kernels::MoeWeights weights = kernels::MoeWeights::normalised;
  bool scaled = false;  // weights are multiplied by a factor of the expert's, ffn_down_exps.scale
};

struct ModelConfig {
  std::string architecture;  // GGUF's name: "llama", "gemma3"
  std::string name;          // general.name, may be empty
  int32_t vocabulary = 0;
  int32_t context_length = 0;
  int32_t hidden = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;         // where layers differ, the largest; as the next two
  int32_t head_dim = 0;         // of q, k and v
  int32_t ffn = 0;              // inner width of a dense feed-forward
  int32_t per_layer_input = 0;  // width of the input that each layer has for itself; 0 = none
  NormKind norm = NormKind::rms;
  float norm_epsilon = 1e-5f;
  QkNorm qk_norm = QkNorm::none;
  Residual residual = Residual::serial;
  float embedding_scale = 1.0f;
  kernels::AttentionMask mask = kernels::AttentionMask::causal;  // all: an encoder
  float attention_scale = 0.0f;                                  // applied to q·k
  float attention_softcap = 0.0f;                                // 0 = none
  float logit_softcap = 0.0f;                                    // 0 = none
  kernels::GateActParams gate{kernels::GateAct::silu, 0, 0};
  kernels::Act act = kernels::Act::silu;  // of feed-forwards without a gate
  MoeConfig moe;
  int32_t token_types = 0;  // of an encoder: rows of token_types; every token is of the first type
  Pooling pooling = Pooling::last;    // the model's own, or the usual one of its kind
  bool normalised_embedding = false;  // the model's embeddings have length 1
  std::vector<graph::RopeTable> ropes;
  std::vector<LayerConfig> layers;
};

}  // namespace optima::model
