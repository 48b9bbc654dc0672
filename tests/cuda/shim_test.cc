// The host half of kernels/cuda/ce.h itself: what its words compute. Expected values come from the
// definitions: naive sums, products of whole matrices, and for the places of a matrix's elements
// the tables of the PTX ISA.
#include <math.h>

#include <numeric>
#include <random>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/half.h"
#include "tests/cuda/shim_testing.h"

namespace optima::kernels::cuda {
namespace {

struct Indices {
  int* thread;  // [blocks][threads]: the thread, its lane, its warp
  int* lane;
  int* warp;
  int* block;  // [blocks][3]
};

CE_GLOBAL(96) indices_kernel(Indices to) {
  const int block = ce::block_x() + ce::grid_x() * (ce::block_y() + ce::grid_y() * ce::block_z());
  const int at = block * ce::block_threads() + ce::thread_x();
  to.thread[at] = ce::thread_x();
  to.lane[at] = ce::lane();
  to.warp[at] = ce::warp();
  if (ce::thread_x() == 0) {
    to.block[3 * block] = ce::block_x();
    to.block[3 * block + 1] = ce::block_y();
    to.block[3 * block + 2] = ce::block_z();
  }
}

TEST(Shim, EveryThreadOfEveryBlockRunsOnce) {
  constexpr int kBlocks = 2 * 3 * 2;
  std::vector<int> thread(kBlocks * 70, -1);
  std::vector<int> lane = thread;
  std::vector<int> warp = thread;
  std::vector<int> block(kBlocks * 3, -1);
  on_all_machines(
      [&](ce::Stream stream) {
        const Indices to = {thread.data(), lane.data(), warp.data(), block.data()};
        return ce::launch(indices_kernel, {"indices", {2, 3, 2}, 70, 0, stream}, to);
      },
      [&] {
        for (int i = 0; i < kBlocks * 70; ++i) {
          ASSERT_EQ(thread[i], i % 70);
          ASSERT_EQ(lane[i], i % 70 % 32);
          ASSERT_EQ(warp[i], i % 70 / 32);
        }
        for (int i = 0; i < kBlocks; ++i) {
          ASSERT_EQ(block[3 * i], i % 2);
          ASSERT_EQ(block[3 * i + 1], i / 2 % 3);
          ASSERT_EQ(block[3 * i + 2], i / 6);
        }
        std::fill(thread.begin(), thread.end(), -1);
      });
}

template <int kThreads>
CE_GLOBAL(kThreads)
block_sum_kernel(const float* x, float* sums) {
  // Twice, as the reduction's memory is used again.
  const float once = block_sum<kThreads>(x[ce::thread_x()]);
  const float twice = block_sum<kThreads>(2 * x[ce::thread_x()]);
  sums[ce::thread_x()] = once + twice;
}

TEST(Shim, BlockSum) {
  std::vector<float> x(256);
  std::iota(x.begin(), x.end(), -17.0f);  // whole numbers: sums are exact in any order
  std::vector<float> sums(256);
  const float want = 3 * std::accumulate(x.begin(), x.end(), 0.0f);
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(block_sum_kernel<256>, {"block_sum", {1}, 256, 0, stream}, x.data(),
                          sums.data());
      },
      [&] { ASSERT_EQ(sums, std::vector<float>(256, want)); });
}

constexpr int kWordResults = 9;
CE_GLOBAL(32) warp_words_kernel(int* results) {
  const int lane = ce::lane();
  int* mine = results + lane * kWordResults;
  mine[0] = ce::shfl(ce::kFullMask, lane * 10, 5);
  mine[1] = ce::shfl(ce::kFullMask, lane * 10, (lane + 3) % 32);
  mine[2] = ce::shfl_up(ce::kFullMask, lane * 10, 3);
  mine[3] = ce::shfl_down(ce::kFullMask, lane * 10, 3);
  mine[4] = ce::shfl_xor(ce::kFullMask, lane * 10, 6);
  // Two halves of the warp, each with a mask of its own, at the same time.
  const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  mine[5] = ce::shfl_xor(half, lane, 1);
  mine[6] = static_cast<int>(ce::ballot(ce::kFullMask, lane % 3 == 0));
  mine[7] = ce::any(half, lane == 20) + 2 * ce::all(half, lane >= 16);
  ce::syncwarp(ce::kFullMask);
  mine[8] = static_cast<int>(ce::shfl_xor(ce::kFullMask, 0.5 + lane, 31) * 2);  // 8 bytes
}

