// Hyper-parameters of a decoder model, the same for every architecture and file format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
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

struct LayerConfig {
  int32_t window = 0;  // 0 = all positions
  int32_t rope = 0;    // index into ModelConfig::ropes, or kNoRope
  FeedForwardKind feed_forward = FeedForwardKind::dense;
};

// Mixture of experts, of the layers that have one; experts 0 = none does.
struct MoeConfig {
  int32_t experts = 0;
  int32_t used = 0;  // by a token
  int32_t ffn = 0;   // of one expert
  kernels::MoeScoring scoring = kernels::MoeScoring::softmax_then_top;
  kernels::MoeWeights weights = kernels::MoeWeights::normalised;
};

struct ModelConfig {
  std::string architecture;  // GGUF's name: "llama", "gemma3"
  std::string name;          // general.name, may be empty
  int32_t vocabulary = 0;
  int32_t context_length = 0;
  int32_t hidden = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t ffn = 0;
  NormKind norm = NormKind::rms;
  float norm_epsilon = 1e-5f;
  QkNorm qk_norm = QkNorm::none;
  Residual residual = Residual::serial;
  float embedding_scale = 1.0f;
  float attention_scale = 0.0f;    // applied to q·k
  float attention_softcap = 0.0f;  // 0 = none
  float logit_softcap = 0.0f;      // 0 = none
  kernels::GateActParams gate{kernels::GateAct::silu, 0, 0};
  kernels::Act act = kernels::Act::silu;  // of feed-forwards without a gate
  MoeConfig moe;
  std::vector<graph::RopeTable> ropes;
  std::vector<LayerConfig> layers;
};

}  // namespace optima::model
