// Quantising weights against gguf's own quantiser: the same bits.
#include "kernels/quant/quantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace optima::kernels {
namespace {

std::vector<uint8_t> bytes_of(const std::string& hex) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

TEST(Quantise, SameBitsAsGguf) {
  std::ifstream file(OPTIMA_SOURCE_DIR "/tests/goldens/quant/quantise.txt");
  std::string type, row_hex, blocks_hex;
  int lines = 0;
  while (file >> type >> row_hex >> blocks_hex) {
    ++lines;
    const std::vector<uint8_t> row_bytes = bytes_of(row_hex), wanted = bytes_of(blocks_hex);
    std::vector<float> row(row_bytes.size() / sizeof(float));
    std::memcpy(row.data(), row_bytes.data(), row_bytes.size());
    std::vector<uint8_t> blocks(wanted.size());
    const WeightType id = type == "Q8_0" ? WeightType::q8_0 : WeightType::q4_0;
    quantise_row(id)(row.data(), blocks.data(), static_cast<int64_t>(row.size()));
    EXPECT_EQ(blocks, wanted) << type << " line " << lines;
  }
  EXPECT_EQ(lines, 16);
}

// Every number of 16 bits is its own nearest; between two of them the even one is taken.
TEST(Quantise, SixteenBitsAreRoundedToNearestEven) {
  for (const WeightType type : {WeightType::f16, WeightType::bf16}) {
    for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
      const uint16_t pair[2] = {static_cast<uint16_t>(bits), static_cast<uint16_t>(bits + 1)};
      float values[3];
      dequant_row(type)(pair, values, 2);
      values[2] = values[1];
      values[1] = 0.5f * (values[0] + values[1]);
      uint16_t rounded[3];
      quantise_row(type)(values, rounded, 3);
      EXPECT_EQ(rounded[0], pair[0]);
      if (std::isfinite(values[1])) {
        EXPECT_EQ(rounded[1], pair[bits & 1]);
      }
      EXPECT_EQ(rounded[2], pair[1]);
    }
  }
}

TEST(Quantise, NoOtherTypesAndNoSurprises) {
  EXPECT_EQ(quantise_row(WeightType::q4_k), nullptr);
  const float odd[32] = {NAN, INFINITY, -INFINITY, 1.0f};
  uint8_t blocks[34];
  quantise_row(WeightType::q8_0)(odd, blocks, 32);
  quantise_row(WeightType::q4_0)(odd, blocks, 32);
}

}  // namespace
}  // namespace optima::kernels
