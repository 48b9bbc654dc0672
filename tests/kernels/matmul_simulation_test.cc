// The matrix products for AVX-512 over simulated vectors (kernels/vec/sim512.h), and those for AVX2
// with VNNI over a simulated instruction, against the reference. Whether this CPU also runs the
// real ones is told by matmul_test.cc.

#include <gtest/gtest.h>

#include "kernels/matmul/dispatch.inl.h"
#include "kernels/matmul/panel_dot.inl.h"
#include "kernels/vec/sim512.h"
#include "tests/kernels/matmul_testing.h"

namespace optima::kernels {
namespace {

using namespace optima::kernels::testing;

constexpr KernelTable kTable = make_table<PanelDot<Sim512>>();

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

// The rows of a simulated CPU that this one can run.
void check_all(WeightType type, int64_t m, int64_t n, int64_t k) {
  check(kSimulated, type, m, n, k);
  for (const Variant<MatmulKernel>& row : simulated_rows()) check(row, type, m, n, k);
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

std::string name_of(const ::testing::TestParamInfo<WeightType>& type) {
  return info_of(type.param).name;
}
INSTANTIATE_TEST_SUITE_P(AllTypes, MatmulSimulationTest, ::testing::ValuesIn(kAllTypes), name_of);

}  // namespace
}  // namespace optima::kernels
