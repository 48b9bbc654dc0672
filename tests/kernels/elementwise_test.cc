// add and scale are one rounding: equal bits. The gated activations use a vector exp of 3e-7 and
// four more roundings: 1e-6 of the value; results below 1e-35 may be flushed to zero.
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

// The identity 0.5 x (1 + tanh u) = x σ(2u) in double, which keeps digits where 1 + tanh loses
// them: the variants are held to it in relative terms far out on the negative side, too.
double gelu(double x) {
  const double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
  return x / (1 + exp(-2 * u));
}

TEST(GatedAct, VariantsMatchTheFormula) {
  for (const int64_t size : kSizes) {
    for (const float scale : {0.01f, 1.0f, 5.0f, 40.0f}) {
      const std::vector<float> gate = normals(size, 3, scale);
      const std::vector<float> up = normals(size, 4);
      for (const auto& row : runnable_rows(gated_act_variants())) {
        for (const GateAct act : {GateAct::silu, GateAct::gelu_tanh}) {
          std::vector<float> out = gate;  // in place
          row.fn(out.data(), up.data(), out.data(), size, {act, 0, 0});
          for (size_t i = 0; i < gate.size(); ++i) {
            const double x = gate[i];
            const double activated = act == GateAct::silu ? x / (1 + exp(-x)) : gelu(x);
            // The argument of exp is rounded: its error grows with its size.
            const double slack = 1e-6 + 3e-7 * (act == GateAct::silu ? fabs(x) : 3 + x * x);
            ASSERT_NEAR(out[i], activated * up[i], slack * fabs(activated * up[i]) + 1e-35)
                << row.name << " x " << x;
          }
        }
      }
    }
  }
}

TEST(GatedAct, Extremes) {
  const std::vector<float> gate = {INFINITY, NAN, 1e30f, -1e30f, 88.5f, -88.5f, -0.0f, -200};
  const std::vector<float> up(gate.size(), 1.0f);
  std::vector<float> out(gate.size());
  for (const auto& row : runnable_rows(gated_act_variants())) {
    for (const GateAct act : {GateAct::silu, GateAct::gelu_tanh}) {
      row.fn(gate.data(), up.data(), out.data(), static_cast<int64_t>(gate.size()), {act, 0, 0});
      EXPECT_EQ(out[0], INFINITY) << row.name;
      EXPECT_TRUE(isnan(out[1])) << row.name;
      EXPECT_EQ(out[2], 1e30f) << row.name;
      EXPECT_EQ(out[3], 0.0f) << row.name;
      EXPECT_EQ(out[4], 88.5f) << row.name;
      EXPECT_NEAR(out[5], 0.0f, 1e-35f) << row.name;
      EXPECT_EQ(out[6], 0.0f) << row.name;
      EXPECT_EQ(out[7], 0.0f) << row.name;
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
