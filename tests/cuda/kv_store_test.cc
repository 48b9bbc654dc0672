// Appending to GPU pages on the host shim: the same bytes as the CPU's reference stores, K turned.
// The two agree to the bit where a value is only rounded; codes of q8_0 are quotients, which a GPU
// may round otherwise by one.
#include "kernels/kv_store/kv_store.cuh"

#include <math.h>

#include "tests/cuda/gpu_kv.h"

namespace optima::kernels::cuda {
namespace {

constexpr int64_t kTokens = 37;

struct Problem {
  Problem(KvType type, int64_t kv_heads, int64_t head_dim) {
    shape.tokens = kTokens;
    shape.heads = shape.kv_heads = kv_heads;
    shape.head_dim = head_dim;
    shape.kv_type = type;
    std::mt19937 random(static_cast<uint32_t>(head_dim));
    k = random_floats(random, kTokens * kv_heads * head_dim, 3);
    v = random_floats(random, kTokens * kv_heads * head_dim, 3);
    k[5] = 1e6f;  // above what f16 holds
    k[static_cast<size_t>(head_dim) - 1] = -3e38f;
    v[1] = NAN;
    v[2] = INFINITY;
    for (int i = 0; i < 8; ++i) v[v.size() - 1 - static_cast<size_t>(i)] = 0;
  }
  AttentionShape shape;
  std::vector<float> k;
  std::vector<float> v;
};

// Bytes that differ by one at most, where they are codes; else none.
void expect_slot(const unsigned char* got, const std::vector<unsigned char>& want,
                 const AttentionShape& shape) {
  const auto half = static_cast<size_t>(kv_half_bytes(shape.kv_type, shape.head_dim));
  const auto codes = static_cast<size_t>(kPageTokens * shape.head_dim);
  for (size_t i = 0; i < want.size(); ++i) {
    if (shape.kv_type == KvType::q8_0 && i % half < codes) {
      ASSERT_NEAR(static_cast<int8_t>(got[i]), static_cast<int8_t>(want[i]), 1) << "byte " << i;
    } else {
      ASSERT_EQ(got[i], want[i]) << "byte " << i << " of " << kv_type_name(shape.kv_type);
    }
  }
}

template <typename T>
void check(KvType type, int64_t kv_heads, int64_t head_dim) {
  Problem problem(type, kv_heads, head_dim);
  const Vector<T> k = narrowed<T>(problem.k);
  const Vector<T> v = narrowed<T>(problem.v);
  const PagedKv kv(problem.shape, widened(k), widened(v));
  const std::vector<int32_t> pages = {2, 0, 3};  // page 1 belongs to somebody else
  std::vector<int32_t> places(kTokens + 2, -1);  // two rows that fill up a batch
  for (int32_t i = 0; i < kTokens; ++i) {
    places[static_cast<size_t>(i)] = pages[static_cast<size_t>(i / 16)] * 16 + i % 16;
  }
  const int64_t row = kv_heads * head_dim;
  std::unique_ptr<GpuPool> pool;
  on_all_machines(
      [&](ce::Stream stream) {
        pool = std::make_unique<GpuPool>(type, kv_heads, head_dim, 4);
        KvStoreArgs<T> args = {};
        args.k = k.data();
        args.k_stride = args.v_stride = row;
        args.v = v.data();
        args.slots = pool->slots();
        args.places = places.data();
        args.tokens = kTokens;
        // The rows that fill up a batch are not read.
        args.tokens += 2;
        return kv_store(args, type, stream);
      },
      [&] {
        for (int64_t head = 0; head < kv_heads; ++head) {
          for (size_t page = 0; page < 3; ++page) {
            const std::vector<unsigned char> want =
                gpu_slot(kv.pages()[page] + kv.offset() + head * kv.slot_bytes(), type, head_dim);
            expect_slot(pool->slot(pages[page], head), want, problem.shape);
          }
          const std::vector<unsigned char> none(static_cast<size_t>(pool->slot_bytes()), 0xff);
          expect_slot(pool->slot(1, head), none, problem.shape);
          expect_slot(pool->slot(0, -1), none, problem.shape);  // another layer's
        }
      });
}

TEST(GpuKvStore, StoresWhatTheReferenceStores) {
  for (const KvType type : {KvType::f16, KvType::bf16, KvType::q8_0}) {
    for (const int64_t head_dim : {8, 64, 80, 128}) {
      check<float>(type, 2, head_dim);
      check<ce::Half>(type, 1, head_dim);
    }
    check<ce::Bf16>(type, 3, 256);
  }
}

TEST(GpuKvStore, F32IsRefused) {
  KvStoreArgs<float> args = {};
  args.tokens = 1;
  cuda_host::Machine machine;
  EXPECT_FALSE(kv_store(args, KvType::f32, &machine).ok());
  EXPECT_EQ(machine.launches(), 0);
}

TEST(Races, KvStore) {
  check<ce::Half>(KvType::f16, 2, 64);
  check<ce::Half>(KvType::q8_0, 2, 80);
}

}  // namespace
}  // namespace optima::kernels::cuda
