// Paged decode attention on the host shim against the reference, through pages that the reference's
// own were turned into.
//
// Tolerance: as for the CPU's variants (tests/kernels/attention_testing.h): a score errs by about
// sqrt(head_dim) eps of its sum of magnitudes, a weight by twice that and the error of exp2, the
// result by max|V| times as much. On top, a group of lanes adds up to one token in four and
// rescales as often: (tokens / 4 + 16) eps of max|V|. What is stored in 16 bits rounds once more.
#include "kernels/attention/decode_attention.cuh"

#include <math.h>

#include "tests/cuda/gpu_kv.h"

namespace optima::kernels::cuda {
namespace {

constexpr float kKeyMax = 2.0f;
constexpr float kValueMax = 3.0f;

struct Layer {
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t head_dim = 64;
  int window = 0;
  float softcap = 0;
  KvType type = KvType::f16;
  bool sinks = false;
};

float tolerance(const Layer& layer, int32_t length) {
  const float eps = 6e-8f;
  const float root = sqrtf(static_cast<float>(layer.head_dim));
  const float score = root * eps * root * kKeyMax;
  return kValueMax * (2 * score + (static_cast<float>(length) / 4 + 16) * eps + 2e-6f);
}

// Sequences of one layer: queries, pages in a common pool, and the reference's answers.
template <typename T>
struct Problem {
  Problem(const Layer& of, std::vector<int32_t> of_lengths)
      : layer(of), lengths(std::move(of_lengths)) {
    std::mt19937 random(static_cast<uint32_t>(layer.head_dim + layer.heads));
    const int64_t row = layer.heads * layer.head_dim;
    const auto count = static_cast<int64_t>(lengths.size());
    q = narrowed<T>(random_floats(random, count * row));
    if (layer.sinks) sinks = random_floats(random, layer.heads, 4);
    for (const int32_t length : lengths) pages_stride = std::max(pages_stride, length / 16 + 1);
    pool =
        std::make_unique<GpuPool>(layer.type, layer.kv_heads, layer.head_dim, count * pages_stride);
    table.assign(static_cast<size_t>(count * pages_stride), -1);
    want.assign(static_cast<size_t>(count * row), 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      if (lengths[static_cast<size_t>(i)] > 0) add_sequence(i, count, random);
    }
  }

  void add_sequence(int64_t index, int64_t count, std::mt19937& random) {
    AttentionShape shape;
    shape.first_position = lengths[static_cast<size_t>(index)] - 1;
    shape.heads = layer.heads;
    shape.kv_heads = layer.kv_heads;
    shape.head_dim = layer.head_dim;
    shape.window = layer.window;
    shape.softcap = layer.softcap;
    shape.kv_type = layer.type;
    const int64_t values = shape.positions() * shape.kv_heads * shape.head_dim;
    const PagedKv kv(shape, random_floats(random, values, kKeyMax),
                     random_floats(random, values, kValueMax));
    for (int64_t p = 0; p < shape.pages(); ++p) {
      if (kv.pages()[p] == nullptr) continue;  // below the window: never read
      const int64_t page = p * count + index;
      table[static_cast<size_t>(index * pages_stride + p)] = static_cast<int32_t>(page);
      pool->fill_from(kv.pages()[p], kv, page);
    }
    const int64_t row = layer.heads * layer.head_dim;
    const std::vector<float> wide = widened(q);
    AttentionArgs args =
        attention_args(shape, kv, wide.data() + index * row, want.data() + index * row);
    args.sinks = sinks.empty() ? nullptr : sinks.data();
    scale = args.scale;
    run_all_items(kAttentionReference, args);
  }

  DecodeArgs<T> args(T* out, int splits, float* partial) {
    DecodeArgs<T> filled = {};
    filled.q = q.data();
    filled.q_stride = filled.out_stride = layer.heads * layer.head_dim;
    filled.out = out;
    filled.slots = pool->slots();
    filled.pages = table.data();
    filled.pages_stride = pages_stride;
    filled.lengths = lengths.data();
    filled.sequences = static_cast<int>(lengths.size());
    filled.heads = static_cast<int>(layer.heads);
    filled.window = layer.window;
    filled.scale = scale;
    filled.softcap = layer.softcap;
    filled.sinks = sinks.empty() ? nullptr : sinks.data();
    filled.splits = splits;
    filled.partial = partial;
    return filled;
  }

