// Rotation and activations on the host shim against the references.
#include <math.h>

#include <random>

#include "kernels/elementwise/activation.cuh"
#include "kernels/rope/rope.cuh"
#include "tests/cuda/element_testing.h"

namespace optima::kernels::cuda {
namespace {

constexpr float kEps = 6e-8f;

template <typename T>
Vector<T> random_values(size_t count, float limit, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-limit, limit);
  Vector<T> values(count);
  for (T& value : values) value = ce::from_float<T>(uniform(random));
  return values;
}

template <typename T>
class Rows : public testing::Test {};
using Types = testing::Types<float, ce::Half, ce::Bf16>;
TYPED_TEST_SUITE(Rows, Types);

struct RopeShape {
  int heads;
  int head_dim;
  int rotary_dim;
};

// Two products and a sum, each rounded: 2 eps of |x| + |y|, which is below 8 here.
template <typename T>
void check_rope(const RopeShape& shape, RopePairs pairs) {
  constexpr int64_t kTokens = 3;
  const int64_t stride = shape.heads * shape.head_dim + 5;
  const Vector<T> x = random_values<T>(static_cast<size_t>(kTokens * stride), 4, 5);
  std::vector<float> table(static_cast<size_t>(kTokens * shape.rotary_dim));
  const std::vector<int32_t> positions = {0, 7, 4096};
  std::vector<double> frequencies;
  for (int i = 0; i < shape.rotary_dim / 2; ++i) frequencies.push_back(1.0 / (1 + i));
  rope_table(positions.data(), kTokens, frequencies.data(), shape.rotary_dim, 1.0, table.data());
  std::vector<float> want = widened(x);
  kRopeReference(
      {want.data(), stride, shape.heads, shape.head_dim, shape.rotary_dim, table.data(), pairs}, 0,
      kTokens);
  Vector<T> got;
  on_all_machines(
      [&](ce::Stream stream) {
        got = x;
        return rope(RopeArgs<T>{got.data(), stride, table.data(), kTokens, shape.heads,
                                shape.head_dim, shape.rotary_dim},
                    pairs, stream);
      },
      [&] {
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(ce::to_float(got[i]), want[i], 16 * kEps + half_unit<T>(want[i]))
              << "heads " << shape.heads << " dim " << shape.head_dim << " rotary "
              << shape.rotary_dim << " value " << i;
        }
      });
}

TYPED_TEST(Rows, RopeMatchesReference) {
  for (const RopePairs pairs : {RopePairs::adjacent, RopePairs::halves}) {
    for (const RopeShape& shape : std::vector<RopeShape>{
             {1, 2, 2}, {3, 64, 64}, {2, 80, 32}, {9, 128, 128}, {5, 7, 6}, {2, 6, 0}}) {
      check_rope<TypeParam>(shape, pairs);
    }
  }
}

// How much act(x) may err. exp, tanh and erfc are good to a few units in the last place. What is
// rounded before them counts with their slope: of exp by its argument, at most 1.702 |x|; of erfc
// by twice the square of its own, x^2. 1 + tanh loses what both cancel: eps of |x|.
float act_error(float x, float value) {
  return kEps * ((8 + 2 * fabsf(x) + 2 * x * x) * fabsf(value) + 6 * fabsf(x)) + 1e-37f;
}

template <typename T>
void check_act(int64_t count, Act which) {
  Vector<T> x = random_values<T>(static_cast<size_t>(count), 12, 9);
  if (count > 2) x[2] = ce::from_float<T>(-0.0f);
  const std::vector<float> wide = widened(x);
  std::vector<float> want(wide.size());
  kActReference(wide.data(), want.data(), count, which);
  Vector<T> out;
  on_all_machines(
      [&](ce::Stream stream) {
        out = x;  // in place
        return act(ActArgs<T>{out.data(), out.data(), count}, which, stream);
      },
      [&] {
        for (size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(ce::to_float(out[i]), want[i],
                      act_error(wide[i], want[i]) + half_unit<T>(want[i]))
              << "act " << static_cast<int>(which) << " of " << wide[i];
        }
      });
}

