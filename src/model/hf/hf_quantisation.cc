// Reads quantization_config; see hf_quantisation.h. Keys are those of compressed-tensors'
// QuantizationConfig and transformers' FineGrainedFP8Config and FbgemmFp8Config.
#include "model/hf/hf_quantisation.h"

#include <algorithm>

#include "base/text.h"

namespace optima::model {
namespace {

constexpr int64_t kBlockMax = 1 << 20;

Status unsupported(std::string_view key, std::string_view value, std::string_view supported) {
  return Status(Code::unsupported, text("config.json: quantization_config: ", in_quotes(key),
                                        " is ", in_quotes(value), "; supported: ", supported));
}

// A key whose value changes nothing here.
void pass_over(const HfConfig& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) config.find(key);
}

Status expect(const HfConfig& config, std::string_view key, std::string_view value) {
  OPTIMA_ASSIGN(const auto given, config.string(key));
  return !given || *given == value ? Status() : unsupported(key, *given, value);
}

// Null, {} or [] ask for nothing.
Status expect_nothing(const HfConfig& config, std::string_view key) {
  const json::Value* value = config.find(key);
  if (value == nullptr || (value->object() != nullptr && value->object()->empty()) ||
      (value->array() != nullptr && value->array()->empty()))
    return {};
  return Status(Code::unsupported, text("config.json: quantization_config: ", in_quotes(key),
                                        " is given and not supported"));
}

Status add_block(int64_t rows, int64_t columns, HfQuantisation& out) {
  if (rows < 1 || rows > kBlockMax || columns < 1 || columns > kBlockMax)
    return Status(Code::format,
                  text("config.json: quantization_config: a block of ", rows, " x ", columns,
                       " weights, allowed are 1 to ", kBlockMax, " each"),
                  {std::max(rows, columns), -1, kBlockMax});
  if (out.block_rows != 0 && (out.block_rows != rows || out.block_columns != columns))
    return Status(Code::unsupported,
                  text("config.json: quantization_config: blocks of ", rows, " x ", columns,
                       " and of ", out.block_rows, " x ", out.block_columns, " in one model"));
  out.block_rows = rows;
  out.block_columns = columns;
  return {};
}

// Two whole numbers, rows and columns; absent = none.
Status read_block(const HfConfig& config, std::string_view key, HfQuantisation& out) {
  const json::Value* value = config.find(key);
  if (value == nullptr) return {};
  const json::Array* sizes = value->array();
  if (sizes == nullptr || sizes->size() != 2 || (*sizes)[0].integer() == nullptr ||
      (*sizes)[1].integer() == nullptr)
    return Status(Code::format, text("config.json: quantization_config: ", in_quotes(key),
                                     " is no pair of whole numbers"));
  return add_block(*(*sizes)[0].integer(), *(*sizes)[1].integer(), out);
}

// ---- compressed-tensors ----

// How many weights are zero is of no interest where they are stored like the others.
Status check_sparsity(const HfConfig& config) {
  const json::Value* value = config.find("sparsity_config");
  if (value == nullptr || (value->object() != nullptr && value->object()->empty())) return {};
  return expect(HfConfig(*value), "format", "dense");
}

Status check_format(const HfConfig& config, bool& packed) {
  constexpr std::string_view kFormats =
      "float-quantized, int-quantized, naive-quantized, pack-quantized";
  OPTIMA_ASSIGN(const auto format, config.string("format"));
  if (!format || *format == "mixed-precision") return {};  // each group says its own
  if (*format == "pack-quantized") packed = true;
  if (*format == "float-quantized" || *format == "int-quantized" || *format == "naive-quantized" ||
      *format == "pack-quantized")
    return {};
  return unsupported("format", *format, kFormats);
}

Status check_bits(const HfConfig& weights, bool packed, HfQuantisation& out) {
  OPTIMA_ASSIGN(const int64_t bits, weights.need_integer("num_bits"));
  OPTIMA_ASSIGN(const auto type, weights.string("type"));
  if (type && *type != "int" && *type != "float")
    return unsupported("type", *type, "int and float");
  if (bits != 8 && !(packed && bits == 4))
    return Status(Code::unsupported,
                  text("config.json: quantization_config: weights of ", bits, " bits; supported: 8",
                       packed ? " and 4" : ""),
                  {bits, -1, 8});
  if (!packed) return {};
  if (out.packed_bits != 0 && out.packed_bits != bits)
    return Status(Code::unsupported, text("config.json: quantization_config: packed codes of ",
                                          bits, " and of ", out.packed_bits, " bits in one model"));
  out.packed_bits = static_cast<int>(bits);
  return {};
}

Status read_weights(const HfConfig& weights, bool packed, HfQuantisation& out) {
  OPTIMA_TRY(check_bits(weights, packed, out));
  OPTIMA_ASSIGN(const auto symmetric, weights.boolean("symmetric"));
  if (!symmetric.value_or(true))
    return unsupported("symmetric", "false", "weights without zero points");
  OPTIMA_ASSIGN(const auto dynamic, weights.boolean("dynamic"));
  if (dynamic.value_or(false)) return unsupported("dynamic", "true", "scales in the folder");
  const json::Value* order = weights.find("actorder");
  if (order != nullptr && order->string() != nullptr && *order->string() != "weight" &&
      *order->string() != "static")
    return unsupported("actorder", *order->string(), "weight");
  OPTIMA_ASSIGN(const auto strategy, weights.string("strategy"));
  OPTIMA_ASSIGN(const auto group, weights.integer("group_size"));
  const std::string how = strategy.value_or(group.value_or(0) > 0 ? "group" : "tensor");
  if (how == "block") {
    OPTIMA_TRY(read_block(weights, "block_structure", out));
  } else if (how == "group") {
    OPTIMA_TRY(add_block(1, group.value_or(0), out));
  } else if (how != "tensor" && how != "channel") {
    return unsupported("strategy", how, "tensor, channel, block, group");
  }
  // How the scales were found, and the types they were found in: the tensors have their own.
  pass_over(weights, {"block_structure", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"});
  return weights.all_read();
}

Status read_group(const HfConfig& group, bool packed, HfQuantisation& out) {
  pass_over(group, {"targets", "input_activations", "output_activations"});
  OPTIMA_TRY(check_format(group, packed));
  const json::Value* weights = group.find("weights");
  if (weights != nullptr) OPTIMA_TRY(read_weights(HfConfig(*weights), packed, out));
  return group.all_read();
}

Status read_compressed_tensors(const HfConfig& config, HfQuantisation& out) {
  bool packed = false;
  OPTIMA_TRY(check_format(config, packed));
  OPTIMA_TRY(check_sparsity(config));
  for (const char* key : {"transform_config", "moe_sparsity_config"})
    OPTIMA_TRY(expect_nothing(config, key));
  // Layers that are left out have plain tensors, and so has a model that is not compressed yet.
  pass_over(config, {"ignore", "kv_cache_scheme", "global_compression_ratio", "version",
                     "quantization_status"});
  const json::Value* groups = config.find("config_groups");
  if (groups == nullptr || groups->object() == nullptr)
    return Status(Code::format,
                  "config.json: quantization_config: 'config_groups' is no object of groups");
  for (const json::Member& group : *groups->object())
    OPTIMA_TRY(read_group(HfConfig(group.value), packed, out));
  return {};
}

// ---- fp8 ----

Status read_fp8(const HfConfig& config, HfQuantisation& out) {
  OPTIMA_TRY(expect(config, "fmt", "e4m3"));
  OPTIMA_TRY(expect(config, "scale_fmt", "float"));
  OPTIMA_TRY(expect(config, "expert_dtype", "fp8"));
  pass_over(config, {"activation_scheme", "modules_to_not_convert", "ignored_layers",
                     "modules_to_convert", "kv_cache_scheme", "dequantize"});
  return read_block(config, "weight_block_size", out);
}

}  // namespace

Result<HfQuantisation> read_hf_quantisation(const HfConfig& config) {
  HfQuantisation out;
  const json::Value* value = config.find("quantization_config");
  if (value == nullptr) return out;
  const HfConfig quantisation(*value);
  OPTIMA_ASSIGN(const auto method, quantisation.string("quant_method"));
  if (!method)
    return Status(Code::format, "config.json: quantization_config: 'quant_method' is missing");
  if (*method == "compressed-tensors") {
    OPTIMA_TRY(read_compressed_tensors(quantisation, out));
  } else if (*method == "fp8") {
    OPTIMA_TRY(read_fp8(quantisation, out));
  } else if (*method == "fbgemm_fp8") {
    pass_over(quantisation, {"activation_scale_ub", "modules_to_not_convert"});
  } else if (*method == "mxfp4") {
    pass_over(quantisation, {"modules_to_not_convert", "dequantize"});
    OPTIMA_TRY(quantisation.all_read());
    return out;
  } else {
    return unsupported("quant_method", *method, "compressed-tensors, fp8, fbgemm_fp8, mxfp4");
  }
  out.coded = true;
  OPTIMA_TRY(quantisation.all_read());
  return out;
}

}  // namespace optima::model
