// config.json -> metadata, for what most architectures share; see hf_form.h. The rules for each
// scaling type are those of transformers' modeling_rope_utils.
#include "model/hf/hf_form.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace optima::model {
namespace {

struct Rename {
  std::string_view hf;
  std::string_view gguf;
};
constexpr Rename kNeeded[] = {{"hidden_size", "embedding_length"},
                              {"num_hidden_layers", "block_count"},
                              {"num_attention_heads", "attention.head_count"},
                              {"vocab_size", "vocab_size"},
                              {"max_position_embeddings", "context_length"}};

// What each name stands for, in the words of HyperParameters::read_activation.
constexpr Rename kActivations[] = {
    {"silu", "silu"},          {"swish", "silu"},          {"gelu", "gelu_erf"},
    {"gelu_new", "gelu_tanh"}, {"gelu_fast", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
    {"relu", "relu"}};

Status unknown(std::string_view key, std::string_view value) {
  return Status(Code::unsupported, text("config.json: ", in_quotes(key), " is ", in_quotes(value),
                                        ", which is not supported"));
}

// YaRN's attention factor (Peng et al. 2023, arXiv:2309.00071, equation 22) for a given multiplier.
double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1.0 ? 1.0 : 0.1 * multiplier * std::log(factor) + 1.0;
}

Result<double> yarn_attention(const HfConfig& rope, double factor) {
  OPTIMA_ASSIGN(const auto given, rope.real("attention_factor"));
  OPTIMA_ASSIGN(const auto mscale, rope.real("mscale"));
  OPTIMA_ASSIGN(const auto mscale_all, rope.real("mscale_all_dim"));
  if (given) return *given;
  if (mscale && mscale_all && *mscale != 0 && *mscale_all != 0)
    return yarn_magnitude(factor, *mscale) / yarn_magnitude(factor, *mscale_all);
  return yarn_magnitude(factor, 1.0);
}

// Context sizes before and after scaling, from wherever the folder tells them.
struct Contexts {
  double original = 0;
  double now = 0;
  double factor = 0;  // as given; 0 = not given
};

Result<Contexts> contexts(const HfConfig& config, const HfConfig& rope) {
  Contexts out;
  OPTIMA_ASSIGN(out.now, config.need_real("max_position_embeddings"));
  OPTIMA_ASSIGN(const auto outer, config.real("original_max_position_embeddings"));
  OPTIMA_ASSIGN(const auto inner, rope.real("original_max_position_embeddings"));
  out.original = outer ? *outer : inner.value_or(out.now);
  OPTIMA_ASSIGN(const auto factor, rope.real("factor"));
  out.factor = factor.value_or(0);
  if (!(out.original >= 1) || !(out.now >= 1) || !(out.factor >= 0))
    return Status(Code::format, "config.json: a context length or rope factor is not positive");
  return out;
}

Status write_yarn(const HfConfig& rope, const Contexts& sizes, MetadataWriter& out) {
  const double factor = sizes.factor > 0 ? sizes.factor : sizes.now / sizes.original;
  OPTIMA_TRY(out.real("rope.scaling.factor", factor));
  OPTIMA_TRY(out.real("rope.scaling.original_context_length", sizes.original));
  OPTIMA_ASSIGN(const double magnitude, yarn_attention(rope, factor));
  OPTIMA_TRY(out.real("rope.scaling.magnitude", magnitude));
  OPTIMA_ASSIGN(const auto fast, rope.real("beta_fast"));
  OPTIMA_TRY(out.real("rope.scaling.yarn_beta_fast", fast.value_or(32)));
  OPTIMA_ASSIGN(const auto slow, rope.real("beta_slow"));
  OPTIMA_TRY(out.real("rope.scaling.yarn_beta_slow", slow.value_or(1)));
  OPTIMA_ASSIGN(const auto truncate, rope.boolean("truncate"));
  return out.flag("rope.scaling.yarn_truncate", truncate.value_or(true));
}

Status write_llama3(const HfConfig& rope, const Contexts& sizes, MetadataWriter& out) {
  OPTIMA_ASSIGN(const double factor, rope.need_real("factor"));
  OPTIMA_TRY(out.real("rope.scaling.factor", factor));
  OPTIMA_ASSIGN(const double low, rope.need_real("low_freq_factor"));
  OPTIMA_TRY(out.real("rope.scaling.low_freq_factor", low));
  OPTIMA_ASSIGN(const double high, rope.need_real("high_freq_factor"));
  OPTIMA_TRY(out.real("rope.scaling.high_freq_factor", high));
  return out.real("rope.scaling.original_context_length", sizes.original);
}

// Ding et al. 2024, LongRoPE, arXiv:2402.13753.
Status write_longrope(const HfConfig& rope, const Contexts& sizes, MetadataWriter& out) {
  const double factor = sizes.factor > 0 ? sizes.factor : sizes.now / sizes.original;
  OPTIMA_ASSIGN(const auto given, rope.real("attention_factor"));
  const double computed =
      factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(sizes.original));
  OPTIMA_TRY(out.real("rope.scaling.attn_factor", given.value_or(computed)));
  OPTIMA_TRY(out.real("rope.scaling.original_context_length", sizes.original));
  for (const std::string_view name : {"short_factor", "long_factor"}) {
    OPTIMA_ASSIGN(auto factors, rope.reals(name));
    if (!factors)
      return Status(Code::format, text("config.json: ", in_quotes(name), " is missing"));
    OPTIMA_TRY(out.reals(
        name == "short_factor" ? "rope.scaling.short_factors" : "rope.scaling.long_factors",
        std::move(*factors)));
  }
  return {};
}

