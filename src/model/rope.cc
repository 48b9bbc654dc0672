// Rotary scaling types; see rope.h. The formulas are those of the papers named there, in the form
// that the models' own reference code gives them.
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"

namespace optima::model {
namespace {

using Frequencies = std::vector<double>;
constexpr double kContextMax = 1 << 28;

struct Scaling {
  double factor = 1;
  double original = 0;  // context that the model was trained for, tokens
};

Result<Scaling> read_scaling(const HyperParameters& keys, double context) {
  Scaling out;
  OPTIMA_ASSIGN(out.factor, keys.real("rope.scaling.factor"));
  OPTIMA_ASSIGN(out.original, keys.real_or("rope.scaling.original_context_length", context));
  if (!(out.factor > 0) || !(out.original >= 1) || out.original > kContextMax)
    return Status(Code::format, text("rope.scaling.factor ", out.factor,
                                     ", original_context_length ", out.original));
  return out;
}

void divide_llama3(Frequencies& table, const Scaling& scaling, double low, double high) {
  for (double& frequency : table) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < scaling.original / high) continue;
    if (wavelength > scaling.original / low) {
      frequency /= scaling.factor;
      continue;
    }
    const double smooth = (scaling.original / wavelength - low) / (high - low);
    frequency = (1 - smooth) * frequency / scaling.factor + smooth * frequency;
  }
}

struct YarnRamp {
  double beta_fast, beta_slow, base;
  bool truncate;
};

// The dimension whose wavelength fits `rotations` times into the original context.
double correction_dim(double rotations, double dims, const Scaling& scaling, double base) {
  return dims * std::log(scaling.original / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(base));
}

void ramp_yarn(Frequencies& table, const Scaling& scaling, const YarnRamp& ramp) {
  const auto dims = static_cast<double>(2 * table.size());
  double low = correction_dim(ramp.beta_fast, dims, scaling, ramp.base);
  double high = correction_dim(ramp.beta_slow, dims, scaling, ramp.base);
  if (ramp.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < table.size(); ++i) {
    const double t = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    table[i] = table[i] / scaling.factor * t + table[i] * (1 - t);
  }
}

Status read_yarn(const HyperParameters& keys, const Scaling& scaling, YarnRamp ramp,
                 graph::RopeTable& table) {
  OPTIMA_ASSIGN(ramp.beta_fast, keys.real_or("rope.scaling.yarn_beta_fast", 32));
  OPTIMA_ASSIGN(ramp.beta_slow, keys.real_or("rope.scaling.yarn_beta_slow", 1));
  OPTIMA_ASSIGN(ramp.truncate, keys.flag_or("rope.scaling.yarn_truncate", ramp.truncate));
  if (!(ramp.beta_fast > 0) || !(ramp.beta_slow > 0) || !(ramp.base > 1))
    return Status(Code::format, text("rope.scaling: yarn with beta ", ramp.beta_fast, ", ",
                                     ramp.beta_slow, " and base ", ramp.base));
  ramp_yarn(table.inverse_frequency, scaling, ramp);
  // GGUF files give what multiplies the paper's own factor; folders give the result.
  OPTIMA_ASSIGN(const double attention, keys.real_or("rope.scaling.attn_factor", 1));
  const double paper = scaling.factor > 1 ? 1 + 0.1 * std::log(scaling.factor) : 1;
  OPTIMA_ASSIGN(table.magnitude, keys.real_or("rope.scaling.magnitude", attention * paper));
  return {};
}

// Divides by factors that lie in a tensor or in a metadata array; false = there are none.
Result<bool> divide_by(Frequencies& table, const ModelFile& file, std::string_view tensor_name,
                       const std::vector<double>* array) {
  std::vector<float> factors;
  if (const Tensor* tensor = file.find(tensor_name)) {
    if (tensor->type != kernels::WeightType::f32 || tensor->rank != 1 ||
        tensor->shape[0] != static_cast<int64_t>(table.size()))
      return Status(Code::format, text("tensor ", in_quotes(tensor_name), ": wanted ", table.size(),
                                       " F32 values"));
    factors.resize(table.size());
    kernels::dequant_row(tensor->type)(tensor->data, factors.data(), tensor->shape[0]);
  } else if (array != nullptr) {
    factors.assign(array->begin(), array->end());
  } else {
    return false;
  }
  if (factors.size() != table.size())
    return Status(Code::format, text(in_quotes(tensor_name), ": ", factors.size(),
                                     " rope factors, wanted ", table.size()));
  for (size_t i = 0; i < table.size(); ++i) {
    if (!(factors[i] > 0))
      return Status(Code::format, text(in_quotes(tensor_name), ": factor ", i, " is not positive"));
    table[i] /= static_cast<double>(factors[i]);
  }
  return true;
}

