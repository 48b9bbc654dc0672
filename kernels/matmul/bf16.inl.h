// BF16 weights times many activation rows by an instruction that adds the two products of a pair
// of bfloat16 to a float: words.inl.h with words that are such pairs. Weights stay as they are,
// activations are rounded to bfloat16. Instruction is AVX-512 BF16's two, or their simulation.
//
// What that rounding costs: a relative RMS of 0.17 % of a product (matmul_test.cc checks it), of
// an element at most 1/256 however large its neighbours are, and beyond 3.39e38 it is infinite.
// Quantised weights meet activations in int8, 0.53 %, and 1.1 % where a block has an outlier of 20
// times the rest. Perplexity of SmolLM2 (all in fp32 but the inputs of its linear layers): 18.130;
// rounded to bfloat16 18.127, to int8 18.231. Activations as the sum of two bfloat16 would leave
// 2e-6 of a product, but take twice the work, which gains nothing over multiply-adds of floats:
//
//   multiply-adds a cycle and core       floats   pairs, rounded   pairs, in two parts
//   Zen 4  (16 lanes, 1 and 1 a cycle)     16           32                 16
//   Emerald Rapids (measured: 1.94, 0.46)  31           15                  7
//
// (Zen 4's ratio as https://github.com/iree-org/iree/pull/15089 measures it.) So this is for the
// CPUs of kIsaFastBf16 alone. F16 weights lose three bits as bfloat16 and stay with floats.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/matmul/words.inl.h"

namespace optima::kernels {
namespace {

template <typename Vector, typename Instruction>
struct Bf16Arithmetic {
  using V = Vector;
  using Word = typename V::Wide;
  static Word load(const uint8_t* p) { return V::wide_load(p); }
  static Word broadcast(const uint8_t* p) { return V::wide_broadcast(p); }
  static typename V::WideFloats add(const typename V::WideFloats& sum, const Word& w,
                                    const Word& a) {
    return Instruction::add(sum, w, a);
  }
};

template <typename V, typename Instruction>
struct Bf16Words {
  using Vector = V;
  using Arithmetic = Bf16Arithmetic<V, Instruction>;
  static constexpr int kValues = 2;
  static constexpr int kFileBytes = 4;
  static typename V::Bytes eight(const uint8_t* p) { return V::load(p); }
  static uint32_t one(const uint8_t* p, int64_t left) {
    return left == 1 ? load_u16(p) : load_u32(p);
  }
  // A last pair is filled up with zero, as that of the weights is.
  static void put_activations(const float* x, int64_t count, uint8_t* to) {
    constexpr int64_t kStep = 16;
    int64_t i = 0;
    for (; i + kStep <= count; i += kStep) Instruction::round(x + i, to + 2 * i);
    if (i == count) return;
    float rest[kStep] = {};
    uint8_t rounded[2 * kStep];
    memcpy(rest, x + i, static_cast<size_t>(count - i) * sizeof(float));
    Instruction::round(rest, rounded);
    memcpy(to + 2 * i, rounded, static_cast<size_t>(count - i + 1) / 2 * kWordBytes);
  }
};

// Whether the product is one for this file: the sums of RowSums::alike are those of few rows.
bool bf16_suits(const MatmulArgs& args) {
  return args.type == WeightType::bf16 && args.m > kFloatFewRows &&
         args.row_sums == RowSums::fastest;
}

}  // namespace
}  // namespace optima::kernels
