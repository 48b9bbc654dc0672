// For passes over a whole vocabulary, a quarter of a million logits per token, in forms that the
// compiler turns into vector code: independent lanes, no branches, no library call per element.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace optima::sampling {

// exp(x) for x <= 0 to 2e-7 of itself; 0 below -87 (exp is about 1e-38 there) and for NaN.
inline float exp_of_negative(float x) {
  constexpr float kLowest = -87.0f, kLog2E = 1.44269504f;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it leaves no fraction bits
  // ln 2 in two parts, the first with few enough bits that n * kLn2High is exact
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float clamped = x >= kLowest ? x : kLowest;
  const float n = (clamped * kLog2E + kRounder) - kRounder;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor series; the first term left out is r^8 / 8! < 6e-9.
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  const float power = std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
  return x >= kLowest ? sum * power : 0.0f;
}

struct Extent {
  float highest;  // of all that are numbers; -inf when there is none
  int64_t nans;
};

inline Extent extent_of(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> highest;
  highest.fill(-std::numeric_limits<float>::infinity());
  std::array<int32_t, kLanes> nans{};
  const size_t whole = values.size() - values.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      highest[lane] = value > highest[lane] ? value : highest[lane];
      nans[lane] += value != value;
    }
  }
  Extent extent{highest[0], nans[0]};
  for (size_t lane = 1; lane < kLanes; ++lane) {
    extent.highest = std::max(extent.highest, highest[lane]);
    extent.nans += nans[lane];
  }
  for (const float value : values.subspan(whole)) {
    extent.highest = value > extent.highest ? value : extent.highest;
    extent.nans += value != value;
  }
  return extent;
}

}  // namespace optima::sampling
