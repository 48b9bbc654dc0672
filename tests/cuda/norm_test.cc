// Norms on the host shim against the references.
//
// Tolerance, relative to |value| of the normed row before bias: a thread adds n / 256 (or n / 32)
// squares one after another and the tree adds log2 of the threads, all positive, so that the sum
// errs by (n / threads + 11) eps at most, its root by half of that; the root itself and two
// products add four roundings. LayerNorm also takes the mean away: its error is that of a sum of n
// values, bounded by (n / threads + 11) eps times the mean magnitude, and enters each distance.
// What is stored in 16 bits rounds once more.
#include <math.h>

#include <random>

#include "kernels/layer_norm/layer_norm.cuh"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/rms_norm/rms_norm.cuh"
#include "kernels/rms_norm/rms_norm.h"
#include "tests/cuda/element_testing.h"

namespace optima::kernels::cuda {
namespace {

struct Shape {
  int64_t rows;
  int width;
  int stride;
};

// Widths around the vector widths, the change from a warp to a block, more than a block's step.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const int width : {1, 7, 8, 33, 64, 80, 128, 511, 512, 513, 576, 2056}) {
    all.push_back({3, width, width});
    all.push_back({2, width, width + 3});  // rows that cannot be read by wide accesses
  }
  return all;
}

template <typename T>
struct Problem {
  explicit Problem(const Shape& of, float mean) : shape(of) {
    std::mt19937 random(static_cast<uint32_t>(of.width));
    std::normal_distribution<float> normal(mean, 3.0f);
    const auto count = static_cast<size_t>(shape.rows * shape.stride);
    for (size_t i = 0; i < count; ++i) {
      x.push_back(ce::from_float<T>(normal(random)));
      residual.push_back(ce::from_float<T>(normal(random)));
    }
    for (int i = 0; i < shape.width; ++i) {
      weight.push_back(normal(random));
      bias.push_back(normal(random));
    }
    // The sum as it must be stored: rounded to T.
    for (size_t i = 0; i < count; ++i) {
      sum.push_back(ce::from_float<T>(ce::to_float(x[i]) + ce::to_float(residual[i])));
    }
  }
  float rounding() const { return 6e-8f * (static_cast<float>(shape.width) / 32.0f + 15.0f); }

  Shape shape;
  Vector<T> x;
  Vector<T> residual;
  Vector<T> sum;
  std::vector<float> weight;
  std::vector<float> bias;
};

enum class Added { nothing, residual };

// Values beyond the width of a row are left alone; the others are compared.
template <typename T>
void expect_rows(const Vector<T>& got, const std::vector<float>& want, const Problem<T>& problem,
                 const std::vector<float>& allowed) {
  const Shape& shape = problem.shape;
  for (size_t i = 0; i < got.size(); ++i) {
    const int at = static_cast<int>(i) % shape.stride;
    if (at >= shape.width) {
      ASSERT_EQ(ce::to_float(got[i]), 7.0f);
      continue;
    }
    ASSERT_NEAR(ce::to_float(got[i]), want[i], allowed[i] + half_unit<T>(want[i]))
        << "width " << shape.width << " stride " << shape.stride << " value " << i;
  }
}

template <typename T>
void check_rms_norm(const Shape& shape, Added added) {
  const Problem<T> problem(shape, 0.0f);
  const bool fused = added == Added::residual;
  const std::vector<float> read = widened(fused ? problem.sum : problem.x);
  std::vector<float> want(read.size());
  kRmsNormReference({read.data(), shape.stride, problem.weight.data(), want.data(), shape.stride,
                     shape.width, 1e-5f},
                    0, shape.rows);
  std::vector<float> allowed;
  for (const float value : want) allowed.push_back(problem.rounding() * fabsf(value));
  Vector<T> residual;
  Vector<T> out;
  on_all_machines(
      [&](ce::Stream stream) {
        residual = problem.residual;
        out.assign(problem.x.size(), ce::from_float<T>(7.0f));
        RmsNormArgs<T> args = {};
        args.in = {problem.x.data(), shape.stride, fused ? residual.data() : nullptr, shape.stride};
        args.weight = problem.weight.data();
        args.out = out.data();
        args.out_stride = shape.stride;
        args.rows = shape.rows;
        args.width = shape.width;
        args.epsilon = 1e-5f;
        return rms_norm(args, stream);
      },
      [&] {
        expect_rows(out, want, problem, allowed);
        expect_same_rows(residual, fused ? problem.sum : problem.residual, shape.width,
                         shape.stride);
      });
}

