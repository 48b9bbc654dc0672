// add, mul, add_bias and scale are one rounding: equal bits. The activations use a vector exp of
// 3e-7 and four more roundings: 1e-6 of the value; results below 1e-35 may be flushed to zero.
#include "kernels/elementwise/elementwise.h"

#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <random>

#include "kernels/vec/f32_plain.h"

#include "kernels/vec/math.inl.h"
#include "tests/kernels/goldens.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

const int64_t kSizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 97, 1009};

std::vector<float> normals(int64_t count, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Elementwise, AddAndScaleAreExact) {
  for (const int64_t size : kSizes) {
    // From the second value on: the rows are not aligned. The last one must stay.
    const std::vector<float> a = normals(size + 2, 1);
    const std::vector<float> b = normals(size + 2, 2);
    std::vector<float> sum = b;
    std::vector<float> scaled = b;
    for (int64_t i = 1; i <= size; ++i) {
      const auto at = static_cast<size_t>(i);
      sum[at] = a[at] + b[at];
      scaled[at] = b[at] * 0.37f;
    }
    auto adds = runnable_rows(add_variants());
    adds.push_back({"add_ref", kIsaNone, kAddReference});
    for (const auto& row : adds) {
      std::vector<float> out = b;
      row.fn(a.data() + 1, out.data() + 1, out.data() + 1, size);
      ASSERT_TRUE(same(out, sum)) << row.name << " size " << size;
    }
    auto scales = runnable_rows(scale_variants());
    scales.push_back({"scale_ref", kIsaNone, kScaleReference});
    for (const auto& row : scales) {
      std::vector<float> out = b;
      row.fn(out.data() + 1, 0.37f, out.data() + 1, size);
      ASSERT_TRUE(same(out, scaled)) << row.name << " size " << size;
    }
  }
}

TEST(Elementwise, MulIsExact) {
  for (const int64_t size : kSizes) {
    const std::vector<float> a = normals(size + 2, 1);
    const std::vector<float> b = normals(size + 2, 2);
    std::vector<float> product = b;
    for (int64_t i = 1; i <= size; ++i) {
      const auto at = static_cast<size_t>(i);
      product[at] = a[at] * b[at];
    }
    auto rows = runnable_rows(mul_variants());
    rows.push_back({"mul_ref", kIsaNone, kMulReference});
    for (const auto& row : rows) {
      std::vector<float> out = b;
      row.fn(a.data() + 1, out.data() + 1, out.data() + 1, size);
      ASSERT_TRUE(same(out, product)) << row.name << " size " << size;
    }
  }
}

TEST(Elementwise, AddBiasIsExact) {
  auto variants = runnable_rows(add_bias_variants());
  variants.push_back({"add_bias_ref", kIsaNone, kAddBiasReference});
  for (const int64_t rows : {0, 1, 3}) {
    for (const int64_t width : kSizes) {
      const std::vector<float> x = normals(rows * width + 2, 7);
      const std::vector<float> bias = normals(width, 8);
      std::vector<float> want = x;
      for (int64_t i = 0; i < rows * width; ++i) {
        want[static_cast<size_t>(i + 1)] += bias[static_cast<size_t>(i % width)];
      }
      for (const auto& row : variants) {
        std::vector<float> out = x;  // in place
        row.fn(out.data() + 1, bias.data(), out.data() + 1, rows, width);
        ASSERT_TRUE(same(out, want)) << row.name << " " << rows << " x " << width;
      }
    }
  }
}

TEST(Softcap, VariantsMatchTheFormula) {
  const Goldens goldens;
  const std::vector<float> x = goldens.floats("act.x");
  auto rows = runnable_rows(softcap_variants());
  rows.push_back({"softcap_ref", kIsaNone, kSoftcapReference});
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    std::vector<float> out(x.size());
    row.fn(x.data(), 5.0f, out.data(), static_cast<int64_t>(x.size()));
    expect_close(out, goldens.doubles("act.softcap"), 6e-7, 1e-12);
    for (const int64_t size : kSizes) {
      for (const float cap : {0.5f, 30.0f, 50.0f}) {
        const std::vector<float> values = normals(size, 9, 40);
        std::vector<double> want;
        for (const float v : values) {
          want.push_back(static_cast<double>(cap) * tanh(static_cast<double>(v) / cap));
        }
        out = values;  // in place
        row.fn(out.data(), cap, out.data(), size);
        expect_close(out, want, 6e-7, 0);
      }
    }
    const std::vector<float> edges = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 0, -0.0f};
    out.resize(edges.size());
    row.fn(edges.data(), 30.0f, out.data(), static_cast<int64_t>(edges.size()));
    EXPECT_TRUE(isnan(out[2]));
    out[2] = 0;
    EXPECT_EQ(out, (std::vector<float>{30, -30, 0, 30, -30, 0, 0}));
  }
}