TYPED_TEST(Rows, ActivationsMatchReference) {
  for (const Act which :
       {Act::silu, Act::gelu_tanh, Act::gelu_erf, Act::relu, Act::relu_squared, Act::gelu_quick}) {
    for (const int64_t count : {0, 1, 7, 8, 256, 1000, 2051}) check_act<TypeParam>(count, which);
  }
}

struct GateShape {
  int64_t rows;
  int width;
  int64_t gap;  // values between the rows
};

template <typename T>
void check_gated(const GateShape& shape, const GateActParams& params) {
  // As a matrix product leaves them: gate and up side by side.
  const int64_t stride = 2 * shape.width + shape.gap;
  const Vector<T> in = random_values<T>(static_cast<size_t>(shape.rows * stride), 12, 11);
  const std::vector<float> wide = widened(in);
  const int64_t out_stride = shape.width + shape.gap;
  Vector<T> out;
  on_all_machines(
      [&](ce::Stream stream) {
        out.assign(static_cast<size_t>(shape.rows * out_stride), ce::from_float<T>(7.0f));
        return gated_act(GatedActArgs<T>{in.data(), in.data() + shape.width, stride, out.data(),
                                         out_stride, shape.rows, shape.width, params},
                         stream);
      },
      [&] {
        std::vector<float> want(static_cast<size_t>(shape.width));
        for (int64_t row = 0; row < shape.rows; ++row) {
          const float* gate = wide.data() + row * stride;
          const float* up = gate + shape.width;
          kGatedActReference(gate, up, want.data(), shape.width, params);
          for (int i = 0; i < shape.width; ++i) {
            const auto at = static_cast<size_t>(i);
            const float factor = fabsf(up[i]) + 1;
            ASSERT_NEAR(ce::to_float(out[static_cast<size_t>(row * out_stride + i)]), want[at],
                        factor * act_error(gate[i], want[at] / factor) +
                            2 * kEps * fabsf(want[at]) + half_unit<T>(want[at]))
                << "act " << static_cast<int>(params.act) << " gate " << gate[i] << " up " << up[i];
          }
          for (int64_t i = shape.width; i < out_stride; ++i) {
            ASSERT_EQ(ce::to_float(out[static_cast<size_t>(row * out_stride + i)]), 7.0f);
          }
        }
      });
}

TYPED_TEST(Rows, GatedActivationsMatchReference) {
  for (const GateAct which : {GateAct::silu, GateAct::gelu_tanh, GateAct::gelu_erf, GateAct::relu,
                              GateAct::swiglu_clamped}) {
    for (const GateShape& shape : std::vector<GateShape>{
             {0, 8, 0}, {2, 1, 0}, {3, 64, 0}, {2, 63, 0}, {1, 2312, 0}, {2, 64, 3}, {2, 64, 8}}) {
      check_gated<TypeParam>(shape, {which, 1.702f, 7.0f});
    }
  }
}

TEST(RowsPlain, NanStaysNan) {
  const float nan_at[2] = {NAN, 1.0f};
  const float one[2] = {1.0f, NAN};
  float out[2];
  cuda_host::Machine machine;
  for (const GateAct which : {GateAct::silu, GateAct::gelu_tanh, GateAct::gelu_erf, GateAct::relu,
                              GateAct::swiglu_clamped}) {
    ASSERT_TRUE(gated_act(GatedActArgs<float>{nan_at, one, 2, out, 2, 1, 2, {which, 1.702f, 7.0f}},
                          &machine)
                    .ok());
    EXPECT_TRUE(isnan(out[0]) && isnan(out[1])) << static_cast<int>(which);
  }
}

TEST(Races, RopeAndActivations) {
  check_rope<ce::Half>({3, 64, 64}, RopePairs::adjacent);
  check_rope<ce::Half>({3, 64, 32}, RopePairs::halves);
  check_act<ce::Half>(600, Act::silu);
  check_gated<ce::Half>({2, 64, 0}, {GateAct::silu, 0, 0});
}

}  // namespace
}  // namespace optima::kernels::cuda
