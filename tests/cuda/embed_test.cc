// Embedding rows on the host shim against the reference dequantisation, for every weight type.
//
// A weight is two or three products and a difference, in another order than the reference may have
// them: 3 eps of the largest term. Scales here are about 1 and codes below 256 (times 63 in the
// types with two scales); mxfp4 scales are powers of two and err nothing.
#include <math.h>

#include "kernels/embed/embed.cuh"
#include "tests/cuda/element_testing.h"
#include "tests/kernels/matmul_testing.h"

namespace optima::kernels::cuda {
namespace {

constexpr int kWidth = 512;
constexpr int kVocabulary = 5;

// The largest magnitude of a block stands for the terms of each of its values.
float allowed(const std::vector<float>& row, size_t at) {
  float largest = 0;
  const size_t begin = at / 256 * 256;
  for (size_t i = begin; i < begin + 256; ++i) largest = fmaxf(largest, fabsf(row[i]));
  return 2e-7f * largest;
}

template <typename T>
void check(WeightType type) {
  std::mt19937 random(static_cast<uint32_t>(type));
  const std::vector<uint8_t> weights =
      kernels::testing::random_weights(type, kVocabulary, kWidth, random);
  // On a GPU tables begin at multiples of 256 bytes.
  const Vector<uint8_t> table(weights.begin(), weights.end());
  const size_t bytes = row_bytes(kernels::testing::info_of(type), kWidth);
  const std::vector<int32_t> ids = {4, 0, 4, 2, -1, kVocabulary};
  constexpr int64_t kStride = kWidth + 3;
  Vector<T> out;
  on_all_machines(
      [&](ce::Stream stream) {
        out.assign(ids.size() * kStride, ce::from_float<T>(7.0f));
        EmbedArgs<T> args = {};
        args.table = table.data();
        args.vocabulary = kVocabulary;
        args.ids = ids.data();
        args.out = out.data();
        args.out_stride = kStride;
        args.tokens = static_cast<int64_t>(ids.size());
        args.width = kWidth;
        args.scale = 0.5f;
        return embed(args, type, stream);
      },
      [&] {
        std::vector<float> row(kWidth);
        for (size_t token = 0; token < ids.size(); ++token) {
          const T* got = out.data() + token * kStride;
          const bool known = ids[token] >= 0 && ids[token] < kVocabulary;
          if (known) {
            dequant_row(type)(weights.data() + static_cast<size_t>(ids[token]) * bytes, row.data(),
                              kWidth);
          }
          for (size_t i = 0; i < kWidth; ++i) {
            const float value = ce::to_float(got[i]);
            ASSERT_EQ(isnan(value), !known) << token;
            if (!known) continue;
            const float want = 0.5f * row[i];
            ASSERT_NEAR(value, want, allowed(row, i) + half_unit<T>(want))
                << kernels::testing::info_of(type).name << " token " << token << " value " << i;
          }
          for (size_t i = kWidth; i < kStride; ++i) ASSERT_EQ(ce::to_float(got[i]), 7.0f);
        }
      });
}

TEST(Embed, RowsOfEveryWeightType) {
  for (const WeightType type : kernels::testing::kAllTypes) {
    check<float>(type);
    check<ce::Half>(type);
  }
}

TEST(Embed, BlockSizesAreThoseOfTheTable) {
  for (const WeightType type : kernels::testing::kAllTypes) {
    const WeightTypeInfo& info = kernels::testing::info_of(type);
    EXPECT_EQ(block_size(type).values, info.block_values) << info.name;
    EXPECT_EQ(block_size(type).bytes, info.block_bytes) << info.name;
  }
}

TEST(Races, Embed) {
  check<ce::Half>(WeightType::q4_k);
}

}  // namespace
}  // namespace optima::kernels::cuda