constexpr Act kActs[] = {Act::silu, Act::gelu_tanh,    Act::gelu_erf,
                         Act::relu, Act::relu_squared, Act::gelu_quick};
const char* const kActNames[] = {"silu", "gelu_tanh",    "gelu_erf",
                                 "relu", "relu_squared", "gelu_quick"};
// Each applies the activation of the same place in kActs.
constexpr GateAct kPlainGates[] = {GateAct::silu, GateAct::gelu_tanh, GateAct::gelu_erf,
                                   GateAct::relu};
constexpr GateActParams kClamped = {GateAct::swiglu_clamped, 1.702f, 7.0f};

TEST(Act, ReferenceMatchesTorch) {
  const Goldens goldens;
  const std::vector<float> x = goldens.floats("act.x");
  const std::vector<float> up = goldens.floats("act.up");
  const auto count = static_cast<int64_t>(x.size());
  std::vector<float> out(x.size());
  for (size_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(kActNames[i]);
    const std::vector<double>& want = goldens.doubles(std::string("act.") + kActNames[i]);
    kActReference(x.data(), out.data(), count, kActs[i]);
    expect_close(out, want, 2e-7, 1e-14);
    if (i >= 4) continue;
    std::vector<double> product = want;
    for (size_t at = 0; at < product.size(); ++at) product[at] *= static_cast<double>(up[at]);
    kGatedActReference(x.data(), up.data(), out.data(), count, {kPlainGates[i], 0, 0});
    expect_close(out, product, 2e-7, 1e-14);
  }
  kGatedActReference(x.data(), up.data(), out.data(), count, kClamped);
  expect_close(out, goldens.doubles("act.swiglu_clamped"), 2e-7, 0);
}

TEST(GatedAct, ReferenceMatchesNumpy) {
  const Goldens goldens;
  const std::vector<float> gate = goldens.floats("gate.gate");
  const std::vector<float> up = goldens.floats("gate.up");
  const auto count = static_cast<int64_t>(gate.size());
  std::vector<float> out(gate.size());
  kGatedActReference(gate.data(), up.data(), out.data(), count, {GateAct::silu, 0, 0});
  expect_close(out, goldens.doubles("gate.silu"), 2e-7, 1e-37);
  kGatedActReference(gate.data(), up.data(), out.data(), count, {GateAct::gelu_tanh, 0, 0});
  expect_close(out, goldens.doubles("gate.gelu_tanh"), 2e-7, 1e-16);
}

// The activations in double. GELU's tanh form goes by the identity 0.5 x (1 + tanh u) = x σ(2u),
// which keeps digits where 1 + tanh loses them: the variants are held to it in relative terms far
// out on the negative side, too.
double activated(double x, Act act) {
  switch (act) {
    case Act::silu:
      return x / (1 + exp(-x));
    case Act::gelu_tanh:
      return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Act::gelu_erf:
      return x * 0.5 * erfc(-x * sqrt(0.5));
    case Act::relu:
      return fmax(x, 0);
    case Act::relu_squared:
      return fmax(x, 0) * fmax(x, 0);
    case Act::gelu_quick:
      return x / (1 + exp(-1.702 * x));
  }
  return 0;
}

// The argument of exp is rounded: its error grows with its size.
double slack(double x, Act act) {
  const bool square = act == Act::gelu_tanh || act == Act::gelu_erf;
  return 1e-6 + 3e-7 * (square ? 3 + x * x : 2 * fabs(x));
}

TEST(Act, VariantsMatchTheFormula) {
  for (const int64_t size : kSizes) {
    for (const float scale : {0.01f, 1.0f, 5.0f, 40.0f}) {
      const std::vector<float> x = normals(size, 5, scale);
      for (const auto& row : runnable_rows(act_variants())) {
        for (const Act act : kActs) {
          std::vector<float> out = x;  // in place
          row.fn(out.data(), out.data(), size, act);
          for (size_t i = 0; i < x.size(); ++i) {
            const double value = activated(x[i], act);
            ASSERT_NEAR(out[i], value, slack(x[i], act) * fabs(value) + 1e-35)
                << row.name << " " << kActNames[static_cast<size_t>(act)] << " x " << x[i];
          }
        }
      }
    }
  }
}

