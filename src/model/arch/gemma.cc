// See gemma.h.
#include "model/arch/gemma.h"

#include <cmath>

#include "base/text.h"

namespace optima::model {
Status configure_gemma(const HyperParameters& keys, size_t layers_of_largest, ModelConfig& config) {
  OPTIMA_TRY(keys.read_activation("gelu_tanh", config));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  if (config.layers.size() == layers_of_largest)
    config.attention_scale =
        1.0f / std::sqrt(static_cast<float>(config.hidden) / static_cast<float>(config.heads));
  OPTIMA_ASSIGN(const double scale,
                keys.real_or("attention.scale", static_cast<double>(config.attention_scale)));
  config.attention_scale = static_cast<float>(scale);
  OPTIMA_ASSIGN(const double attention_cap, keys.real_or("attn_logit_softcapping", 0));
  OPTIMA_ASSIGN(const double logit_cap, keys.real_or("final_logit_softcapping", 0));
  config.attention_softcap = static_cast<float>(attention_cap);
  config.logit_softcap = static_cast<float>(logit_cap);
  return {};
}

Result<graph::ValueId> gemma_block(BlockBuilder& block, graph::ValueId x) {
  OPTIMA_ASSIGN(const graph::ValueId h, block.norm(x, "attn_norm"));
  OPTIMA_ASSIGN(const graph::ValueId a, block.attention(h, {}));
  OPTIMA_ASSIGN(const graph::ValueId a_norm, block.norm(a, "post_attention_norm"));
  const graph::ValueId mid = block.graph().add(x, a_norm);
  OPTIMA_ASSIGN(const graph::ValueId f, block.norm(mid, "ffn_norm"));
  OPTIMA_ASSIGN(const graph::ValueId d, block.feed_forward(f, {}));
  OPTIMA_ASSIGN(const graph::ValueId d_norm, block.norm(d, "post_ffw_norm"));
  return block.graph().add(mid, d_norm);
}

Status translate_gemma(const HfConfig& config, MetadataWriter& out) {
  OPTIMA_TRY(translate_common(config, out));
  OPTIMA_TRY(translate_activation(config, "hidden_activation", out));
  OPTIMA_ASSIGN(const auto activation, config.string("hidden_activation"));
  // Old files name "gelu" here and mean the tanh form, which the other key then says.
  if (activation) {
    config.find("hidden_act");
  } else {
    OPTIMA_TRY(translate_activation(config, "hidden_act", out));
  }
  OPTIMA_TRY(expect_flag(config, "attention_bias", false));
  OPTIMA_TRY(expect_flag(config, "use_bidirectional_attention", false));
  OPTIMA_ASSIGN(const auto scalar, config.real("query_pre_attn_scalar"));
  if (scalar) {
    if (!(*scalar > 0)) return Status(Code::format, "config.json: 'query_pre_attn_scalar' <= 0");
    OPTIMA_TRY(out.real("attention.scale", 1.0 / std::sqrt(*scalar)));
  }
  for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    OPTIMA_ASSIGN(const auto value, config.real(cap));
    if (value) OPTIMA_TRY(out.real(cap, *value));
  }
  return {};
}

Status translate_sliding_rope(const json::Value& parameters, MetadataWriter& out) {
  const HfConfig rope(parameters);
  OPTIMA_ASSIGN(const auto type, rope.string("rope_type"));
  if (type.value_or("default") != "default")
    return Status(Code::unsupported, text("config.json: rope_type ", in_quotes(*type),
                                          " of sliding layers is not supported"));
  OPTIMA_ASSIGN(const double base, rope.need_real("rope_theta"));
  OPTIMA_TRY(out.real("rope.freq_base_swa", base));
  return rope.all_read();
}

}  // namespace optima::model
