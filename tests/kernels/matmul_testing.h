// Random weights and activations for the tests of matrix products.
#pragma once

#include <gtest/gtest.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/half.h"
#include "kernels/matmul/matmul.h"
#include "tests/kernels/simulation.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels::testing {

inline constexpr WeightType kAllTypes[] = {
    WeightType::f32,  WeightType::f16,    WeightType::bf16,   WeightType::q4_0,
    WeightType::q4_1, WeightType::q5_0,   WeightType::q5_1,   WeightType::q8_0,
    WeightType::q2_k, WeightType::q3_k,   WeightType::q4_k,   WeightType::q5_k,
    WeightType::q6_k, WeightType::iq4_nl, WeightType::iq4_xs, WeightType::mxfp4};

inline const WeightTypeInfo& info_of(WeightType type) {
  return *find_weight_type(static_cast<int32_t>(type));
}

// Byte offsets of the two binary16 numbers of a block, -1 where there is none.
struct HalfOffsets {
  int scale;
  int min;
};
inline HalfOffsets half_offsets(WeightType type) {
  switch (type) {
    case WeightType::q4_1:
    case WeightType::q5_1:
    case WeightType::q4_k:
    case WeightType::q5_k:
      return {0, 2};
    case WeightType::q2_k:
      return {80, 82};
    case WeightType::q3_k:
      return {108, -1};
    case WeightType::q6_k:
      return {208, -1};
    case WeightType::mxfp4:
      return {-1, -1};
    default:
      return {0, -1};
  }
}

inline void store_half(uint8_t* p, float value) {
  const uint16_t half = float_to_half(value);
  memcpy(p, &half, sizeof half);
}

// `rows` rows of k random weights: any codes, scales of either sign around 1.
inline std::vector<uint8_t> random_weights(WeightType type, int64_t rows, int64_t k,
                                           std::mt19937& rng) {
  const WeightTypeInfo& info = info_of(type);
  std::vector<uint8_t> bytes(row_bytes(info, k) * static_cast<size_t>(rows));
  std::normal_distribution<float> normal;
  for (uint8_t* p = bytes.data(); p < bytes.data() + bytes.size(); p += info.block_bytes) {
    if (!uses_quantised_activations(type)) {
      const float value = normal(rng);
      const uint32_t bits = float_bits(value);
      const uint16_t two = type == WeightType::f16 ? float_to_half(value) : float_to_bf16(value);
      type == WeightType::f32 ? memcpy(p, &bits, 4) : memcpy(p, &two, 2);
      continue;
    }
    for (int i = 0; i < info.block_bytes; ++i) p[i] = static_cast<uint8_t>(rng());
    const HalfOffsets at = half_offsets(type);
    if (at.scale >= 0) store_half(p + at.scale, normal(rng));
    if (at.min >= 0) store_half(p + at.min, normal(rng));
    if (type == WeightType::mxfp4) p[0] = static_cast<uint8_t>(120 + rng() % 10);
  }
  return bytes;
}

// Activations that int8 codes per block of 32 represent exactly: integers up to 127 (reached in
// every block) times a power of two.
inline std::vector<float> exact_activations(int64_t m, int64_t k, std::mt19937& rng) {
  std::vector<float> x(static_cast<size_t>(m * k));
  for (int64_t row = 0; row < m; ++row) {
    float unit = 1.0f;
    for (int64_t i = 0; i < k; ++i) {
      if (i % kActivationBlock == 0) unit = std::ldexp(1.0f, static_cast<int>(rng() % 8) - 12);
      const int code = i % kActivationBlock == 5 ? (rng() % 2 != 0 ? 127 : -127)
                                                 : static_cast<int>(rng() % 255) - 127;
      x[static_cast<size_t>(row * k + i)] = static_cast<float>(code) * unit;
    }
  }
  return x;
}

inline std::vector<float> normal_activations(int64_t m, int64_t k, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(m * k));
  for (float& value : x) value = normal(rng);
  return x;
}

// One matrix product with everything it points to.
struct Product {
  WeightType type;
  int64_t m, n, k;
  std::vector<uint8_t> weights;
  std::vector<float> x;
  std::vector<unsigned char> xq_block;
  QuantisedRows xq;

  Product(WeightType weight_type, int64_t rows, int64_t features, int64_t depth)
      : type(weight_type), m(rows), n(features), k(depth) {}

  void quantise(QuantiseRowsFn fn) {
    xq_block.assign(quantised_rows_bytes(m, k) + 64, 0);
    void* aligned = xq_block.data() + (64 - reinterpret_cast<uintptr_t>(xq_block.data()) % 64);
    xq = quantised_rows_at(aligned, m, k);
    fn(x.data(), k, 0, m, xq);
  }

