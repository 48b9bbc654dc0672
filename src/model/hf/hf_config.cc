// Typed reads of config.json and writes of metadata; see hf_config.h.
#include "model/hf/hf_config.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace optima::model {
namespace {

// Training, bookkeeping and the interface of another program: nothing of what is computed.
constexpr std::array<std::string_view, 57> kWithoutEffect = {"_name_or_path",
                                                             "add_cross_attention",
                                                             "architectures",
                                                             "attention_dropout",
                                                             "attn_pdrop",
                                                             "auto_map",
                                                             "bos_token_id",
                                                             "cache_implementation",
                                                             "chunk_size_feed_forward",
                                                             "classifier_dropout",
                                                             "cross_attention_hidden_size",
                                                             "dtype",
                                                             "embd_pdrop",
                                                             "eos_token_id",
                                                             "finetuning_task",
                                                             "gradient_checkpointing",
                                                             "hidden_dropout",
                                                             "id2label",
                                                             "initializer_factor",
                                                             "initializer_range",
                                                             "is_decoder",
                                                             "is_encoder_decoder",
                                                             "label2id",
                                                             "language",
                                                             "model_type",
                                                             "num_nextn_predict_layers",
                                                             "output_attentions",
                                                             "output_hidden_states",
                                                             "output_router_logits",
                                                             "pad_token_id",
                                                             "pretraining_tp",
                                                             "problem_type",
                                                             "prune_heads",
                                                             "reorder_and_upcast_attn",
                                                             "resid_pdrop",
                                                             "residual_dropout",
                                                             "return_dict",
                                                             "router_aux_loss_coef",
                                                             "router_jitter_noise",
                                                             "sep_token_id",
                                                             "summary_activation",
                                                             "summary_first_dropout",
                                                             "summary_proj_to_labels",
                                                             "summary_type",
                                                             "summary_use_proj",
                                                             "task_specific_params",
                                                             "tf_legacy_loss",
                                                             "tie_encoder_decoder",
                                                             "tokenizer_class",
                                                             "torch_dtype",
                                                             "torchscript",
                                                             "transformers_version",
                                                             "unk_token_id",
                                                             "use_bfloat16",
                                                             "use_cache",
                                                             "attn_implementation",
                                                             "_attn_implementation_autoset"};

// How answers were made, in files from before generation_config.json.
constexpr std::array<std::string_view, 29> kOfGeneration = {"bad_words_ids",
                                                            "begin_suppress_tokens",
                                                            "decoder_start_token_id",
                                                            "diversity_penalty",
                                                            "do_sample",
                                                            "early_stopping",
                                                            "encoder_no_repeat_ngram_size",
                                                            "exponential_decay_length_penalty",
                                                            "forced_bos_token_id",
                                                            "forced_eos_token_id",
                                                            "is_composition",
                                                            "length_penalty",
                                                            "max_length",
                                                            "min_length",
                                                            "no_repeat_ngram_size",
                                                            "num_beam_groups",
                                                            "num_beams",
                                                            "num_return_sequences",
                                                            "output_scores",
                                                            "prefix",
                                                            "pruned_heads",
                                                            "remove_invalid_values",
                                                            "repetition_penalty",
                                                            "return_dict_in_generate",
                                                            "suppress_tokens",
                                                            "temperature",
                                                            "top_k",
                                                            "top_p",
                                                            "typical_p"};

bool is_without_effect(std::string_view key) {
  return std::find(kWithoutEffect.begin(), kWithoutEffect.end(), key) != kWithoutEffect.end() ||
         std::find(kOfGeneration.begin(), kOfGeneration.end(), key) != kOfGeneration.end();
}

Status wrong_type(std::string_view key, const char* wanted) {
  return Status(Code::format, text("config.json: ", in_quotes(key), " is no ", wanted));
}

Status missing(std::string_view key) {
  return Status(Code::format, text("config.json: ", in_quotes(key), " is missing"));
}

std::optional<double> number(const json::Value& value) {
  if (const int64_t* whole = value.integer()) return static_cast<double>(*whole);
  if (const double* real = value.real()) return *real;
  return std::nullopt;
}

}  // namespace

const json::Value* HfConfig::find(std::string_view key) const {
  read_.emplace(key);
  const json::Value* value = config_.find(key);
  if (value == nullptr && defaults_ != nullptr) value = defaults_->find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Result<std::optional<int64_t>> HfConfig::integer(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  // Far above any size, and products with small numbers stay within 64 bits.
  constexpr int64_t kMagnitudeMax = int64_t{1} << 53;
  if (value->integer() == nullptr || *value->integer() > kMagnitudeMax ||
      *value->integer() < -kMagnitudeMax)
    return wrong_type(key, "whole number of at most 2^53");
  return std::optional<int64_t>(*value->integer());
}

Result<std::optional<double>> HfConfig::real(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::optional<double>();
  const std::optional<double> found = number(*value);
  if (!found) return wrong_type(key, "number");
  return found;
}

Result<std::optional<bool>> HfConfig::boolean(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (value->boolean() == nullptr) return wrong_type(key, "truth value");
  return std::optional<bool>(*value->boolean());
}

Result<std::optional<std::string>> HfConfig::string(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (value->string() == nullptr) return wrong_type(key, "string");
  return std::optional<std::string>(*value->string());
}

Result<std::optional<std::vector<double>>> HfConfig::reals(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::optional<std::vector<double>>();
  if (value->array() == nullptr) return wrong_type(key, "list of numbers");
  std::vector<double> out;
  for (const json::Value& item : *value->array()) {
    const std::optional<double> found = number(item);
    if (!found) return wrong_type(key, "list of numbers");
    out.push_back(*found);
  }
  return std::optional(std::move(out));
}

Result<std::optional<std::vector<std::string>>> HfConfig::strings(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::optional<std::vector<std::string>>();
  if (value->array() == nullptr) return wrong_type(key, "list of strings");
  std::vector<std::string> out;
  for (const json::Value& item : *value->array()) {
    if (item.string() == nullptr) return wrong_type(key, "list of strings");
    out.push_back(*item.string());
  }
  return std::optional(std::move(out));
}

Result<int64_t> HfConfig::need_integer(std::string_view key) const {
  OPTIMA_ASSIGN(const std::optional<int64_t> value, integer(key));
  if (!value) return missing(key);
  return *value;
}

Result<double> HfConfig::need_real(std::string_view key) const {
  OPTIMA_ASSIGN(const std::optional<double> value, real(key));
  if (!value) return missing(key);
  return *value;
}

Status HfConfig::all_read() const {
  if (config_.object() == nullptr)
    return Status(Code::format, "config.json: where an object of options should be is none");
  for (const json::Member& member : *config_.object()) {
    if (member.value.is_null() || read_.find(member.key) != read_.end()) continue;
    if (is_without_effect(member.key)) continue;
    return Status(Code::unsupported, text("config.json: ", in_quotes(member.key),
                                          " is not known for this architecture"));
  }
  return {};
}

Status MetadataWriter::string(std::string_view key, std::string_view value) {
  parts_.strings.emplace_back(value);
  return add(key, {std::string_view(parts_.strings.back())});
}

Status MetadataWriter::add(std::string_view key, MetadataValue value) {
  parts_.strings.push_back(prefix_ + std::string(key));
  return parts_.metadata.insert(parts_.strings.back(), std::move(value));
}

}  // namespace optima::model
