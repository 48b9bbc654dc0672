// Weights stored as codes with scales: values against torch, and folders that lie about them.
#include "model/hf/coded_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "kernels/quant/weight_type.h"

namespace optima::model {
namespace {

using kernels::WeightType;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// Decodes some tensors; what they point to must outlive it.
class Decoded {
 public:
  Decoded(HfQuantisation how, const std::vector<SafeTensor>& tensors) {
    CodedWeights codes(how, parts_, allocator_);
    Result<std::vector<SafeTensor>> out = codes.decode(tensors, {});
    if (out.ok()) {
      tensors_ = out.take();
    } else {
      status_ = out.take_status();
    }
  }
  const Status& status() const { return status_; }
  const std::vector<SafeTensor>& tensors() const { return tensors_; }
  std::vector<float> values() const {
    const SafeTensor& tensor = tensors_.at(0);
    const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
    const size_t row_bytes = tensor.data.size() / static_cast<size_t>(rows);
    std::vector<float> out(static_cast<size_t>(rows * columns));
    for (int64_t r = 0; r < rows; ++r)
      kernels::dequant_row (*tensor.decoded)(
          tensor.data.data() + static_cast<size_t>(r) * row_bytes, out.data() + r * columns,
          columns);
    return out;
  }
  void expect(Code code, const std::string& part) const {
    EXPECT_EQ(status_.code(), code) << status_.message();
    EXPECT_NE(status_.message().find(part), std::string::npos) << status_.message();
  }

 private:
  Allocator allocator_{{}, 0};
  ModelFileParts parts_;
  std::vector<SafeTensor> tensors_;
  Status status_;
};

constexpr HfQuantisation kPlain{.coded = true};
constexpr HfQuantisation kBlocks{.coded = true, .block_rows = 2, .block_columns = 3};
constexpr HfQuantisation kPacked{
    .coded = true, .packed_bits = 4, .block_rows = 1, .block_columns = 32};

SafeTensor f8(const std::vector<uint8_t>& codes, std::vector<int64_t> shape) {
  return {"m.weight", SafeType::f8_e4m3, std::move(shape), bytes_of(codes)};
}
SafeTensor scale(const std::vector<float>& values, std::vector<int64_t> shape) {
  return {"m.weight_scale", SafeType::f32, std::move(shape), bytes_of(values)};
}

TEST(CodedWeights, EveryCodeOfE4m3HasTorchsValue) {
  std::vector<float> truth(256);
  std::ifstream file(OPTIMA_SOURCE_DIR "/tests/goldens/quant/e4m3.bin", std::ios::binary);
  file.read(reinterpret_cast<char*>(truth.data()), 1024);
  ASSERT_TRUE(file.good());
  const std::vector<float> one = {1.0f};
  for (int code = 0; code < 256; ++code) {
    const std::vector<uint8_t> codes = {static_cast<uint8_t>(code)};
    const Decoded decoded(kPlain, {f8(codes, {1, 1}), scale(one, {})});
    if (std::isnan(truth[static_cast<size_t>(code)])) {
      decoded.expect(Code::format, "[0, 0] is not a number");
      continue;
    }
    ASSERT_TRUE(decoded.status().ok()) << decoded.status().message();
    EXPECT_EQ(decoded.tensors()[0].decoded, WeightType::f16);
    const float value = decoded.values()[0];
    EXPECT_EQ(std::memcmp(&value, &truth[static_cast<size_t>(code)], sizeof value), 0) << code;
  }
}

// Codes of 1 (0x38), so that the values are the scales.
TEST(CodedWeights, ScalesAreOfTheTensorOfRowsOrOfBlocks) {
  const std::vector<uint8_t> ones(15, 0x38);
  const std::vector<float> all = {0.5f}, rows = {1, 2, 4}, blocks = {1, 2, 4, 8};
  const SafeTensor codes = f8(ones, {3, 5});
  const std::vector<float> by_row = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4};
  const std::vector<float> by_block = {1, 1, 1, 2, 2, 1, 1, 1, 2, 2, 4, 4, 4, 8, 8};
  EXPECT_EQ(Decoded(kPlain, {codes, scale(all, {})}).values(), std::vector<float>(15, 0.5f));
  EXPECT_EQ(Decoded(kPlain, {codes, scale(all, {1})}).values(), std::vector<float>(15, 0.5f));
  EXPECT_EQ(Decoded(kPlain, {scale(rows, {3}), codes}).values(), by_row);
  EXPECT_EQ(Decoded(kBlocks, {codes, scale(rows, {3, 1})}).values(), by_row);
  EXPECT_EQ(Decoded(kBlocks, {codes, scale(blocks, {2, 2})}).values(), by_block);
}

TEST(CodedWeights, WholeNumbersKeepTheirBits) {
  std::vector<int8_t> codes;
  for (int i = 0; i < 128; ++i) codes.push_back(static_cast<int8_t>(i * 37 - 128));
  const std::vector<float> scales = {0.125f, 3.0f};
  const Decoded blocks(
      kPlain, {{"m.weight", SafeType::i8, {2, 64}, bytes_of(codes)}, scale(scales, {2, 1})});
  ASSERT_TRUE(blocks.status().ok()) << blocks.status().message();
  EXPECT_EQ(blocks.tensors()[0].decoded, WeightType::q8_0);
  const std::vector<float> values = blocks.values();
  for (size_t i = 0; i < 128; ++i)
    EXPECT_EQ(values[i], static_cast<float>(codes[i]) * scales[i / 64]) << i;
  // 50 columns are no whole blocks; 10^-6 is no normal number of F16.
  const Decoded rest(kPlain, {{"m.weight", SafeType::i8, {2, 50}, bytes_of(codes).first(100)},
                              scale(scales, {2, 1})});
  EXPECT_EQ(rest.tensors().at(0).decoded, WeightType::f16);
  const std::vector<float> small = {1e-6f, 1.0f}, tiny = {1e-12f, 1.0f};
  const SafeTensor whole = {"m.weight", SafeType::i8, {2, 64}, bytes_of(codes)};
  EXPECT_EQ(Decoded(kPlain, {whole, scale(small, {2})}).tensors().at(0).decoded, WeightType::f16);
  EXPECT_EQ(Decoded(kPlain, {whole, scale(tiny, {2})}).tensors().at(0).decoded, WeightType::bf16);
}

TEST(CodedWeights, PackedCodesAreUnpacked) {
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 8; ++i) words.push_back(0x76543210u + i * 0x11111111u);
  const std::vector<float> scales = {0.5f, 2.0f};
  const std::vector<int64_t> shape = {1, 64};
  const SafeTensor packed = {"m.weight_packed", SafeType::i32, {1, 8}, bytes_of(words)};
  const SafeTensor shaped = {"m.weight_shape", SafeType::i64, {2}, bytes_of(shape)};
  const Decoded decoded(kPacked, {packed, shaped, scale(scales, {1, 2})});
  ASSERT_TRUE(decoded.status().ok()) << decoded.status().message();
  EXPECT_EQ(decoded.tensors().at(0).name, "m.weight");
  EXPECT_EQ(decoded.tensors()[0].decoded, WeightType::q4_0);
  const std::vector<float> values = decoded.values();
  for (size_t i = 0; i < 64; ++i) {
    const int code = static_cast<int>(words[i / 8] >> (i % 8 * 4) & 15u) - 8;
    EXPECT_EQ(values[i], static_cast<float>(code) * scales[i / 32]) << i;
  }
  const Decoded missing(kPacked, {packed, scale(scales, {1, 2})});
  missing.expect(Code::format, "'m.weight_shape' is missing");
  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{1, 65}, {1, 56}, {2, 64}, {1, -1}, {1, INT64_MAX}, {0, 64}}) {
    const SafeTensor lying = {"m.weight_shape", SafeType::i64, {2}, bytes_of(wrong)};
    Decoded(kPacked, {packed, lying, scale(scales, {1, 2})}).expect(Code::format, "does not hold");
  }
  Decoded(kPlain, {packed, shaped, scale(scales, {1, 2})}).expect(Code::unsupported, "packed");
}

