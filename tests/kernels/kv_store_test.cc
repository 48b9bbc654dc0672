// All variants must store the same bytes as the reference, and only those of the tokens given.
#include "kernels/kv_store/kv_store.h"

#include <float.h>
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <memory>
#include <random>

#include "kernels/half.h"
#include "tests/kernels/goldens.h"
#include "tests/kernels/variant_rows.h"

namespace optima::kernels {
namespace {

struct Shape {
  int64_t tokens;
  int64_t first_position;
  int64_t kv_heads;
  int64_t head_dim;
  KvType type;
};

// Pages of exactly the bytes needed, in one block that can be compared.
class Pages {
 public:
  explicit Pages(const Shape& shape) : slot_(kv_slot_bytes(shape.type, shape.head_dim)) {
    const int64_t count = (shape.first_position + shape.tokens) / kPageTokens + 1;
    page_bytes_ = slot_ * (shape.kv_heads + 1);
    bytes_.assign(static_cast<size_t>(count * page_bytes_), 0xab);
    for (int64_t page = 0; page < count; ++page) {
      pointers_.push_back(bytes_.data() + page * page_bytes_);
    }
  }
  const std::vector<unsigned char>& bytes() const { return bytes_; }
  unsigned char* const* pointers() const { return pointers_.data(); }
  int64_t slot() const { return slot_; }

 private:
  int64_t slot_;
  int64_t page_bytes_ = 0;
  std::vector<unsigned char> bytes_;
  std::vector<unsigned char*> pointers_;
};

std::vector<unsigned char> store(KvStoreFn fn, const Shape& shape, const std::vector<float>& k,
                                 const std::vector<float>& v) {
  Pages pages(shape);
  const int64_t stride = shape.kv_heads * shape.head_dim + 3;
  const KvStoreArgs args = {
      k.data(),       stride,        v.data(),   stride,       pages.pointers(),
      pages.slot(),   pages.slot(),  shape.type, shape.tokens, shape.first_position,
      shape.kv_heads, shape.head_dim};
  for (int64_t head = shape.kv_heads - 1; head >= 0; --head) fn(args, head, head + 1);
  return pages.bytes();
}

TEST(KvStore, VariantsStoreTheSameBytes) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, 3e4f);  // some beyond the largest f16
  const KvType types[] = {KvType::f16, KvType::bf16, KvType::f32, KvType::q8_0};
  for (const int64_t tokens : {0, 1, 7, 8, 9, 15, 16, 17, 40}) {
    for (const int64_t first : {0, 3, 8, 13, 16, 31}) {
      for (const int64_t head_dim : {8, 16, 24, 64, 80}) {
        for (const KvType type : types) {
          const Shape shape = {tokens, first, 2, head_dim, type};
          const auto count = static_cast<size_t>(tokens * (2 * head_dim + 3));
          std::vector<float> k(count);
          std::vector<float> v(count);
          for (float& value : k) value = normal(random);
          for (float& value : v) value = normal(random) * 1e-9f;  // subnormal f16
          const auto want = store(kKvStoreReference, shape, k, v);
          for (const auto& row : runnable_rows(kv_store_variants())) {
            ASSERT_EQ(store(row.fn, shape, k, v), want)
                << row.name << " tokens " << tokens << " first " << first << " dim " << head_dim;
          }
        }
      }
    }
  }
}

// Layout and rounding of the reference: K transposed, V as rows, numpy's f16 bits.
TEST(KvStore, ReferenceMatchesNumpy) {
  const Goldens goldens;
  const std::vector<float> values = goldens.floats("f16.values");
  const std::vector<double>& bits = goldens.doubles("f16.bits");
  const auto head_dim = static_cast<int64_t>(values.size() / 8 * 8);
  const Shape shape = {1, 5, 1, head_dim, KvType::f16};
  std::vector<float> row(values.begin(), values.begin() + head_dim);
  row.resize(row.size() + 3);
  auto rows = runnable_rows(kv_store_variants());
  rows.push_back({"kv_store_ref", kIsaNone, kKvStoreReference});
  for (const auto& variant : rows) {
    const auto bytes = store(variant.fn, shape, row, row);
    const unsigned char* slot = bytes.data() + kv_slot_bytes(KvType::f16, head_dim);
    for (int64_t d = 0; d < head_dim; ++d) {
      uint16_t k = 0;
      uint16_t v = 0;
      memcpy(&k, slot + 2 * (d * 16 + 5), 2);
      memcpy(&v, slot + 2 * (16 * head_dim + 5 * head_dim + d), 2);
      ASSERT_EQ(k, bits[static_cast<size_t>(d)]) << variant.name << ", value " << values[d];
      ASSERT_EQ(v, bits[static_cast<size_t>(d)]) << variant.name << ", value " << values[d];
    }
  }
}

TEST(KvStore, InfinitySaturatesAndNanStays) {
  const Shape shape = {1, 0, 1, 8, KvType::f16};
  const std::vector<float> row = {INFINITY, -INFINITY, 1e9f, -1e9f, 65520, 65519,
                                  NAN,      -NAN,      0,    0,     0};
  auto rows = runnable_rows(kv_store_variants());
  rows.push_back({"kv_store_ref", kIsaNone, kKvStoreReference});
  for (const auto& variant : rows) {
    const auto bytes = store(variant.fn, shape, row, row);
    const float want[] = {65504, -65504, 65504, -65504, 65504, 65504, NAN, NAN};
    for (int64_t d = 0; d < 8; ++d) {
      uint16_t v = 0;
      memcpy(&v, bytes.data() + kv_slot_bytes(KvType::f16, 8) + 2 * (16 * 8 + d), 2);
      if (isnan(want[d])) {
        EXPECT_TRUE(isnan(half_to_float(v))) << variant.name;
      } else {
        EXPECT_EQ(half_to_float(v), want[d]) << variant.name;
      }
    }
  }
}