  // out [m, n + kGuard]: the guard must keep its NaN.
  static constexpr int64_t kGuard = 3;
  enum class Form { file, file_alike, panels, panels_alike, arranged_alike };
  // Whether the product meets arranged activations.
  bool arranges(const MatmulKernel& kernel, Form form) const {
    return kernel.arrange_rows != nullptr && form != Form::file_alike &&
           form != Form::panels_alike && uses_quantised_activations(type) &&
           m >= kernel.arrange_from;
  }
  static bool is_alike(Form form) { return form != Form::file && form != Form::panels; }
  static bool has_panels(Form form) { return form != Form::file && form != Form::file_alike; }
  std::vector<float> run(const MatmulKernel& kernel, int64_t split, Form form = Form::file) const {
    std::vector<float> out(static_cast<size_t>(m * (n + kGuard)),
                           std::numeric_limits<float>::quiet_NaN());
    std::vector<unsigned char> scratch(
        kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(m, k));
    MatmulArgs args = {};
    args.weights = weights.data();
    args.type = type;
    args.n = n;
    args.k = k;
    args.m = m;
    args.x = x.data();
    args.xq = xq;
    args.out = out.data();
    args.out_stride = n + kGuard;
    args.scratch = scratch.data();
    args.row_sums = is_alike(form) ? RowSums::alike : RowSums::fastest;
    std::vector<uint8_t> panels;
    if (has_panels(form)) {
      split = split / kernel.granule * kernel.granule;
      panels.resize(kernel.panels_bytes(type, n, k) + 64);
      uint8_t* aligned = panels.data() + (64 - reinterpret_cast<uintptr_t>(panels.data()) % 64);
      kernel.pack(args, split, n, aligned);
      kernel.pack(args, 0, split, aligned);
      args.panels = aligned;
      args.weights = nullptr;
    }
    std::vector<unsigned char> arranged;
    if (arranges(kernel, form)) {
      arranged.resize(quantised_rows_bytes(m, k));
      kernel.arrange_rows(x.data(), k, 0, m / 2, arranged.data());
      kernel.arrange_rows(x.data(), k, m / 2, m, arranged.data());
      args.arranged = arranged.data();
      args.xq = {};
    }
    // How panels are read must not matter.
    args.reading = kernel.reading;
    args.next_row = 0;
    kernel.run(args, split, n);
    args.reading = {0, 512, 512};
    args.next_row = -1;
    kernel.run(args, 0, split);
    return out;
  }
};

// Activations are exact in int8 and in bfloat16, so a variant differs from the reference only by
// the rounding of its fp32 sums: at most one rounding a block and lane on partial sums that
// 4 * max|w| * Σ|x| bounds (code and constant parts of a weight can each exceed the weight). Where
// weights are rounded, each also by weight_error of itself.
inline void expect_near_reference(const Product& p, const std::vector<float>& got,
                                  const std::vector<float>& want, const char* name,
                                  double weight_error = 0) {
  const WeightTypeInfo& info = info_of(p.type);
  std::vector<float> weights(static_cast<size_t>(p.k));
  const int64_t stride = p.n + Product::kGuard;
  for (int64_t n = 0; n < p.n; ++n) {
    dequant_row(p.type)(p.weights.data() + static_cast<size_t>(n) * row_bytes(info, p.k),
                        weights.data(), p.k);
    double largest = 0;
    for (const float w : weights) largest = std::max(largest, std::abs(static_cast<double>(w)));
    for (int64_t m = 0; m < p.m; ++m) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k) sum += std::abs(p.x[static_cast<size_t>(m * p.k + k)]);
      const double roundings = static_cast<double>(p.k) / kActivationBlock + 16;
      const double bound = (std::ldexp(roundings, -24) * 4 + weight_error) * largest * sum;
      const auto at = static_cast<size_t>(m * stride + n);
      ASSERT_NEAR(got[at], want[at], bound)
          << name << " " << info.name << " m=" << p.m << " n=" << p.n << " k=" << p.k << " at ("
          << m << ", " << n << ")";
    }
  }
  for (int64_t m = 0; m < p.m; ++m) {
    for (int64_t n = p.n; n < stride; ++n) {
      ASSERT_TRUE(std::isnan(got[static_cast<size_t>(m * stride + n)]))
          << name << " wrote beyond n";
    }
  }
}

