// Products and attention of random shapes: every variant against the reference. By default always
// the same few; OPTIMA_TEST_STEPS sets another number of each and OPTIMA_TEST_SEED where they begin
// (tests/long/kernels.sh).
#include <stdlib.h>

#include "tests/kernels/attention_testing.h"
#include "tests/kernels/matmul_testing.h"

namespace optima::kernels {
namespace {

int64_t number_of(const char* variable, int64_t otherwise) {
  const char* wanted = getenv(variable);
  return wanted == nullptr ? otherwise : atoll(wanted);
}

class RandomShapes : public ::testing::Test {
 protected:
  // In [1, most], mostly small.
  int64_t some(int64_t most) {
    const auto wide = static_cast<int64_t>(random_() % 4);
    const int64_t limit = wide == 0 ? most : std::min(most, int64_t{4} << (2 * wide));
    return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  template <typename T, size_t N>
  T one_of(const T (&choices)[N]) {
    return choices[random_() % N];
  }

  const int64_t steps_ = number_of("OPTIMA_TEST_STEPS", 40);
  std::mt19937_64 random_{static_cast<uint64_t>(number_of("OPTIMA_TEST_SEED", 1))};
};

TEST_F(RandomShapes, ProductsEqualTheReference) {
  const std::vector<Variant<MatmulKernel>> real = runnable_rows(matmul_variants());
  for (int64_t step = 0; step < steps_; ++step) {
    const WeightType type = one_of(testing::kAllTypes);
    const int64_t unit = testing::info_of(type).block_values;
    const int64_t k = unit * some(4096 / unit);
    const int64_t n = some(200);
    const int64_t m = std::min(some(150), 1 + 2'000'000 / (n * k));
    std::vector<Variant<MatmulKernel>> rows = testing::simulated_rows(type);
    rows.insert(rows.end(), real.begin(), real.end());
    for (const Variant<MatmulKernel>& row : rows) {
      testing::check(row, type, m, n, k);
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
  }
}

TEST_F(RandomShapes, AttentionEqualsTheReference) {
  constexpr KvType kTypes[] = {KvType::f16, KvType::f32, KvType::bf16, KvType::q8_0};
  for (int64_t step = 0; step < steps_; ++step) {
    AttentionShape shape;
    shape.tokens = some(70);
    shape.first_position = some(600) - 1;
    shape.kv_heads = some(4);
    shape.heads = shape.kv_heads * some(16);
    shape.head_dim = 8 * some(32);
    shape.window = random_() % 2 == 0 ? some(300) : 0;
    shape.softcap = random_() % 4 == 0 ? static_cast<float>(some(50)) : 0;
    shape.kv_type = one_of(kTypes);
    shape.sinks = random_() % 4 == 0;
    if (random_() % 8 == 0) {
      shape.window = 0;
      shape.mask = AttentionMask::all;
    }
    check(shape, static_cast<uint32_t>(random_()));
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
}

}  // namespace
}  // namespace optima::kernels
