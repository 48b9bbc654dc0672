// A query's attention is the same bits in a chunk of prefill, alone, and with its pieces shared by
// threads.
#include <string.h>

#include <algorithm>

#include "tests/kernels/attention_testing.h"

namespace optima::kernels {
namespace {

// The pieces of a problem of one block, as threads share them.
std::vector<float> solve_pieces(const Problem& problem, const PagedKv& kv,
                                const AttentionSplitKernel& kernel) {
  const AttentionShape& shape = problem.shape;
  std::vector<float> out(problem.q.size(), 99.0f);
  const AttentionArgs args = problem.args(kv, out.data());
  const int64_t seen =
      shape.window > 0 ? std::max<int64_t>(0, shape.first_position + 1 - shape.window) : 0;
  const int64_t first = attention_piece(seen / kPageTokens);
  const int64_t splits = attention_piece(shape.pages() - 1) - first + 1;
  std::vector<float> partial(
      static_cast<size_t>(shape.tokens * shape.heads * splits * (shape.head_dim + 2)));
  std::vector<unsigned char> scratch(
      kernel.scratch_bytes(shape.heads, shape.kv_heads, shape.head_dim));
  for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    for (int64_t split = 0; split < splits; ++split) {
      const int64_t begin = std::max(seen / kPageTokens, attention_piece_begin(first + split));
      const int64_t end =
          split + 1 == splits ? shape.pages() : attention_piece_begin(first + split + 1);
      kernel.run(args, kv_head, begin, end, split, splits, partial.data(), scratch.data());
    }
  }
  kernel.merge(args, 0, shape.tokens * shape.heads, splits, partial.data());
  return out;
}

std::vector<AttentionShape> shapes_to_compare() {
  return {
      AttentionShape{.tokens = 37, .first_position = 700, .heads = 9, .kv_heads = 3},
      AttentionShape{.tokens = 4, .first_position = 600, .heads = 9, .kv_heads = 3},
      AttentionShape{.tokens = 16, .first_position = 506, .heads = 9, .kv_heads = 3},
      AttentionShape{.tokens = 9,
                     .first_position = 4092,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 32,
                     .window = 256},
      AttentionShape{.tokens = 5,
                     .first_position = 333,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 32,
                     .window = 50},
      AttentionShape{.tokens = 300, .heads = 2, .kv_heads = 2, .head_dim = 24},
      AttentionShape{.tokens = 40, .first_position = 250, .heads = 8, .window = 100},
      AttentionShape{.tokens = 21,
                     .first_position = 900,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 80,
                     .window = 300,
                     .softcap = 20,
                     .sinks = true},
      AttentionShape{.tokens = 33,
                     .first_position = 500,
                     .heads = 3,
                     .kv_heads = 1,
                     .head_dim = 32,
                     .kv_type = KvType::f32},
      AttentionShape{
          .tokens = 37, .first_position = 700, .heads = 9, .kv_heads = 3, .kv_type = KvType::q8_0},
      AttentionShape{
          .tokens = 37, .first_position = 700, .heads = 9, .kv_heads = 3, .kv_type = KvType::bf16},
      AttentionShape{.tokens = 6,
                     .first_position = 510,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 80,
                     .window = 300,
                     .softcap = 20,
                     .kv_type = KvType::q8_0,
                     .sinks = true}};
}

// A token's result is the same bits in a chunk of prefill, alone, and alone with its pieces shared.
TEST(Attention, DoesNotDependOnWhatIsComputedBeside) {
  for (const AttentionShape& shape : shapes_to_compare()) {
    const Problem whole(shape);
    const PagedKv whole_kv(shape, whole.k, whole.v);
    const auto splits = runnable(attention_split_variants(), kSimSplit512);
    const auto rows = runnable(attention_variants(), kSim512);
    std::vector<std::vector<float>> together;
    for (size_t r = 0; r < rows.size(); ++r) {
      together.push_back(solve(whole, whole_kv, rows[r].kernel));
      if (shape.tokens > kQueryBlock) continue;
      ASSERT_EQ(solve_pieces(whole, whole_kv, splits[r].kernel), together[r])
          << rows[r].name << " in pieces " << describe(shape);
    }
    const auto token_values = static_cast<size_t>(shape.heads * shape.head_dim);
    for (int64_t token = 0; token < shape.tokens; token += 3) {
      AttentionShape one_shape = shape;
      one_shape.tokens = 1;
      one_shape.first_position = shape.first_position + token;
      Problem one = whole;
      one.shape = one_shape;
      one.q.assign(whole.q.begin() + token * static_cast<int64_t>(token_values),
                   whole.q.begin() + (token + 1) * static_cast<int64_t>(token_values));
      const auto kv_values = one_shape.positions() * shape.kv_heads * shape.head_dim;
      one.k.resize(static_cast<size_t>(kv_values));
      one.v.resize(static_cast<size_t>(kv_values));
      const PagedKv kv(one_shape, one.k, one.v);
      for (size_t r = 0; r < rows.size(); ++r) {
        const float* want = together[r].data() + static_cast<size_t>(token) * token_values;
        const std::vector<float> alone = solve(one, kv, rows[r].kernel);
        ASSERT_EQ(0, memcmp(alone.data(), want, token_values * sizeof(float)))
            << rows[r].name << " token " << token << " " << describe(shape);
        const std::vector<float> shared = solve_pieces(one, kv, splits[r].kernel);
        ASSERT_EQ(0, memcmp(shared.data(), want, token_values * sizeof(float)))
            << rows[r].name << " in pieces, token " << token << " " << describe(shape);
      }
    }
  }
}

// Every page is of one piece, and pieces follow each other without a gap.
TEST(AttentionPieces, CoverAllPages) {
  for (int64_t page = 0; page < 20000; ++page) {
    const int64_t piece = attention_piece(page);
    ASSERT_LT(piece, kAttentionPiecesMax);
    ASSERT_LE(attention_piece_begin(piece), page);
    const int64_t next = attention_piece_begin(piece + 1);
    ASSERT_TRUE(next > page || piece + 1 == kAttentionPiecesMax);
  }
}

}  // namespace
}  // namespace optima::kernels
