// The passes over the vocabulary in the words of kernels/vec/f32_*.h.
#pragma once

#include "kernels/vec/math.inl.h"
#include "kernels/vocabulary/vocabulary.h"

namespace optima::kernels {
namespace {

inline int64_t count_nans(const float* x, int64_t count) {
  int64_t nans = 0;
  for (int64_t i = 0; i < count; ++i) nans += x[i] != x[i] ? 1 : 0;
  return nans;
}

// The largest value of one block; adds its NaN to `nans`.
template <typename V>
inline float block_maximum(const float* x, int64_t count, int64_t& nans) {
  using Reg = typename V::Reg;
  Reg largest = V::set1(-__builtin_inff());
  // NaN as soon as a value of a lane was one: only then they are counted one by one. Infinities of
  // both signs give it too, and then there is nothing to count.
  Reg sums = V::zero();
  int64_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) {
    const Reg values = V::load(x + i);
    largest = V::max(values, largest);  // which stays where the value is NaN
    sums = V::add(values, sums);
  }
  float result = V::largest(largest);
  const float sum = V::sum(sums);
  if (sum != sum) nans += count_nans(x, i);
  nans += count_nans(x + i, count - i);
  for (; i < count; ++i) {
    if (x[i] > result) result = x[i];
  }
  return result;
}

template <typename V>
int64_t block_maxima(const float* x, int64_t count, float* maxima) {
  int64_t nans = 0;
  for (int64_t i = 0; i < count; i += kVocabularyBlock) {
    const int64_t rest = count - i;
    maxima[i / kVocabularyBlock] =
        block_maximum<V>(x + i, rest < kVocabularyBlock ? rest : kVocabularyBlock, nans);
  }
  return nans;
}

// max gives its second operand for NaN: the exponential of that is 0.
template <typename V>
inline typename V::Reg weight(typename V::Reg argument) {
  return vec_exp<V>(V::max(argument, V::set1(-88.0f)));
}

template <typename V, typename Function>
inline void map_row(const float* x, int64_t count, float* out, const Function& function) {
  int64_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) V::store(out + i, function(V::load(x + i)));
  if (const int64_t rest = count - i; rest > 0)
    V::store_n(out + i, function(V::load_n(x + i, rest)), rest);
}

template <typename V>
inline void weigh_row(const float* x, int64_t count, float highest, float temperature, float* out) {
  using Reg = typename V::Reg;
  const Reg highests = V::set1(highest);
  // Divided, not multiplied by an inverse: that would be a rounding more, of an argument of up to
  // 87. At temperature 1 there is nothing to divide.
  if (temperature == 1.0f) {
    map_row<V>(x, count, out, [highests](Reg v) { return weight<V>(V::sub(v, highests)); });
    return;
  }
  const Reg temperatures = V::set1(temperature);
  map_row<V>(x, count, out, [highests, temperatures](Reg v) {
    return weight<V>(V::div(V::sub(v, highests), temperatures));
  });
}

// Sixteen lanes: enough chains of additions for any vector of doubles.
inline double sum_in_double(const float* terms, int64_t count) {
  constexpr int64_t kLanes = 16;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += static_cast<double>(terms[i + lane]);
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) sums[lane] += static_cast<double>(terms[i]);
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

template <typename V>
void block_masses(const float* x, int64_t count, float highest, float temperature, double* masses) {
  float terms[kVocabularyBlock];
  for (int64_t i = 0; i < count; i += kVocabularyBlock) {
    const int64_t rest = count - i;
    const int64_t block = rest < kVocabularyBlock ? rest : kVocabularyBlock;
    weigh_row<V>(x + i, block, highest, temperature, terms);
    masses[i / kVocabularyBlock] = sum_in_double(terms, block);
  }
}

}  // namespace
}  // namespace optima::kernels
