// Rotary settings of a model -> frequencies.
#pragma once

#include "graph/graph.h"
#include "model/hyper_parameters.h"
#include "model/model_file.h"

namespace optima::model {

struct RopeSpec {
  kernels::RopePairs pairs = kernels::RopePairs::adjacent;
  int32_t head_dim = 0;  // rotated in full unless rope.dimension_count says less
  double base_default = 10000.0;
  // YaRN: whether the ramp's ends are whole dimensions, where the file does not say.
  bool truncate_default = true;
};

// Appends to config.ropes, from rope.freq_base, rope.dimension_count and rope.scaling.*, and the
// tensors rope_freqs.weight and rope_factors_{long,short}.weight. A scaling type that is not known
// is an error.
//   linear    positions divided by the factor                 Chen et al. 2023, arXiv:2306.15595
//   llama3    long wavelengths divided, short kept             Llama 3.1, rope_freqs.weight
//   yarn      a ramp between the two, logits scaled            Peng et al. 2023, arXiv:2309.00071
//   dynamic   base grown with the context beyond the original  "dynamic NTK"
//   proportional  the first pairs of the head turn, the others do not
//   longrope  two sets of factors, by context                  Ding et al. 2024, arXiv:2402.13753
// A dynamic scaling also raises config.context_length to what the factor allows.
Status add_rope(const ModelFile& file, const HyperParameters& keys, const RopeSpec& spec,
                ModelConfig& config);

// base^(-2i / rotary_dim), the plain table.
graph::RopeTable plain_rope(double base, int32_t rotary_dim, kernels::RopePairs pairs);

}  // namespace optima::model
