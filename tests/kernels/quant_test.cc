// Dequantisation and half conversions against goldens of gguf-py and numpy (make_quant.py).

#include <gtest/gtest.h>
#include <string.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/half.h"
#include "kernels/quant/weight_type.h"

namespace optima::kernels {
namespace {

std::vector<char> read_golden(const std::string& name) {
  std::ifstream file(OPTIMA_SOURCE_DIR "/tests/goldens/quant/" + name + ".bin", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A typed copy of `count` elements at byte `offset`, which advances.
template <typename T>
std::vector<T> take(const std::vector<char>& bytes, size_t* offset, size_t count) {
  std::vector<T> out(count);
  if (*offset + count * sizeof(T) > bytes.size()) {
    ADD_FAILURE() << "golden has " << bytes.size() << " bytes, wanted more";
    return out;
  }
  memcpy(out.data(), bytes.data() + *offset, count * sizeof(T));
  *offset += count * sizeof(T);
  return out;
}

constexpr int32_t kTypeIds[] = {0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 30, 39};

class DequantTest : public testing::TestWithParam<int32_t> {};

TEST_P(DequantTest, EqualsGgufPyBitForBit) {
  const WeightTypeInfo* info = find_weight_type(GetParam());
  ASSERT_NE(info, nullptr);
  const std::vector<char> golden = read_golden(info->name);
  size_t at = 0;
  const int64_t count = take<int64_t>(golden, &at, 1)[0];
  ASSERT_GT(count, 0);
  const auto row = take<unsigned char>(golden, &at, row_bytes(*info, count));
  const auto want = take<float>(golden, &at, static_cast<size_t>(count));
  EXPECT_EQ(at, golden.size());

  std::vector<float> got(static_cast<size_t>(count));
  dequant_row(info->type)(row.data(), got.data(), count);
  for (size_t i = 0; i < got.size(); ++i) {
    // Compared as bits: the sign of a zero and every subnormal count.
    ASSERT_EQ(float_bits(got[i]), float_bits(want[i]))
        << info->name << " value " << i << ": " << got[i] << " for " << want[i];
  }
}

std::string type_name(const testing::TestParamInfo<int32_t>& id) {
  const WeightTypeInfo* info = find_weight_type(id.param);
  return info == nullptr ? "unknown" : info->name;
}

INSTANTIATE_TEST_SUITE_P(AllTypes, DequantTest, testing::ValuesIn(kTypeIds), type_name);

TEST(WeightType, UnknownIdsAreNull) {
  for (const int32_t id : {-1, 4, 5, 9, 15, 16, 19, 24, 34, 38, 40, 1000}) {
    EXPECT_EQ(find_weight_type(id), nullptr) << id;
  }
}

TEST(Half, EqualsNumpy) {
  const std::vector<char> golden = read_golden("half");
  size_t at = 0;
  const auto count = static_cast<size_t>(take<int64_t>(golden, &at, 1)[0]);
  ASSERT_GT(count, 900u);
  const auto input = take<float>(golden, &at, count);
  const auto half = take<uint16_t>(golden, &at, count);
  const auto bf16 = take<uint16_t>(golden, &at, count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(float_to_half(input[i]), half[i]) << input[i];
    EXPECT_EQ(float_to_bf16(input[i]), bf16[i]) << input[i];
  }
}

TEST(Half, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool is_nan = (bits & 0x7fff) > 0x7c00;
    // A signalling NaN becomes quiet and keeps the rest of its payload.
    const uint16_t want = is_nan ? static_cast<uint16_t>(half | 0x200) : half;
    EXPECT_EQ(float_to_half(half_to_float(half)), want) << bits;
    const bool is_bf16_nan = (bits & 0x7fff) > 0x7f80;
    const uint16_t want_bf16 = is_bf16_nan ? static_cast<uint16_t>(half | 0x40) : half;
    EXPECT_EQ(float_to_bf16(bf16_to_float(half)), want_bf16) << bits;
  }
}

}  // namespace
}  // namespace optima::kernels
