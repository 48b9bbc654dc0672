// What a windowed kernel reads: the pages of its window and no others, which are not even there.
#include <gtest/gtest.h>

#include "tests/kernels/paged_kv.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

// kv-and-quantisation.md 6.3, "Windowed kernel still reads all blocks": window 512 at 16K, where
// 97 of 100 reads would be for nothing. A page that is not in the list cannot be read: it is null.
TEST(DocumentedFaults, AWindowedKernelReadsThePagesOfItsWindowAlone) {
  for (const KvType type : {KvType::f16, KvType::bf16, KvType::q8_0}) {
    const AttentionShape shape = {.tokens = 1,
                                  .first_position = 16'383,
                                  .heads = 2,
                                  .kv_heads = 1,
                                  .head_dim = 16,
                                  .window = 512,
                                  .kv_type = type};
    std::mt19937 random(3);
    const std::vector<float> q = random_floats(random, shape.heads * shape.head_dim);
    const std::vector<float> k = random_floats(random, shape.positions() * shape.head_dim);
    const std::vector<float> v = random_floats(random, shape.positions() * shape.head_dim);
    const PagedKv kv(shape, k, v);
    int64_t listed = 0;
    for (int64_t page = 0; page < shape.pages(); ++page) listed += kv.pages()[page] != nullptr;
    EXPECT_EQ(listed, 512 / kPageTokens) << "of " << shape.pages();
    std::vector<float> want(q.size());
    run_all_items(kAttentionReference, attention_args(shape, kv, q.data(), want.data()));
    for (const auto& row : runnable_rows(attention_variants())) {
      std::vector<float> out(q.size(), 99.0f);
      run_all_items(row.fn, attention_args(shape, kv, q.data(), out.data()));
      for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want[i], 2e-3f) << row.name;
    }
  }
}

}  // namespace
}  // namespace optima::kernels