TEST(Shim, WarpWords) {
  std::vector<int> results(32 * kWordResults);
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(warp_words_kernel, {"warp_words", {1}, 32, 0, stream}, results.data());
      },
      [&] {
        for (int lane = 0; lane < 32; ++lane) {
          const int* mine = results.data() + lane * kWordResults;
          ASSERT_EQ(mine[0], 50);
          ASSERT_EQ(mine[1], (lane + 3) % 32 * 10);
          ASSERT_EQ(mine[2], (lane < 3 ? lane : lane - 3) * 10);
          ASSERT_EQ(mine[3], (lane > 28 ? lane : lane + 3) * 10);
          ASSERT_EQ(mine[4], (lane ^ 6) * 10);
          ASSERT_EQ(mine[5], lane ^ 1);
          ASSERT_EQ(static_cast<unsigned>(mine[6]), 0x49249249u);
          ASSERT_EQ(mine[7], lane < 16 ? 0 : 3);
          ASSERT_EQ(mine[8], 2 * (31 - lane) + 1);
        }
      });
}

// A tile of A [16, 16] and of B, which lies transposed [8, 16], by asynchronous copies; ldmatrix;
// one product. kTransposed: B lies as it is, [16, 8], and the transposing ldmatrix is used.
template <bool kTransposed>
CE_GLOBAL(32)
tile_kernel(const ce::Half* a, const ce::Half* b, float* c) {
  CE_SHARED(a_tile, ce::Half, [16 * 16]);
  CE_SHARED(b_tile, ce::Half, [16 * 8]);
  const int lane = ce::lane();
  ce::copy_async16(a_tile + 8 * lane, a + 8 * lane);
  if (lane < 16) ce::copy_async16(b_tile + 8 * lane, b + 8 * lane);
  ce::copy_commit();
  ce::copy_wait<0>();
  ce::sync();
  unsigned a_part[4];
  ce::ldmatrix(a_part, a_tile + lane % 16 * 16 + lane / 16 * 8);
  unsigned b_part[2];
  if (kTransposed) {
    ce::ldmatrix_transposed(b_part, b_tile + lane % 16 * 8);
  } else {
    ce::ldmatrix(b_part, b_tile + lane % 8 * 16 + lane / 8 % 2 * 8);
  }
  float sums[4] = {1, 1, 1, 1};
  ce::mma_f16(sums, a_part, b_part);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

std::vector<ce::Half> small_halves(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<ce::Half> values(count);
  // Eighths up to 2: every product and sum of sixteen of them is exact.
  for (ce::Half& value : values) {
    value = {float_to_half(static_cast<float>(static_cast<int>(random() % 33) - 16) / 8)};
  }
  return values;
}

TEST(Shim, TileByAsynchronousCopiesAndLdmatrix) {
  const auto a = small_halves(256, 1);
  const auto b = small_halves(128, 2);
  std::vector<float> c(128);
  for (const bool transposed : {false, true}) {
    on_all_machines(
        [&](ce::Stream stream) {
          const ce::Launch config = {"tile", {1}, 32, 0, stream};
          return transposed ? ce::launch(tile_kernel<true>, config, a.data(), b.data(), c.data())
                            : ce::launch(tile_kernel<false>, config, a.data(), b.data(), c.data());
        },
        [&] {
          for (int row = 0; row < 16; ++row) {
            for (int column = 0; column < 8; ++column) {
              float want = 1;
              for (int k = 0; k < 16; ++k) {
                const ce::Half right = transposed ? b[k * 8 + column] : b[column * 16 + k];
                want += ce::to_float(a[row * 16 + k]) * ce::to_float(right);
              }
              ASSERT_EQ(c[row * 8 + column], want) << row << ", " << column;
            }
          }
        });
  }
}

// Fragments filled by the tables of the PTX ISA, element by element: a_i and b_i of a lane.
template <typename T, int kElementsA, int kElementsB>
struct Fragment {
  alignas(16) T a[kElementsA];
  alignas(8) T b[kElementsB];
};

// m16n8k8 (16 bits): a0, a1 row g, a2, a3 row g + 8, columns 2 t + (i & 1); b row 2 t + (i & 1).
// m16n8k16: a0 a1 a4 a5 row g, the others g + 8; a4 … a7 8 columns on; b2, b3 8 rows on.
template <int kK>
CE_GLOBAL(32)
mma16_kernel(const uint16_t* a, const uint16_t* b, float* c, bool bf16) {
  const int group = ce::lane() / 4;
  const int in_group = ce::lane() % 4;
  Fragment<uint16_t, kK / 2, kK / 4> own;
  for (int i = 0; i < kK / 2; ++i) {
    const int row = i % 4 < 2 ? group : group + 8;
    own.a[i] = a[row * kK + in_group * 2 + (i & 1) + (i < 4 ? 0 : 8)];
  }
  for (int i = 0; i < kK / 4; ++i) {
    own.b[i] = b[(in_group * 2 + (i & 1) + (i < 2 ? 0 : 8)) * 8 + group];
  }
  unsigned a_part[kK / 4];
  unsigned b_part[kK / 8];
  memcpy(a_part, own.a, sizeof a_part);
  memcpy(b_part, own.b, sizeof b_part);
  float sums[4] = {};
  if (bf16) {
    ce::mma_bf16(sums, a_part, b_part);
  } else {
    ce::mma_f16(sums, a_part, b_part);
  }
  for (int i = 0; i < 4; ++i) {
    c[(i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)] = sums[i];
  }
}

template <int kK>
void check_mma16(bool bf16) {
  std::mt19937 random(kK);
  std::vector<float> a(16 * kK);
  std::vector<float> b(8 * kK);
  std::vector<uint16_t> a_bits;
  std::vector<uint16_t> b_bits;
  const auto bits = [bf16](float x) { return bf16 ? float_to_bf16(x) : float_to_half(x); };
  for (float& x : a) a_bits.push_back(bits(x = static_cast<float>(random() % 33) - 16));
  for (float& x : b) b_bits.push_back(bits(x = static_cast<float>(random() % 33) - 16));
  std::vector<float> c(128, -1);
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(mma16_kernel<kK>, {"mma16", {1}, 32, 0, stream}, a_bits.data(),
                          b_bits.data(), c.data(), bf16);
      },
      [&] {
        for (int i = 0; i < 128; ++i) {
          float want = 0;
          for (int k = 0; k < kK; ++k) want += a[i / 8 * kK + k] * b[k * 8 + i % 8];
          ASSERT_EQ(c[i], want) << i;
        }
      });
}