// What f16 has no room for stays what it was but for the rounding; the bits are those of IEEE's
// binary32 without the lower half, so these are exact.
TEST(KvStore, Bf16KeepsLargeValues) {
  const Shape shape = {9, 0, 1, 8, KvType::bf16};
  const float largest = 0x1.fep127f;
  const float values[] = {1e6f,     -0x1p100f, 0x1.01p7f, 0x1.03p-90f,
                          INFINITY, -INFINITY, NAN,       FLT_MAX};
  const float want[] = {999424, -0x1p100f, 0x1p7f, 0x1.04p-90f, largest, -largest, NAN, largest};
  std::vector<float> rows_of_values;
  for (int64_t token = 0; token < shape.tokens; ++token) {
    rows_of_values.insert(rows_of_values.end(), values, values + 8);
    rows_of_values.resize(rows_of_values.size() + 3);
  }
  auto rows = runnable_rows(kv_store_variants());
  rows.push_back({"kv_store_ref", kIsaNone, kKvStoreReference});
  for (const auto& variant : rows) {
    const auto bytes = store(variant.fn, shape, rows_of_values, rows_of_values);
    const unsigned char* slot = bytes.data() + kv_slot_bytes(KvType::bf16, 8);
    for (int64_t t = 0; t < shape.tokens; ++t) {
      for (int64_t d = 0; d < 8; ++d) {
        uint16_t k = 0;
        uint16_t v = 0;
        memcpy(&k, slot + 2 * (d * 16 + t), 2);
        memcpy(&v, slot + 2 * (16 * 8 + t * 8 + d), 2);
        EXPECT_EQ(k, v) << variant.name;
        if (isnan(want[d])) {
          EXPECT_TRUE(isnan(bf16_to_float(v))) << variant.name;
        } else {
          EXPECT_EQ(bf16_to_float(v), want[d]) << variant.name << ", value " << values[d];
        }
      }
    }
  }
}

// Where the bytes and scales of one token lie in a q8_0 slot, and how far from the values they may
// be: half a scale, or what f16 leaves of a scale that is next to nothing.
TEST(KvStore, CodesAreNearTheValues) {
  const int64_t head_dim = 80;  // blocks of 32, 32 and 16
  const Shape shape = {1, 5, 1, head_dim, KvType::q8_0};
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  auto rows = runnable_rows(kv_store_variants());
  rows.push_back({"kv_store_ref", kIsaNone, kKvStoreReference});
  for (const float scale : {1e-7f, 1e-5f, 1e-3f, 1.0f, 300.0f, 1e5f}) {
    std::vector<float> row(static_cast<size_t>(head_dim + 3));
    for (float& value : row) value = normal(random) * scale;
    for (const auto& variant : rows) {
      const auto bytes = store(variant.fn, shape, row, row);
      const unsigned char* k = bytes.data() + kv_slot_bytes(KvType::q8_0, head_dim);
      const unsigned char* v = k + 16 * head_dim + 2 * 16 * 3;
      for (int64_t d = 0; d < head_dim; ++d) {
        uint16_t k_scale = 0;
        uint16_t v_scale = 0;
        memcpy(&k_scale, k + 16 * head_dim + 2 * (d / 32 * 16 + 5), 2);
        memcpy(&v_scale, v + 16 * head_dim + 2 * (5 * 3 + d / 32), 2);
        ASSERT_EQ(k_scale, v_scale);
        const auto code = static_cast<int8_t>(k[d * 16 + 5]);
        ASSERT_EQ(code, static_cast<int8_t>(v[5 * head_dim + d]));
        const float value = fmaxf(-65504, fminf(65504, row[static_cast<size_t>(d)]));
        const float step = half_to_float(k_scale);
        ASSERT_LE(step, scale / 20);
        ASSERT_NEAR(static_cast<float>(code) * step, value, step * 0.50001f + 0x1p-18f)
            << variant.name << ", values of " << scale;
      }
    }
  }
}

TEST(KvStore, NanIsKeptInItsBlock) {
  const Shape shape = {1, 0, 1, 64, KvType::q8_0};
  std::vector<float> row(67, 1.0f);
  row[40] = NAN;
  auto rows = runnable_rows(kv_store_variants());
  rows.push_back({"kv_store_ref", kIsaNone, kKvStoreReference});
  for (const auto& variant : rows) {
    const auto bytes = store(variant.fn, shape, row, row);
    const unsigned char* v = bytes.data() + kv_slot_bytes(KvType::q8_0, 64) * 3 / 2;
    uint16_t scales[2] = {};
    memcpy(scales, v + 16 * 64, sizeof scales);
    EXPECT_FALSE(isnan(half_to_float(scales[0]))) << variant.name;
    EXPECT_TRUE(isnan(half_to_float(scales[1]))) << variant.name;
  }
}

}  // namespace
}  // namespace optima::kernels
