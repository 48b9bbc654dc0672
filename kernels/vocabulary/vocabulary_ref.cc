// The passes over the vocabulary in plain loops; exp in double.
#include <math.h>

#include "kernels/vocabulary/vocabulary.h"

namespace optima::kernels {
namespace {

int64_t maxima_ref(const float* x, int64_t count, float* maxima) {
  int64_t nans = 0;
  for (int64_t i = 0; i < count; ++i) {
    float& largest = maxima[i / kVocabularyBlock];
    if (i % kVocabularyBlock == 0) largest = -INFINITY;
    if (isnan(x[i])) ++nans;
    if (x[i] > largest) largest = x[i];
  }
  return nans;
}

double weight(float x, float highest, float temperature) {
  const double argument = (static_cast<double>(x) - static_cast<double>(highest)) / temperature;
  return argument >= -87.3 ? exp(argument) : 0.0;  // NaN is not
}

void weights_ref(const float* x, int64_t count, float highest, float temperature, float* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(weight(x[i], highest, temperature));
}

void masses_ref(const float* x, int64_t count, float highest, float temperature, double* masses) {
  for (int64_t i = 0; i < count; ++i) {
    double& mass = masses[i / kVocabularyBlock];
    if (i % kVocabularyBlock == 0) mass = 0;
    mass += weight(x[i], highest, temperature);
  }
}

}  // namespace

const VocabularyKernel kVocabularyReference = {maxima_ref, weights_ref, masses_ref};

}  // namespace optima::kernels