TEST(Shim, MatrixProductsOf16Bits) {
  for (const bool bf16 : {false, true}) {
    check_mma16<8>(bf16);
    check_mma16<16>(bf16);
  }
}

// m16n8k32: a0-a3 and a8-a11 row g, the others g + 8; columns 4 t + (i & 3), a8 … a15 16 on;
// b rows 4 t + (i & 3), b4 … b7 16 on.
CE_GLOBAL(32) mma8_kernel(const int8_t* a, const int8_t* b, int* c) {
  const int group = ce::lane() / 4;
  const int in_group = ce::lane() % 4;
  Fragment<int8_t, 16, 8> own;
  for (int i = 0; i < 16; ++i) {
    const int row = i % 8 < 4 ? group : group + 8;
    own.a[i] = a[row * 32 + in_group * 4 + (i & 3) + (i < 8 ? 0 : 16)];
  }
  for (int i = 0; i < 8; ++i) {
    own.b[i] = b[(in_group * 4 + (i & 3) + (i < 4 ? 0 : 16)) * 8 + group];
  }
  unsigned a_part[4];
  unsigned b_part[2];
  memcpy(a_part, own.a, sizeof a_part);
  memcpy(b_part, own.b, sizeof b_part);
  int sums[4] = {5, 5, 5, 5};
  ce::mma_s8(sums, a_part, b_part);
  for (int i = 0; i < 4; ++i) {
    c[(i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)] = sums[i];
  }
}

TEST(Shim, MatrixProductsOfBytes) {
  std::mt19937 random(5);
  std::vector<int8_t> a(16 * 32);
  std::vector<int8_t> b(32 * 8);
  for (int8_t& x : a) x = static_cast<int8_t>(random());
  for (int8_t& x : b) x = static_cast<int8_t>(random());
  std::vector<int> c(128);
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(mma8_kernel, {"mma8", {1}, 32, 0, stream}, a.data(), b.data(), c.data());
      },
      [&] {
        for (int i = 0; i < 128; ++i) {
          int want = 5;
          for (int k = 0; k < 32; ++k) want += a[i / 8 * 32 + k] * b[k * 8 + i % 8];
          ASSERT_EQ(c[i], want) << i;
        }
      });
}

