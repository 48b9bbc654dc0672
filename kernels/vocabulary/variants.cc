// Variants of the passes over the vocabulary, best first.
#include "kernels/vocabulary/vocabulary.h"

namespace optima::kernels {

using MaximaFn = int64_t(const float* x, int64_t count, float* maxima);
using WeightsFn = void(const float* x, int64_t count, float highest, float temperature, float* out);
using MassesFn = void(const float* x, int64_t count, float highest, float temperature,
                      double* masses);

namespace avx512 {
MaximaFn vocabulary_maxima;
WeightsFn vocabulary_weights;
MassesFn vocabulary_masses;
}  // namespace avx512
namespace avx2 {
MaximaFn vocabulary_maxima;
WeightsFn vocabulary_weights;
MassesFn vocabulary_masses;
}  // namespace avx2
namespace neon {
MaximaFn vocabulary_maxima;
WeightsFn vocabulary_weights;
MassesFn vocabulary_masses;
}  // namespace neon
namespace baseline {
MaximaFn vocabulary_maxima;
WeightsFn vocabulary_weights;
MassesFn vocabulary_masses;
}  // namespace baseline

Variants<VocabularyKernel> vocabulary_variants() {
  static constexpr auto kRows = rows_here<VocabularyKernel>({
      {"vocabulary_avx512",
       kIsaAvx2 | kIsaAvx512,
       {avx512::vocabulary_maxima, avx512::vocabulary_weights, avx512::vocabulary_masses}},
      {"vocabulary_avx2",
       kIsaAvx2,
       {avx2::vocabulary_maxima, avx2::vocabulary_weights, avx2::vocabulary_masses}},
      {"vocabulary_neon",
       kIsaNeon,
       {neon::vocabulary_maxima, neon::vocabulary_weights, neon::vocabulary_masses}},
      {"vocabulary_base",
       kIsaNone,
       {baseline::vocabulary_maxima, baseline::vocabulary_weights, baseline::vocabulary_masses}},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