// A row of activations has the same products, bit for bit, whatever is beside it.
inline void expect_rows_alone_equal(const Product& p, const Variant<MatmulKernel>& row,
                                    const std::vector<float>& got, Product::Form form) {
  const int64_t stride = p.n + Product::kGuard;
  for (int64_t m = 0; m < p.m; m += 5) {
    Product alone(p.type, 1, p.n, p.k);
    alone.weights = p.weights;
    alone.x.assign(p.x.begin() + m * p.k, p.x.begin() + (m + 1) * p.k);
    alone.quantise(best(quantise_rows_variants(), kIsaNone).fn);
    const std::vector<float> one = alone.run(row.fn, 0, form);
    ASSERT_EQ(0, memcmp(one.data(), got.data() + m * stride, static_cast<size_t>(p.n) * 4))
        << row.name << " " << info_of(p.type).name << " row " << m << " of " << p.m << " n=" << p.n
        << " k=" << p.k;
  }
}

// RMS of the differences over the RMS of `want`, without the guards.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0;
  double power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) continue;
    error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    power += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(error / power);
}

// Rows with simulated instructions that this CPU can run and that have something for the type.
inline std::vector<Variant<MatmulKernel>> simulated_rows(WeightType type) {
  std::vector<Variant<MatmulKernel>> rows;
  const auto add = [&](const Variants<MatmulKernel>& variants) {
    for (const Variant<MatmulKernel>& row : variants) {
      if ((row.isa & ~host_isa()) == 0) rows.push_back(row);
    }
  };
  add(simulations_avx2());
  add(simulations_avx512());
  if (type == WeightType::bf16) {
    add(bf16_simulations());
    add(bf16_simulations_avx512());
  }
  return rows;
}

// What a variant makes of weights that meet arranged activations.
enum class WideWeights { exact, coarse, rounded };
inline WideWeights wide_weights(const Variant<MatmulKernel>& row) {
  if ((row.isa & kIsaAmx) != 0) return WideWeights::rounded;
  return row.fn.arrange_rows != nullptr ? WideWeights::coarse : WideWeights::exact;
}
// Types whose codes are bytes stay exact in the coarse form.
inline bool has_coarse_form(WeightType type) {
  return type != WeightType::q8_0 && type != WeightType::iq4_nl && type != WeightType::iq4_xs &&
         type != WeightType::mxfp4;
}
// By how much of a row's largest weight each weight may be changed. Coarse ones by half a step of
// 1/127 of the largest that codes of their group can be, which random codes reach to three quarters
// at the least, and by what their factors are rounded: 63 codes by half of 1/256 of a step.
inline double weight_error(WideWeights wide, WeightType type) {
  if (wide == WideWeights::rounded) return std::ldexp(1.0, -9);
  if (wide == WideWeights::exact || !has_coarse_form(type)) return 0;
  return (0.5 + 63 * 0.5 / 256) / 127 / 0.75;
}

// Runs one variant on one random product and compares it with the reference.
inline void check(const Variant<MatmulKernel>& row, WeightType type, int64_t m, int64_t n,
                  int64_t k) {
  const WideWeights wide = wide_weights(row);
  std::mt19937 rng(static_cast<uint32_t>(m * 1000003 + n * 1009 + k) + static_cast<uint32_t>(type));
  Product p(type, m, n, k);
  p.weights = random_weights(type, n, k, rng);
  p.x = exact_activations(m, k, rng);
  p.quantise(best(quantise_rows_variants(), kIsaNone).fn);
  const std::vector<float> want = p.run(kMatmulReference, 0);
  using enum Product::Form;
  const bool has_panels = row.fn.pack != nullptr && row.fn.panels_bytes(type, n, k) != 0;
  for (const auto form : {file, file_alike, panels, panels_alike, arranged_alike}) {
    if (!has_panels && Product::has_panels(form)) continue;
    if (form == panels_alike && row.fn.arrange_rows == nullptr) continue;  // those of panels
    if (form == arranged_alike && (wide == WideWeights::rounded || !p.arranges(row.fn, form)))
      continue;
    const bool arranged = p.arranges(row.fn, form) && form != arranged_alike;
    const double error = arranged ? weight_error(wide, type) : 0;
    const std::vector<float> got = p.run(row.fn, n / 3, form);
    expect_near_reference(p, got, want, row.name, error);
    if (::testing::Test::HasFatalFailure()) return;
    // The sums of a row may depend on what is beside it.
    if (form == file || error != 0) continue;
    expect_rows_alone_equal(p, row, got, form);
    if (::testing::Test::HasFatalFailure()) return;
  }
}
}  // namespace optima::kernels::testing
