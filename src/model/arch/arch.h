// One architecture = one file in this folder and one row in registry.cc (docs/ADD_A_MODEL.md).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "model/config.h"
#include "model/gguf.h"
#include "model/weights.h"

namespace optima::model {

struct Architecture {
  const char* name;  // general.architecture
  Result<ModelConfig> (*configure)(const Gguf& file);
  Result<graph::Graph> (*build)(const ModelConfig& config, Weights& weights);
};

// Null for an architecture that is not known.
const Architecture* find_architecture(std::string_view name);
// "gemma3, llama", for messages.
std::string architecture_names();

// A model ready to be lowered. The file must outlive it: the graph points into its tensors.
struct Decoder {
  ModelConfig config;
  graph::Graph graph;
  std::vector<std::unique_ptr<float[]>> copies;
};

// Configures and builds the file's architecture; errors name the file.
Result<Decoder> build_decoder(const Gguf& file);

// Shared by the architecture files.
graph::RopeTable rope_table(const RopeConfig& rope);

extern const Architecture kLlama;
extern const Architecture kGemma3;

}  // namespace optima::model