template <typename T>
void check_layer_norm(const Shape& shape, Added added) {
  const Problem<T> problem(shape, 4.0f);
  const bool fused = added == Added::residual;
  const std::vector<float> read = widened(fused ? problem.sum : problem.x);
  std::vector<float> want(read.size());
  std::vector<float> bare(read.size());
  kernels::LayerNormArgs reference = {read.data(),         shape.stride, problem.weight.data(),
                                      problem.bias.data(), want.data(),  shape.stride,
                                      shape.width,         1e-5f};
  kLayerNormReference(reference, 0, shape.rows);
  reference.bias = nullptr;
  reference.out = bare.data();
  kLayerNormReference(reference, 0, shape.rows);
  // The mean is about 4 (8 with the residual) and the spread 3: an error of the mean of e times
  // the mean magnitude is 3 e of the spread, and so of the weight. A row of one value has no
  // spread: its distance is exactly zero.
  std::vector<float> allowed;
  for (size_t i = 0; i < bare.size(); ++i) {
    const float weight =
        problem.weight[i % static_cast<size_t>(shape.stride) % static_cast<size_t>(shape.width)];
    allowed.push_back(problem.rounding() * (3 * fabsf(bare[i]) + 6 * fabsf(weight)) +
                      1.2e-7f * fabsf(want[i]));
  }
  Vector<T> residual;
  Vector<T> out;
  on_all_machines(
      [&](ce::Stream stream) {
        residual = problem.residual;
        out.assign(problem.x.size(), ce::from_float<T>(7.0f));
        LayerNormArgs<T> args = {};
        args.in = {problem.x.data(), shape.stride, fused ? residual.data() : nullptr, shape.stride};
        args.weight = problem.weight.data();
        args.bias = problem.bias.data();
        args.out = out.data();
        args.out_stride = shape.stride;
        args.rows = shape.rows;
        args.width = shape.width;
        args.epsilon = 1e-5f;
        return layer_norm(args, stream);
      },
      [&] {
        expect_rows(out, want, problem, allowed);
        expect_same_rows(residual, fused ? problem.sum : problem.residual, shape.width,
                         shape.stride);
      });
}

template <typename T>
class Norms : public testing::Test {};
using Types = testing::Types<float, ce::Half, ce::Bf16>;
TYPED_TEST_SUITE(Norms, Types);

TYPED_TEST(Norms, RmsNormMatchesReference) {
  for (const Shape& shape : shapes()) {
    check_rms_norm<TypeParam>(shape, Added::nothing);
    check_rms_norm<TypeParam>(shape, Added::residual);
  }
}

TYPED_TEST(Norms, LayerNormMatchesReference) {
  for (const Shape& shape : shapes()) {
    check_layer_norm<TypeParam>(shape, Added::nothing);
    check_layer_norm<TypeParam>(shape, Added::residual);
  }
}

// Neither weight nor bias, in place, no rows, a row of zeros, NaN.
TEST(NormsPlain, InPlaceWithoutWeight) {
  Vector<float> x(3 * 8, 0.0f);
  for (size_t i = 8; i < 16; ++i) x[i] = i % 2 == 0 ? 2.0f : -2.0f;
  x[20] = NAN;
  Vector<float> y = x;
  cuda_host::Machine machine;
  RmsNormArgs<float> rms = {{x.data(), 8, nullptr, 0}, nullptr, x.data(), 8, 3, 8, 1e-6f};
  ASSERT_TRUE(rms_norm(rms, &machine).ok());
  LayerNormArgs<float> layer = {
      {y.data(), 8, nullptr, 0}, nullptr, nullptr, y.data(), 8, 3, 8, 1e-6f};
  ASSERT_TRUE(layer_norm(layer, &machine).ok());
  for (size_t i = 0; i < 8; ++i) {
    for (const Vector<float>& out : {x, y}) {
      EXPECT_EQ(out[i], 0.0f);
      EXPECT_NEAR(out[8 + i], i % 2 == 0 ? 1.0f : -1.0f, 1e-6f);
      EXPECT_TRUE(isnan(out[16 + i]));
    }
  }
  EXPECT_EQ(machine.launches(), 2);
  rms.rows = layer.rows = 0;
  ASSERT_TRUE(rms_norm(rms, &machine).ok());
  ASSERT_TRUE(layer_norm(layer, &machine).ok());
  EXPECT_EQ(machine.launches(), 2) << "an empty grid is no launch";
}

// Small cases that run under ThreadSanitizer too: of every kernel of this file one.
TEST(Races, Norms) {
  check_rms_norm<ce::Half>({2, 64, 64}, Added::residual);
  check_rms_norm<ce::Half>({2, 576, 576}, Added::residual);
  check_layer_norm<ce::Half>({2, 64, 64}, Added::residual);
  check_layer_norm<ce::Half>({2, 576, 576}, Added::residual);
}

}  // namespace
}  // namespace optima::kernels::cuda