TEST(GatedAct, VariantsMatchTheFormula) {
  for (const int64_t size : kSizes) {
    for (const float scale : {0.01f, 1.0f, 5.0f, 40.0f}) {
      const std::vector<float> gate = normals(size, 3, scale);
      const std::vector<float> up = normals(size, 4);
      for (const auto& row : runnable_rows(gated_act_variants())) {
        for (size_t a = 0; a < 4; ++a) {
          std::vector<float> out = gate;  // in place
          row.fn(out.data(), up.data(), out.data(), size, {kPlainGates[a], 0, 0});
          for (size_t i = 0; i < gate.size(); ++i) {
            const double value = activated(gate[i], kActs[a]) * up[i];
            ASSERT_NEAR(out[i], value, slack(gate[i], kActs[a]) * fabs(value) + 1e-35)
                << row.name << " " << kActNames[a] << " x " << gate[i];
          }
        }
      }
    }
  }
}

TEST(GatedAct, ClampedVariantsMatchTheReference) {
  for (const int64_t size : kSizes) {
    for (const float scale : {0.01f, 1.0f, 5.0f, 40.0f}) {
      const std::vector<float> gate = normals(size, 3, scale);
      const std::vector<float> up = normals(size, 4, scale);
      for (const GateActParams& params : {kClamped, {GateAct::swiglu_clamped, 1.0f, 2.5f}}) {
        std::vector<float> want(gate.size());
        kGatedActReference(gate.data(), up.data(), want.data(), size, params);
        for (const auto& row : runnable_rows(gated_act_variants())) {
          std::vector<float> out = up;  // in place of the other input
          row.fn(gate.data(), out.data(), out.data(), size, params);
          for (size_t i = 0; i < gate.size(); ++i) {
            // up + 1 is rounded where it may cancel.
            const double rounding = 6e-8 * activated(fabs(gate[i]), Act::silu);
            const double allowed = slack(params.alpha * gate[i], Act::silu) * fabs(want[i]);
            ASSERT_NEAR(out[i], want[i], allowed + rounding + 1e-35) << row.name << " " << gate[i];
          }
        }
      }
    }
  }
}

TEST(GatedAct, ClampedExtremes) {
  const std::vector<float> gate = {INFINITY, NAN, 2, 2, 2, -1e30f, 2, 1e30f};
  const std::vector<float> up = {1, 1, NAN, INFINITY, -INFINITY, 1, -1, 1e30f};
  std::vector<float> want(gate.size());
  kGatedActReference(gate.data(), up.data(), want.data(), 8, kClamped);
  EXPECT_NEAR(want[0], 14, 1e-3);
  EXPECT_TRUE(isnan(want[1]) && isnan(want[2]));
  EXPECT_NEAR(want[3], 8 * 2 / (1 + exp(-3.404)), 1e-5);
  EXPECT_NEAR(want[4], -6 * 2 / (1 + exp(-3.404)), 1e-5);
  EXPECT_EQ(want[5], 0);
  EXPECT_EQ(want[6], 0);
  EXPECT_NEAR(want[7], 56, 1e-3);
  for (const auto& row : runnable_rows(gated_act_variants())) {
    std::vector<float> out(gate.size());
    row.fn(gate.data(), up.data(), out.data(), 8, kClamped);
    for (size_t i = 0; i < 8; ++i) {
      if (isnan(want[i])) {
        EXPECT_TRUE(isnan(out[i])) << row.name << " " << i;
      } else {
        EXPECT_NEAR(out[i], want[i], 2e-6 * fabs(want[i])) << row.name << " " << i;
      }
    }
  }
}

