// The matrix products for AVX-512 over simulated vectors (kernels/vec/sim512.h), and those for AVX2
// with VNNI and for AVX-512 BF16 over simulated instructions, against the reference. Whether this
// CPU also runs the real ones is told by matmul_test.cc.

#include <gtest/gtest.h>

#include "kernels/matmul/coarse.inl.h"
#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/panel_dot.inl.h"
#include "kernels/matmul/rows.h"
#include "kernels/matmul/tiles.inl.h"
#include "kernels/vec/sim512.h"
#include "tests/kernels/bf16_simulation.inl.h"
#include "tests/kernels/matmul_testing.h"
#include "tests/kernels/tiles_simulation.inl.h"

namespace optima::kernels {
namespace {

using namespace optima::kernels::testing;

constexpr KernelTable kTable = make_table<PanelDot<Sim512>>();
constexpr WideTable kArranged = make_wide_table<SevensGemm<Sim512>>();
constexpr WideTable kCoarse = make_wide_table<CoarseGemm<Sim512>>();

void run(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  run_table(kTable, args, n_begin, n_end);
}
size_t scratch_bytes(int64_t /*m*/, int64_t k) {
  return table_scratch_bytes(k);
}

size_t panels_bytes(WeightType type, int64_t n, int64_t k) {
  return table_panels_bytes(kTable, type, n, k);
}
void pack(const MatmulArgs& args, int64_t n_begin, int64_t n_end, uint8_t* panels) {
  pack_table(kTable, args, n_begin, n_end, panels);
}

constexpr Variant<MatmulKernel> kSimulated = {
    "matmul_sim512", kIsaNone, {run, scratch_bytes, 32, panels_bytes, pack}};

void run_arranged(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (args.arranged == nullptr) return run(args, n_begin, n_end);
  run_wide(args.row_sums == RowSums::alike ? kArranged : kCoarse, args, n_begin, n_end);
}
size_t arranged_scratch(int64_t /*m*/, int64_t k) {
  return std::max(table_scratch_bytes(k), static_cast<size_t>(arranged_scratch_bytes()));
}
constexpr Variant<MatmulKernel> kSimulatedBf16 = {
    "matmul_simbf16", kIsaNone, {run_bf16<Sim512, run>, scratch_bytes, 32, nullptr, nullptr}};

constexpr WideTable kWideTable = make_wide_table<TileGemm<Sim512, SimulatedTiles>>();

void run_tiles(const MatmulArgs& args, int64_t n_begin, int64_t n_end) {
  if (args.arranged == nullptr) return run(args, n_begin, n_end);
  run_wide(kWideTable, args, n_begin, n_end);
  EXPECT_FALSE(SimulatedTiles::state().in_use);
}
size_t tiles_scratch_bytes(int64_t /*m*/, int64_t k) {
  const auto wide = static_cast<size_t>(wide_scratch_bytes());
  return std::max(table_scratch_bytes(k), wide);
}
constexpr Variant<MatmulKernel> kSimulatedWide[] = {
    {"matmul_simarranged",
     kIsaNone,
     {run_arranged, arranged_scratch, 32, panels_bytes, pack,
      arrange_sevens<baseline::quantise_rows>, 5}},
    {"matmul_simtiles",
     kIsaAmx,
     {run_tiles, tiles_scratch_bytes, 32, panels_bytes, pack,
      round_wide_rows<Sim512, SimulatedTiles>, 5}},
};

// The rows of a simulated CPU that this one can run.
void check_all(WeightType type, int64_t m, int64_t n, int64_t k) {
  check(kSimulated, type, m, n, k);
  if (n == 35 && (m == 9 || m == 33)) {
    for (const auto& row : kSimulatedWide) check(row, type, m, n, k);
  }
  for (const Variant<MatmulKernel>& row : simulated_rows(type)) check(row, type, m, n, k);
}

class MatmulSimulationTest : public ::testing::TestWithParam<WeightType> {};

TEST_P(MatmulSimulationTest, SmallShapesEqualTheReference) {
  for (const int64_t k : {32, 96, 256, 576}) {
    if (k % info_of(GetParam()).block_values != 0) continue;
    for (const int64_t n : {1, 9, 17, 35}) {
      for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 33}) {
        check_all(GetParam(), m, n, k);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(MatmulSimulationTest, LargeShapesEqualTheReference) {
  check_all(GetParam(), 1, 130, 2560);
  check_all(GetParam(), 7, 70, 2560);
  check_all(GetParam(), 140, 33, 1280);
}

// Beyond one group of weight rows (256), one stretch of k (2,048) and 32 activation rows.
TEST(MatmulSimulatedWide, LargeShapesEqualTheReference) {
  for (const auto& row : kSimulatedWide) {
    check(row, WeightType::q4_1, 70, 300, 2304);
    check(row, WeightType::q6_k, 33, 273, 2304);
    check(row, WeightType::q8_0, 48, 31, 4128);
  }
}

// The simulation itself, by the manual's words.
TEST(SimulatedBf16, AddsTheUpperProductFirstAndRoundsEachSum) {
  using Floats = SimVector<float, 16>;
  using Pairs = SimVector<uint16_t, 32>;
  const auto sum = [](float start, float high, float low) {
    Floats sums = {};
    Pairs w = {};
    Pairs ones = {};
    sums.lane[7] = start;
    w.lane[15] = float_to_bf16(high);
    w.lane[14] = float_to_bf16(low);
    ones.lane[15] = ones.lane[14] = float_to_bf16(1.0f);
    const Floats out = SimulatedBf16::add(sums, w, ones);
    EXPECT_EQ(out.lane[6], 0.0f);
    EXPECT_EQ(out.lane[8], 0.0f);
    return out.lane[7];
  };
  EXPECT_EQ(sum(1.0f, 2.0f, 4.0f), 7.0f);
  // Between two floats, each time to the even one.
  EXPECT_EQ(sum(0x1p24f, 1.0f, 1.0f), 0x1p24f);
  EXPECT_EQ(sum(0x1p24f, 3.0f, 1.0f), 0x1p24f + 4);
  // In the other order the one would be lost.
  EXPECT_EQ(sum(-0x1p25f, 0x1p25f, 1.0f), 1.0f);
  // Subnormal inputs count as zero, subnormal sums become zero.
  EXPECT_EQ(sum(0x1p-126f, 0x1p-127f, 0.0f), 0x1p-126f);
  EXPECT_EQ(sum(0x1.8p-126f, -0x1p-126f, 0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(sum(0.0f, std::numeric_limits<float>::quiet_NaN(), 1.0f)));
}

TEST(SimulatedBf16, RoundsToNearestEven) {
  const float x[16] = {1.0f,         1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 1.0f + 0x1.1p-8f,
                       -1 - 0x1p-8f, 0x1p-127f,      -0x1p-127f,     3.4e38f,
                       0x1.fp-126f,  100.0f,         0.1f,           -0.1f,
                       0x1.fffp127f, 0.0f,           -0.0f,          255.0f};
  const float want[16] = {
      1.0f,        1.0f,   1.0f + 0x1p-6f, 1.0f + 0x1p-7f, -1.0f,     0.0f, -0.0f, HUGE_VALF,
      0x1.fp-126f, 100.0f, 0x1.9ap-4f,     -0x1.9ap-4f,    HUGE_VALF, 0.0f, -0.0f, 255.0f};
  uint16_t got[16];
  SimulatedBf16::round(x, reinterpret_cast<uint8_t*>(got));
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(float_bits(bf16_to_float(got[i])), float_bits(want[i])) << i;
  }
}

std::string name_of(const ::testing::TestParamInfo<WeightType>& type) {
  return info_of(type.param).name;
}
INSTANTIATE_TEST_SUITE_P(AllTypes, MatmulSimulationTest, ::testing::ValuesIn(kAllTypes), name_of);

}  // namespace

Variants<MatmulKernel> bf16_simulations() {
  return {&kSimulatedBf16, 1};
}
Variants<MatmulKernel> arranged_simulations() {
  return {kSimulatedWide, std::size(kSimulatedWide)};
}

}  // namespace optima::kernels