Result<std::string> scaling_type(const HfConfig& rope) {
  OPTIMA_ASSIGN(auto type, rope.string("rope_type"));
  OPTIMA_ASSIGN(const auto old_type, rope.string("type"));
  return type ? *type : old_type.value_or("default");
}

// Pairs are over the whole head; the first part of them turns.
Status write_proportional(const HfConfig& rope, double turning_dims, MetadataWriter& out) {
  OPTIMA_TRY(out.string("rope.scaling.type", "proportional"));
  OPTIMA_TRY(out.integer("rope.scaling.turning_pairs", static_cast<int64_t>(turning_dims / 2)));
  OPTIMA_ASSIGN(const auto factor, rope.real("factor"));
  return out.real("rope.scaling.factor", factor.value_or(1));
}

Status write_scaling(const HfConfig& config, const HfConfig& rope, const std::string& name,
                     MetadataWriter& out) {
  if (name == "default" || name == "none") return {};
  OPTIMA_ASSIGN(const Contexts sizes, contexts(config, rope));
  OPTIMA_TRY(out.string("rope.scaling.type", name == "su" ? "longrope" : name));
  if (name == "yarn") return write_yarn(rope, sizes, out);
  if (name == "llama3") return write_llama3(rope, sizes, out);
  if (name == "longrope" || name == "su") return write_longrope(rope, sizes, out);
  if (name != "linear" && name != "dynamic") return unknown("rope_type", name);
  OPTIMA_ASSIGN(const double factor, rope.need_real("factor"));
  OPTIMA_TRY(out.real("rope.scaling.original_context_length", sizes.original));
  return out.real("rope.scaling.factor", factor);
}

}  // namespace

Result<int64_t> hf_head_dim(const HfConfig& config) {
  OPTIMA_ASSIGN(const auto given, config.integer("head_dim"));
  if (given) return *given;
  OPTIMA_ASSIGN(const int64_t hidden, config.need_integer("hidden_size"));
  OPTIMA_ASSIGN(const int64_t heads, config.need_integer("num_attention_heads"));
  if (heads < 1) return Status(Code::format, text("config.json: ", heads, " attention heads"));
  return hidden / heads;
}

Status translate_sizes(const HfConfig& config, MetadataWriter& out) {
  for (const Rename& row : kNeeded) {
    OPTIMA_ASSIGN(const int64_t value, config.need_integer(row.hf));
    OPTIMA_TRY(out.integer(row.gguf, value));
  }
  OPTIMA_ASSIGN(const auto epsilon, config.real("rms_norm_eps"));
  if (epsilon) OPTIMA_TRY(out.real("attention.layer_norm_rms_epsilon", *epsilon));
  return {};
}

Status translate_common(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_sizes(config, out));
  OPTIMA_ASSIGN(const int64_t ffn, config.need_integer("intermediate_size"));
  OPTIMA_TRY(out.integer("feed_forward_length", ffn));
  OPTIMA_ASSIGN(const auto kv_heads, config.integer("num_key_value_heads"));
  if (kv_heads) OPTIMA_TRY(out.integer("attention.head_count_kv", *kv_heads));
  OPTIMA_ASSIGN(const int64_t head_dim, hf_head_dim(config));
  OPTIMA_TRY(out.integer("attention.key_length", head_dim));
  return out.integer("attention.value_length", head_dim);
}

