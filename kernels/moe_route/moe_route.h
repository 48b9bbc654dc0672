// Which experts of a mixture a token goes to, and with what weights.
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

namespace optima::kernels {

// How logits become scores. The experts with the largest scores are chosen.
enum class MoeScoring : int32_t {
  softmax_then_top = 0,  // softmax over all experts (Qwen3-MoE, OLMoE)
  top_then_softmax = 1,  // the logits choose, softmax over the chosen (gpt-oss, Mixtral)
  sigmoid_then_top = 2,  // σ(logit) (Llama 4, DeepSeek-V3)
};

enum class MoeWeights : int32_t {
  as_is = 0,
  normalised = 1,  // divided by their sum; a sum of 0 leaves zeros
};

struct MoeRouteArgs {
  const float* logits;  // [rows, experts], row stride logits_stride floats
  int64_t logits_stride;
  int64_t experts;  // at least 1, and an int32
  int64_t used;     // experts chosen a row: 1 <= used <= experts
  MoeScoring scoring;
  MoeWeights weights;
  float scale;                  // multiplies the weights in the end
  const float* selection_bias;  // [experts], null = none: added to the scores for choosing only
  int32_t* out_ids;             // [rows, used]
  float* out_weights;           // [rows, used]
};

// Chosen experts come in falling order of score (plus bias); of equal ones the lower index comes
// first. NaN counts as the largest, as in torch.topk, so that it shows in the result; ids are
// distinct and within [0, experts) whatever the logits are.
using MoeRouteFn = void (*)(const MoeRouteArgs& args, int64_t row_begin, int64_t row_end);
Variants<MoeRouteFn> moe_route_variants();
extern const MoeRouteFn kMoeRouteReference;

}  // namespace optima::kernels