TEST(CodedWeights, WhatIsWrongIsNamed) {
  const std::vector<uint8_t> ones(15, 0x38);
  const std::vector<float> two = {1, 2}, one = {1};
  const SafeTensor codes = f8(ones, {3, 5});
  Decoded(kPlain, {codes}).expect(Code::format, "'m.weight_scale' is missing");
  Decoded(kPlain, {codes, scale(two, {2})}).expect(Code::format, "wanted one scale, [3, 1]");
  Decoded(kBlocks, {codes, scale(two, {2, 1})}).expect(Code::format, "or [2, 2]");
  SafeTensor also = scale(one, {}), whole = scale(one, {}), lost = scale(one, {});
  also.name = "m.weight_scale_inv";
  Decoded(kPlain, {codes, scale(one, {}), also}).expect(Code::format, "two scales");
  whole.type = SafeType::i32;
  Decoded(kPlain, {codes, whole}).expect(Code::unsupported, "of dtype I32");
  lost.name = "n.weight_scale";
  Decoded(kPlain, {codes, scale(one, {}), lost}).expect(Code::format, "'n.weight_scale' belongs");
  Decoded(kPlain, {f8(ones, {15}), scale(one, {})}).expect(Code::unsupported, "[rows, columns]");
  Decoded(kPlain, {f8(ones, {0, 5}), scale(one, {})}).expect(Code::unsupported, "[0, 5]");
  for (const float bad : {0.0f, -1.0f, NAN, INFINITY}) {
    const std::vector<float> values = {1, bad, 1};
    Decoded(kPlain, {codes, scale(values, {3, 1})}).expect(Code::format, "the scale 1 is");
  }
}

TEST(CodedWeights, WhatIsOfActivationsIsPassedOver) {
  const std::vector<uint8_t> ones(4, 0x38);
  const std::vector<float> one = {1};
  SafeTensor input = scale(one, {});
  input.name = "m.input_scale";
  const Decoded decoded(kPlain, {f8(ones, {2, 2}), scale(one, {}), input});
  ASSERT_TRUE(decoded.status().ok());
  EXPECT_EQ(decoded.tensors().size(), 1u);
}

}  // namespace
}  // namespace optima::model
