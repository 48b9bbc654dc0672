// The table of weight types.

#include "kernels/quant/weight_type.h"

namespace optima::kernels {
namespace {

constexpr WeightTypeInfo kTypes[] = {
    {WeightType::f32, "F32", 1, 4},           {WeightType::f16, "F16", 1, 2},
    {WeightType::bf16, "BF16", 1, 2},         {WeightType::q4_0, "Q4_0", 32, 18},
    {WeightType::q4_1, "Q4_1", 32, 20},       {WeightType::q5_0, "Q5_0", 32, 22},
    {WeightType::q5_1, "Q5_1", 32, 24},       {WeightType::q8_0, "Q8_0", 32, 34},
    {WeightType::q2_k, "Q2_K", 256, 84},      {WeightType::q3_k, "Q3_K", 256, 110},
    {WeightType::q4_k, "Q4_K", 256, 144},     {WeightType::q5_k, "Q5_K", 256, 176},
    {WeightType::q6_k, "Q6_K", 256, 210},     {WeightType::iq4_nl, "IQ4_NL", 32, 18},
    {WeightType::iq4_xs, "IQ4_XS", 256, 136}, {WeightType::mxfp4, "MXFP4", 32, 17},
};

}  // namespace

const WeightTypeInfo* find_weight_type(int32_t type_id) {
  for (const WeightTypeInfo& info : kTypes) {
    if (static_cast<int32_t>(info.type) == type_id) return &info;
  }
  return nullptr;
}

}  // namespace optima::kernels