// Infinity, NaN, the largest and smallest inputs; a gate with up = 1 does the same.
TEST(Act, Extremes) {
  const std::vector<float> x = {INFINITY, NAN, 1e30f, -1e30f, 88.5f, -88.5f, -0.0f, -200};
  const std::vector<float> ones(x.size(), 1.0f);
  const auto check = [](const std::vector<float>& out, Act act, const std::string& name) {
    const bool squared = act == Act::relu_squared;
    EXPECT_EQ(out[0], INFINITY) << name;
    EXPECT_TRUE(isnan(out[1])) << name;
    EXPECT_EQ(out[2], squared ? INFINITY : 1e30f) << name;
    EXPECT_EQ(out[3], 0.0f) << name;
    EXPECT_EQ(out[4], squared ? 88.5f * 88.5f : 88.5f) << name;
    EXPECT_NEAR(out[5], 0.0f, 1e-35f) << name;
    EXPECT_EQ(out[6], 0.0f) << name;
    EXPECT_EQ(out[7], 0.0f) << name;
  };
  std::vector<float> out(x.size());
  for (const auto& row : runnable_rows(act_variants())) {
    for (const Act act : kActs) {
      row.fn(x.data(), out.data(), 8, act);
      check(out, act, std::string(row.name) + " " + kActNames[static_cast<size_t>(act)]);
    }
  }
  for (const auto& row : runnable_rows(gated_act_variants())) {
    for (size_t a = 0; a < 4; ++a) {
      row.fn(x.data(), ones.data(), out.data(), 8, {kPlainGates[a], 0, 0});
      check(out, kActs[a], std::string(row.name) + " " + kActNames[a]);
    }
  }
}

TEST(Argmax, FirstLargest) {
  auto rows = runnable_rows(argmax_variants());
  rows.push_back({"argmax_ref", kIsaNone, kArgmaxReference});
  for (const auto& row : rows) {
    EXPECT_EQ(row.fn(nullptr, 0), -1) << row.name;
    for (const int64_t size : {1, 2, 7, 8, 9, 16, 17, 97, 1009}) {
      std::vector<float> x = normals(size, 6);
      for (const int64_t winner : {int64_t{0}, size / 2, size - 1}) {
        std::vector<float> y = x;
        y[static_cast<size_t>(winner)] = 50;
        y.back() = 50;  // a later equal value does not win
        EXPECT_EQ(row.fn(y.data(), size), winner) << row.name << " size " << size;
      }
    }
  }
}

TEST(Argmax, NanIsPassedOver) {
  auto rows = runnable_rows(argmax_variants());
  rows.push_back({"argmax_ref", kIsaNone, kArgmaxReference});
  for (const auto& row : rows) {
    for (const int64_t size : {1, 5, 8, 20, 41}) {
      std::vector<float> x(static_cast<size_t>(size), NAN);
      EXPECT_EQ(row.fn(x.data(), size), -1) << row.name;
      x.back() = -INFINITY;
      EXPECT_EQ(row.fn(x.data(), size), size - 1) << row.name;
      x[0] = -3;
      EXPECT_EQ(row.fn(x.data(), size), 0) << row.name;
      if (size > 2) {
        x[2] = INFINITY;
        EXPECT_EQ(row.fn(x.data(), size), 2) << row.name;
      }
    }
  }
}

// The portable code of exp and tanh against libm, densely.
TEST(VecMath, ExpAndTanh) {
  using V = F32Plain<2>;
  for (float x = -100; x < 100; x += 0.0137f) {
    const double e = V::largest(vec_exp<V>(V::set1(x)));
    if (x < -87.3f) {
      ASSERT_EQ(e, 0) << x;
    } else if (x < 88.3f) {
      ASSERT_NEAR(e / exp(static_cast<double>(x)), 1, 3e-7) << x;
    } else if (x > 88.8f) {
      ASSERT_EQ(e, INFINITY) << x;
    }
    const double small = static_cast<double>(x) / 25;
    const double t = V::largest(vec_tanh<V>(V::set1(static_cast<float>(small))));
    ASSERT_NEAR(t, tanh(static_cast<double>(static_cast<float>(small))),
                4e-7 * fabs(tanh(small)) + 1e-12)
        << small;
  }
  EXPECT_EQ(V::largest(vec_exp<V>(V::set1(0.0f))), 1.0f);
  EXPECT_EQ(V::largest(vec_exp<V>(V::set1(-INFINITY))), 0.0f);
  EXPECT_EQ(V::largest(vec_exp<V>(V::set1(INFINITY))), INFINITY);
  EXPECT_TRUE(isnan(V::sum(vec_exp<V>(V::set1(NAN)))));
  EXPECT_TRUE(isnan(V::sum(vec_tanh<V>(V::set1(NAN)))));
}

}  // namespace
}  // namespace optima::kernels