Status translate_rope(const HfConfig& config, const RopeTranslation& how, MetadataWriter& out) {
  const json::Value* parameters = config.find("rope_parameters");
  const json::Value* scaling = config.find("rope_scaling");
  const json::Value empty{json::Object{}};
  if (parameters != nullptr && scaling != nullptr)
    return Status(Code::unsupported,
                  "config.json: both 'rope_parameters' and 'rope_scaling' are given");
  return translate_rope_of(config,
                           parameters != nullptr ? *parameters
                           : scaling != nullptr  ? *scaling
                                                 : empty,
                           how, out);
}

Status translate_rope_of(const HfConfig& config, const json::Value& parameters,
                         const RopeTranslation& how, MetadataWriter& out) {
  const HfConfig rope(parameters);
  OPTIMA_ASSIGN(const auto outer, config.real("rope_theta"));
  OPTIMA_ASSIGN(const auto inner, rope.real("rope_theta"));
  OPTIMA_TRY(out.real("rope.freq_base", inner ? *inner : outer.value_or(how.base_default)));
  OPTIMA_ASSIGN(const auto outer_part, config.real("partial_rotary_factor"));
  OPTIMA_ASSIGN(const auto inner_part, rope.real("partial_rotary_factor"));
  const double part = inner_part ? *inner_part : outer_part.value_or(how.partial_default);
  if (!(part > 0) || part > 1)
    return Status(Code::format, text("config.json: 'partial_rotary_factor' is ", part,
                                     ", wanted more than 0 and at most 1"));
  const double rotated = static_cast<double>(how.head_dim) * part;
  OPTIMA_ASSIGN(const std::string type, scaling_type(rope));
  if (type == "proportional") {
    OPTIMA_TRY(out.integer("rope.dimension_count", how.head_dim));
    OPTIMA_TRY(write_proportional(rope, rotated, out));
  } else {
    OPTIMA_TRY(out.integer("rope.dimension_count", static_cast<int64_t>(rotated)));
    OPTIMA_TRY(write_scaling(config, rope, type, out));
  }
  return rope.all_read();
}

Status translate_layer_types(const HfConfig& config, std::span<const uint8_t> otherwise,
                             MetadataWriter& out) {
  OPTIMA_ASSIGN(std::vector<uint8_t> sliding, sliding_layers(config, otherwise));
  return write_windows(config, std::move(sliding), out);
}

Result<std::vector<uint8_t>> sliding_layers(const HfConfig& config,
                                            std::span<const uint8_t> otherwise) {
  OPTIMA_ASSIGN(const auto types, config.strings("layer_types"));
  std::vector<uint8_t> sliding(otherwise.begin(), otherwise.end());
  if (!types) return sliding;
  sliding.clear();
  for (const std::string& type : *types) {
    if (type != "sliding_attention" && type != "full_attention")
      return unknown("layer_types", type);
    sliding.push_back(type == "sliding_attention" ? 1 : 0);
  }
  return sliding;
}

Status write_windows(const HfConfig& config, std::vector<uint8_t> sliding, MetadataWriter& out) {
  OPTIMA_ASSIGN(const auto window, config.integer("sliding_window"));
  if (std::count(sliding.begin(), sliding.end(), 1) == 0) return {};
  if (!window) return Status(Code::format, "config.json: 'sliding_window' is missing");
  OPTIMA_TRY(out.integer("attention.sliding_window", *window));
  return out.flags("attention.sliding_window_pattern", std::move(sliding));
}

Status translate_activation(const HfConfig& config, std::string_view key, MetadataWriter& out) {
  OPTIMA_ASSIGN(const auto name, config.string(key));
  if (!name) return {};
  for (const Rename& row : kActivations)
    if (*name == row.hf) return out.string("activation", row.gguf);
  return unknown(key, *name);
}

Status expect_string(const HfConfig& config, std::string_view key, std::string_view value) {
  OPTIMA_ASSIGN(const auto given, config.string(key));
  if (!given || *given == value) return {};
  return unknown(key, *given);
}

Status expect_flag(const HfConfig& config, std::string_view key, bool value) {
  OPTIMA_ASSIGN(const auto given, config.boolean(key));
  if (!given || *given == value) return {};
  return unknown(key, *given ? "true" : "false");
}

}  // namespace optima::model