Status read_longrope(const ModelFile& file, const HyperParameters& keys, double context,
                     graph::RopeTable& table) {
  OPTIMA_ASSIGN(const double original,
                keys.real_or("rope.scaling.original_context_length", context));
  table.long_inverse_frequency = table.inverse_frequency;
  OPTIMA_ASSIGN(const auto* short_factors, keys.reals("rope.scaling.short_factors"));
  OPTIMA_ASSIGN(const auto* long_factors, keys.reals("rope.scaling.long_factors"));
  OPTIMA_ASSIGN(const bool has_short, divide_by(table.inverse_frequency, file,
                                                "rope_factors_short.weight", short_factors));
  OPTIMA_ASSIGN(const bool has_long, divide_by(table.long_inverse_frequency, file,
                                               "rope_factors_long.weight", long_factors));
  if (!has_short || !has_long || !(original > 1) || original > kContextMax)
    return Status(Code::format, "rope scaling longrope without its factors or original context");
  table.original_context = static_cast<int64_t>(original);
  const double ratio = context / original;
  const double paper = ratio > 1 ? std::sqrt(1 + std::log(ratio) / std::log(original)) : 1;
  OPTIMA_ASSIGN(table.magnitude, keys.real_or("rope.scaling.attn_factor", paper));
  return {};
}

}  // namespace

graph::RopeTable plain_rope(double base, int32_t rotary_dim, kernels::RopePairs pairs) {
  graph::RopeTable table;
  table.pairs = pairs;
  table.base = base;
  for (int32_t i = 0; i < rotary_dim / 2; ++i)
    table.inverse_frequency.push_back(std::pow(base, -2.0 * i / rotary_dim));
  return table;
}

namespace {

Result<graph::RopeTable> read_rope(const ModelFile& file, const HyperParameters& keys,
                                   const RopeSpec& spec) {
  OPTIMA_ASSIGN(const double base, keys.real_or("rope.freq_base", spec.base_default));
  OPTIMA_ASSIGN(const int32_t rotary_dim,
                keys.integer_or("rope.dimension_count", {2, spec.head_dim}, spec.head_dim));
  if (rotary_dim % 2 != 0)
    return Status(Code::format, text("rope.dimension_count ", rotary_dim, " is odd"));
  graph::RopeTable table = plain_rope(base, rotary_dim, spec.pairs);
  OPTIMA_ASSIGN(const double context, keys.real("context_length"));
  OPTIMA_ASSIGN(const std::string type, keys.string_or("rope.scaling.type", "none"));
  OPTIMA_ASSIGN([[maybe_unused]] const bool divided,
                divide_by(table.inverse_frequency, file, "rope_freqs.weight", nullptr));
  if (type == "none") return table;
  if (type == "longrope") {
    OPTIMA_TRY(read_longrope(file, keys, context, table));
    return table;
  }
  OPTIMA_ASSIGN(const Scaling scaling, read_scaling(keys, context));
  if (type == "linear") {
    for (double& frequency : table.inverse_frequency) frequency /= scaling.factor;
  } else if (type == "llama3") {
    OPTIMA_ASSIGN(const double low, keys.real("rope.scaling.low_freq_factor"));
    OPTIMA_ASSIGN(const double high, keys.real("rope.scaling.high_freq_factor"));
    if (!(low > 0) || !(high > low))
      return Status(Code::format, text("rope.scaling: frequency factors ", low, " and ", high));
    divide_llama3(table.inverse_frequency, scaling, low, high);
  } else if (type == "proportional") {
    const auto pairs = static_cast<int64_t>(table.inverse_frequency.size());
    OPTIMA_ASSIGN(const int32_t turning, keys.integer("rope.scaling.turning_pairs", {0, pairs}));
    for (double& frequency : table.inverse_frequency) frequency /= scaling.factor;
    std::fill(table.inverse_frequency.begin() + turning, table.inverse_frequency.end(), 0.0);
  } else if (type == "yarn") {
    OPTIMA_TRY(read_yarn(keys, scaling, {0, 0, base, spec.truncate_default}, table));
  } else if (type == "dynamic") {
    table.original_context = static_cast<int64_t>(scaling.original);
    table.stretch = scaling.factor;
  } else {
    return Status(Code::unsupported, text("rope scaling ", in_quotes(type),
                                          " is not supported; supported are none, "
                                          "linear, llama3, yarn, dynamic, proportional and "
                                          "longrope"));
  }
  return table;
}

}  // namespace

Status add_rope(const ModelFile& file, const HyperParameters& keys, const RopeSpec& spec,
                ModelConfig& config) {
  OPTIMA_ASSIGN(graph::RopeTable table, read_rope(file, keys, spec));
  if (table.stretch > 0) {
    const double longest = table.stretch * static_cast<double>(table.original_context);
    config.context_length =
        std::max(config.context_length, static_cast<int32_t>(std::min(longest, double{1 << 28})));
  }
  config.ropes.push_back(std::move(table));
  return {};
}

}  // namespace optima::model
