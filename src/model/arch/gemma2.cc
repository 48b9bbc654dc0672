// Gemma 2 (Gemma Team 2024, arXiv:2408.00118): every other layer windowed, norms before and after
// attention and feed-forward, soft caps on attention and output logits. Norm weights in GGUF files
// hold 1 + w.
#include "model/arch/gemma.h"
#include "model/rope.h"

namespace optima::model {
namespace {

constexpr int32_t kPattern = 2;  // every second layer sees all positions
constexpr size_t kLayersOf27B = 46;

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(add_rope(file, keys, {kernels::RopePairs::halves, config.head_dim}, config));
  OPTIMA_TRY(keys.read_windows(kPattern, config));
  OPTIMA_TRY(configure_gemma(keys, kLayersOf27B, config));
  return config;
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {gemma_block});
}

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_gemma(config, out));
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  std::vector<uint8_t> sliding;
  for (int64_t i = 0; i < layers; ++i) sliding.push_back((i + 1) % kPattern != 0 ? 1 : 0);
  OPTIMA_TRY(translate_layer_types(config, sliding, out));
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_rope(config, {.head_dim = head_dim}, out);
}

constexpr HfForm kForms[] = {{"gemma2", "gemma2", translate, kGemmaNames, kLlamaNames}};

}  // namespace

const Architecture kGemma2 = {"gemma2", configure, build, kForms};

}  // namespace optima::model