// Three stages of copies, waited for one after another: what is waited for is there, and the tail
// of a short copy is zero.
CE_GLOBAL(32) stages_kernel(const uint8_t* from, uint8_t* to) {
  CE_SHARED(stage, uint8_t, [3][512]);
  const int at = ce::lane() * 16;
  for (int i = 0; i < 3; ++i) {
    ce::copy_async16(&stage[i][at], from + 512 * i + at, i == 2 ? 10 : 16);
    ce::copy_commit();
  }
  ce::copy_wait<2>();
  for (int i = 0; i < 16; ++i) to[at + i] = stage[0][at + i];
  ce::copy_wait<0>();
  for (int i = 0; i < 16; ++i) to[512 + at + i] = stage[1][at + i];
  for (int i = 0; i < 16; ++i) to[1024 + at + i] = stage[2][at + i];
}

TEST(Shim, StagesOfCopies) {
  alignas(16) uint8_t from[1536];
  for (int i = 0; i < 1536; ++i) from[i] = static_cast<uint8_t>(i % 251);
  std::vector<uint8_t> to(1536);
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(stages_kernel, {"stages", {1}, 32, 0, stream}, from, to.data());
      },
      [&] {
        for (int i = 0; i < 1536; ++i) {
          ASSERT_EQ(to[i], i >= 1024 && i % 16 >= 10 ? 0 : from[i]) << i;
        }
      });
}

CE_GLOBAL(64) histogram_kernel(const int* values, int* bins, int* largest, float* sum) {
  const int value = values[ce::block_x() * 64 + ce::thread_x()];
  ce::atomic_add(bins + value, 1);
  ce::atomic_max(largest, value);
  ce::atomic_add(sum, static_cast<float>(value));
}

TEST(Shim, Atomics) {
  std::vector<int> values(64 * 9);
  std::vector<int> want(16);
  for (size_t i = 0; i < values.size(); ++i) ++want[values[i] = static_cast<int>(i * i % 13)];
  std::vector<int> bins(16);
  int largest = -1;
  float sum = 0;
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(histogram_kernel, {"histogram", {9}, 64, 0, stream}, values.data(),
                          bins.data(), &largest, &sum);
      },
      [&] {
        ASSERT_EQ(bins, want);
        ASSERT_EQ(largest, 12);
        ASSERT_EQ(sum, std::accumulate(values.begin(), values.end(), 0.0f));
        std::fill(bins.begin(), bins.end(), 0);
        sum = 0;
      });
}

// A flag between threads of a block, waited for in a loop.
CE_GLOBAL(64) flag_kernel(int* flag, int* seen) {
  if (ce::thread_x() == 0) {
    while (ce::atomic_load(flag) == 0) ce::pause();
    *seen = 1;
  } else if (ce::thread_x() == 40) {
    ce::atomic_exchange(flag, 1);
  }
}

TEST(Shim, LoopsThatWaitLetOthersRun) {
  int flag = 0;
  int seen = 0;
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(flag_kernel, {"flag", {1}, 64, 0, stream}, &flag, &seen);
      },
      [&] {
        ASSERT_EQ(seen, 1);
        flag = seen = 0;
      });
}

CE_GLOBAL(32) dp4a_kernel(const int* a, const int* b, int* c) {
  c[ce::lane()] = ce::dp4a(a[ce::lane()], b[ce::lane()], ce::lane());
}

TEST(Shim, Dp4a) {
  std::vector<int> a(32, static_cast<int>(0x80ff017fu));  // bytes 127, 1, -1, -128
  std::vector<int> b(32, static_cast<int>(0x02fe0380u));  // bytes -128, 3, -2, 2
  std::vector<int> c(32);
  on_all_machines(
      [&](ce::Stream stream) {
        return ce::launch(dp4a_kernel, {"dp4a", {1}, 32, 0, stream}, a.data(), b.data(), c.data());
      },
      [&] {
        for (int i = 0; i < 32; ++i) {
          ASSERT_EQ(c[i], 127 * -128 + 1 * 3 + -1 * -2 + -128 * 2 + i);
        }
      });
}

}  // namespace
}  // namespace optima::kernels::cuda