  Layer layer;
  std::vector<int32_t> lengths;
  Vector<T> q;
  std::vector<float> sinks;
  std::unique_ptr<GpuPool> pool;
  std::vector<int32_t> table;
  int32_t pages_stride = 1;
  float scale = 1;
  std::vector<float> want;
};

template <typename T>
void check(const Layer& layer, const std::vector<int32_t>& lengths,
           const std::vector<int>& splits) {
  Problem<T> problem(layer, lengths);
  const int64_t row = layer.heads * layer.head_dim;
  for (const int count : splits) {
    Vector<T> out;
    std::vector<float> partial(lengths.size() * static_cast<size_t>(layer.heads * count) *
                               static_cast<size_t>(layer.head_dim + 2));
    on_all_machines(
        [&](ce::Stream stream) {
          out.assign(problem.want.size(), ce::from_float<T>(7.0f));
          std::fill(partial.begin(), partial.end(), NAN);
          return decode_attention(problem.args(out.data(), count, partial.data()), layer.type,
                                  stream);
        },
        [&] {
          for (size_t i = 0; i < out.size(); ++i) {
            const int32_t length = lengths[i / static_cast<size_t>(row)];
            const float want = problem.want[i];
            ASSERT_NEAR(ce::to_float(out[i]), want, tolerance(layer, length) + half_unit<T>(want))
                << "heads " << layer.heads << "/" << layer.kv_heads << " dim " << layer.head_dim
                << " window " << layer.window << " type " << kv_type_name(layer.type) << " splits "
                << count << " length " << length << " value " << i % static_cast<size_t>(row);
          }
        });
  }
}

TEST(DecodeAttention, LengthsAndSplits) {
  // Row 3 fills up a batch; most splits of short sequences are empty.
  check<float>({.heads = 4, .kv_heads = 2, .head_dim = 64}, {1, 16, 17, 0, 100}, {1, 2, 7});
  check<ce::Half>({.heads = 2, .kv_heads = 1, .head_dim = 64}, {300}, {1, 5});
}

TEST(DecodeAttention, HeadSizes) {
  for (const int64_t head_dim : {8, 24, 80, 96, 128, 256, 512}) {
    check<float>({.heads = 2, .kv_heads = 1, .head_dim = head_dim}, {45}, {2});
    check<ce::Bf16>({.heads = 1, .kv_heads = 1, .head_dim = head_dim, .type = KvType::bf16}, {33},
                    {1});
  }
}

TEST(DecodeAttention, QueryHeadsPerKvHead) {
  for (const int64_t group : {1, 2, 3, 4, 5, 8, 9, 16}) {
    check<float>({.heads = 2 * group, .kv_heads = 2, .head_dim = 64}, {40}, {2});
    check<float>({.heads = group, .kv_heads = 1, .head_dim = 128}, {21}, {1});
  }
  check<float>({.heads = 8, .kv_heads = 1, .head_dim = 512}, {20}, {2});
}

TEST(DecodeAttention, QuantisedKv) {
  for (const int64_t head_dim : {64, 80, 128}) {
    check<float>({.heads = 4, .kv_heads = 2, .head_dim = head_dim, .type = KvType::q8_0}, {50, 7},
                 {1, 3});
    check<ce::Half>({.heads = 2, .kv_heads = 2, .head_dim = head_dim, .type = KvType::q8_0}, {20},
                    {2});
  }
}

TEST(DecodeAttention, WindowsCapsAndSinks) {
  for (const int window : {1, 9, 16, 30}) {
    for (const bool sinks : {false, true}) {
      check<float>({.heads = 4, .kv_heads = 2, .window = window, .sinks = sinks}, {5, 33, 90},
                   {1, 3});
    }
  }
  check<float>({.heads = 4, .kv_heads = 2, .softcap = 3}, {33}, {1, 2});
  check<float>({.heads = 4, .kv_heads = 2, .softcap = 3, .sinks = true}, {33}, {1, 2});
}

// A sink over nothing seen is the whole weight, and it has no value; one that weighs far more than
// the scores leaves nothing of the values.
TEST(DecodeAttention, SinksThatOutweighEverything) {
  Problem<float> problem({.heads = 2, .kv_heads = 1, .head_dim = 8, .sinks = true}, {20});
  problem.sinks = {500.0f, -INFINITY};
  Vector<float> out(16);
  std::vector<float> partial(2 * 3 * 10);
  for (const int splits : {1, 3}) {
    cuda_host::Machine machine;
    ASSERT_TRUE(
        decode_attention(problem.args(out.data(), splits, partial.data()), KvType::f16, &machine)
            .ok());
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(out[i], 0.0f);
    for (size_t i = 8; i < 16; ++i) EXPECT_NE(out[i], 0.0f);
  }
}

// The order of splits and blocks does not show: results are the same to the bit on every machine.
TEST(DecodeAttention, DoesNotDependOnTheOrderOfThreads) {
  Problem<float> problem({.heads = 4, .kv_heads = 2, .head_dim = 64}, {77, 12});
  std::vector<float> partial(static_cast<size_t>(2 * 4 * 4 * 66));
  std::vector<Vector<float>> outs;
  for (const NamedMachine& named : machines()) {
    outs.emplace_back(problem.want.size());
    ASSERT_TRUE(decode_attention(problem.args(outs.back().data(), 4, partial.data()), KvType::f16,
                                 named.machine.get())
                    .ok());
    EXPECT_EQ(outs.back(), outs.front()) << named.name;
  }
}

TEST(DecodeAttention, WhatIsRefused) {
  DecodeArgs<float> args = {};
  args.sequences = args.heads = args.splits = args.slots.kv_heads = 1;
  cuda_host::Machine machine;
  args.slots.head_dim = 64;
  EXPECT_FALSE(decode_attention(args, KvType::f32, &machine).ok());
  args.slots.head_dim = 60;
  EXPECT_FALSE(decode_attention(args, KvType::f16, &machine).ok());
  args.slots.head_dim = 520;
  EXPECT_FALSE(decode_attention(args, KvType::f16, &machine).ok());
  EXPECT_EQ(machine.launches(), 0);
}

TEST(Races, DecodeAttention) {
  check<ce::Half>({.heads = 2, .kv_heads = 1, .head_dim = 64}, {40}, {2});
  check<ce::Half>({.heads = 2, .kv_heads = 2, .head_dim = 128, .type = KvType::q8_0}, {20}, {1});
}

}  // namespace
}  // namespace optima::kernels::cuda
