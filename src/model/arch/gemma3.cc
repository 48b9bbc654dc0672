// Gemma 3, text (Gemma Team 2025, arXiv:2503.19786): five windowed layers to one global, each kind
// with its own rotary base; norms before and after attention and feed-forward; norms on q and k
// heads. Norm weights in GGUF files hold 1 + w.
#include "model/arch/gemma.h"
#include "model/rope.h"

namespace optima::model {
namespace {

constexpr int32_t kGlobalRope = 0;
constexpr int32_t kLocalRope = 1;
constexpr int32_t kDefaultPattern = 6;  // every sixth layer sees all positions
constexpr double kDefaultGlobalBase = 1e6;
constexpr double kDefaultLocalBase = 1e4;  // files written before the key existed
constexpr size_t kLayersOf27B = 62;

Result<ModelConfig> configure(const ModelFile& file) {
  const HyperParameters keys(file);
  OPTIMA_ASSIGN(ModelConfig config, keys.common());
  OPTIMA_TRY(add_rope(file, keys, {kernels::RopePairs::halves, config.head_dim, kDefaultGlobalBase},
                      config));
  OPTIMA_ASSIGN(const double local_base, keys.real_or("rope.freq_base_swa", kDefaultLocalBase));
  config.ropes.push_back(plain_rope(local_base, config.head_dim, kernels::RopePairs::halves));
  OPTIMA_TRY(keys.read_windows(kDefaultPattern, config));
  for (LayerConfig& layer : config.layers)
    layer.rope = layer.window == 0 ? kGlobalRope : kLocalRope;
  config.qk_norm = QkNorm::each_head;
  OPTIMA_TRY(configure_gemma(keys, kLayersOf27B, config));
  return config;
}

Result<graph::Graph> build(const ModelConfig& config, Weights& weights) {
  return build_graph(config, weights, {gemma_block});
}

// ---- Hugging Face folders ----

// rope_parameters by kind of layer: that of the full layers may be scaled.
Status translate_ropes(const HfConfig& config, const RopeTranslation& how, MetadataWriter& out) {
  const json::Value* parameters = config.find("rope_parameters");
  const json::Value* full = parameters != nullptr ? parameters->find("full_attention") : nullptr;
  const json::Value* sliding =
      parameters != nullptr ? parameters->find("sliding_attention") : nullptr;
  if (full == nullptr || sliding == nullptr) {
    OPTIMA_ASSIGN(const auto local, config.real("rope_local_base_freq"));
    OPTIMA_TRY(out.real("rope.freq_base_swa", local.value_or(kDefaultLocalBase)));
    return translate_rope(config, how, out);
  }
  OPTIMA_TRY(translate_sliding_rope(*sliding, out));
  return translate_rope_of(config, *full, how, out);
}

Status translate(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_gemma(config, out));
  OPTIMA_ASSIGN(const int64_t layers, config.need_integer("num_hidden_layers"));
  OPTIMA_ASSIGN(const auto new_pattern, config.integer("_sliding_window_pattern"));
  OPTIMA_ASSIGN(const auto old_pattern, config.integer("sliding_window_pattern"));
  const int64_t pattern = old_pattern ? *old_pattern : new_pattern.value_or(kDefaultPattern);
  if (pattern < 1) return Status(Code::format, "config.json: 'sliding_window_pattern' < 1");
  std::vector<uint8_t> sliding;
  for (int64_t i = 0; i < layers; ++i) sliding.push_back((i + 1) % pattern != 0 ? 1 : 0);
  OPTIMA_TRY(translate_layer_types(config, sliding, out));
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  return translate_ropes(config, {.head_dim = head_dim, .base_default = kDefaultGlobalBase}, out);
}

constexpr HfForm kForms[] = {{"gemma3_text", "gemma3", translate, kGemmaNames, kLlamaNames}};

}  // namespace

const Architecture kGemma3 = {"gemma3", configure, build, kForms};

}  // namespace optima::model
