// Hyper-parameters of a decoder model, the same for every architecture and file format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/rope/rope.h"

namespace optima::model {

// One rotary setting; layers refer to it by index.
struct RopeConfig {
  double base = 10000.0;
  double frequency_scale = 1.0;  // linear scaling: positions are divided by 1 / this
  int32_t rotary_dim = 0;
  kernels::RopePairs pairs = kernels::RopePairs::adjacent;
  std::vector<float> frequency_factors;  // llama3 scaling (rope_freqs.weight): divides frequencies
};

struct LayerConfig {
  int32_t window = 0;  // 0 = all positions
  int32_t rope = 0;    // index into ModelConfig::ropes
};

struct ModelConfig {
  std::string architecture;  // "llama", "gemma3"
  std::string name;          // general.name, may be empty
  int32_t vocabulary = 0;
  int32_t context_length = 0;
  int32_t hidden = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t ffn = 0;
  float rms_epsilon = 1e-5f;
  float embedding_scale = 1.0f;
  float attention_scale = 0.0f;  // applied to q·k
  std::vector<RopeConfig> ropes;
  std::vector<LayerConfig> layers;
};

}  // namespace optima::model
