// Files written by the gguf Python package, held value for value against what that package reads
// from them (tests/goldens/make_gguf.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "tests/model/gguf_bytes.h"

namespace optima::model::test {
namespace {

uint32_t crc32(const std::byte* data, int64_t bytes) {
  uint32_t crc = ~0u;
  for (int64_t i = 0; i < bytes; ++i) {
    crc ^= static_cast<uint32_t>(data[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

std::string unhex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

std::vector<std::string> split(const std::string& line, char by) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == by) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

template <typename Held, typename Parse>
void expect_items(const MetadataValue& value, const std::vector<std::string>& wanted, Parse parse) {
  const auto* items = std::get_if<Held>(&value.value);
  ASSERT_NE(items, nullptr) << "kind " << value.value.index();
  ASSERT_EQ(items->size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto expected = parse(wanted[i]);
    EXPECT_EQ((*items)[i], expected) << "item " << i << ": " << wanted[i];
  }
}

template <typename Held, typename Parse>
void expect_value(const MetadataValue& value, const std::string& wanted, Parse parse) {
  const auto* held = std::get_if<Held>(&value.value);
  ASSERT_NE(held, nullptr) << "kind " << value.value.index();
  const auto expected = parse(wanted);
  EXPECT_EQ(*held, expected);
}

void expect_metadata(const MetadataValue& value, const std::string& kind,
                     const std::string& values) {
  const auto integer = [](const std::string& s) { return std::strtoll(s.c_str(), nullptr, 10); };
  const auto real = [](const std::string& s) { return std::strtod(s.c_str(), nullptr); };
  const auto boolean = [](const std::string& s) { return s == "1"; };
  const std::vector<std::string> items = split(values, ',');
  if (kind == "int") {
    expect_value<int64_t>(value, values, integer);
  } else if (kind == "float") {
    expect_value<double>(value, values, real);
  } else if (kind == "bool") {
    expect_value<bool>(value, values, boolean);
  } else if (kind == "str") {
    expect_value<std::string_view>(value, values, unhex);
  } else if (kind == "int[]") {
    expect_items<MetadataValue::Ints>(value, items, integer);
  } else if (kind == "float[]") {
    expect_items<MetadataValue::Floats>(value, items, real);
  } else if (kind == "bool[]") {
    expect_items<MetadataValue::Bools>(value, items, boolean);
  } else {
    ASSERT_EQ(kind, "str[]");
    expect_items<MetadataValue::Strings>(value, items, unhex);
  }
}

void expect_tensor(const ModelFile& gguf, std::istringstream& fields) {
  std::string name, dims, crc;
  int type = -1;
  int64_t bytes = -1;
  fields >> name >> type >> dims >> bytes >> crc;
  SCOPED_TRACE(name);
  const Tensor* tensor = gguf.find(name);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->name, name);
  EXPECT_EQ(static_cast<int>(tensor->type), type);
  ASSERT_EQ(tensor->bytes, bytes);
  const std::vector<std::string> lengths = split(dims, ',');
  ASSERT_EQ(tensor->rank, static_cast<int>(lengths.size()));
  for (size_t axis = 0; axis < 4; ++axis)
    EXPECT_EQ(tensor->shape[axis], axis < lengths.size() ? std::stoll(lengths[axis]) : 1);
  EXPECT_EQ(crc32(tensor->data, tensor->bytes), std::stoul(crc, nullptr, 16));
}

// Checks all lines of an expectation file; `tensors` counts those that it names.
void expect_golden(const ModelFile& gguf, const std::string& txt_name, size_t& keys,
                   size_t& tensors) {
  std::istringstream lines(read_file(golden_path(txt_name)));
  std::string line;
  while (std::getline(lines, line)) {
    SCOPED_TRACE(line);
    std::istringstream fields(line);
    std::string what, name, kind, values;
    fields >> what;
    if (what == "tensor") {
      expect_tensor(gguf, fields);
      ++tensors;
      continue;
    }
    fields >> name >> kind >> values;
    const MetadataValue* value = gguf.metadata().find(name);
    ASSERT_NE(value, nullptr);
    ASSERT_LT(keys, gguf.metadata().entries().size());
    EXPECT_EQ(gguf.metadata().entries()[keys].first, name) << "order of the file";
    expect_metadata(*value, kind, values);
    ++keys;
  }
}

class GgufGolden : public testing::TestWithParam<const char*> {
 protected:
  Allocator allocator_{HostAllocator(), 0};
};

TEST_P(GgufGolden, HoldsWhatGgufPyReads) {
  const std::string path = golden_path(std::string(GetParam()) + ".gguf");
  auto gguf = open_gguf(PathSource{path}, allocator_, Progress());
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  size_t keys = 0, tensors = 0;
  expect_golden(**gguf, std::string(GetParam()) + ".txt", keys, tensors);
  EXPECT_EQ(keys, (*gguf)->metadata().entries().size());
  EXPECT_EQ(tensors, (*gguf)->tensors().size());
  EXPECT_EQ((*gguf)->file_bytes(), static_cast<int64_t>(read_file(path).size()));
  EXPECT_EQ((*gguf)->name(), path);
  (*gguf)->prefetch();
}

TEST_P(GgufGolden, IsTheSameFromMemory) {
  MemoryModel model(read_file(golden_path(std::string(GetParam()) + ".gguf")));
  ASSERT_TRUE(model.gguf.ok()) << model.gguf.status().message();
  size_t keys = 0, tensors = 0;
  expect_golden(**model.gguf, std::string(GetParam()) + ".txt", keys, tensors);
  EXPECT_EQ(tensors, (*model.gguf)->tensors().size());
}

INSTANTIATE_TEST_SUITE_P(Files, GgufGolden,
                         testing::Values("metadata", "tensors", "alignment64", "version2"));

TEST(GgufGoldenFiles, CoverEveryTypeAndBothAlignments) {
  Allocator allocator{HostAllocator(), 0};
  for (const auto& [file, alignment] : {std::pair{"tensors.gguf", 32}, {"alignment64.gguf", 64}}) {
    auto gguf = open_gguf(PathSource{golden_path(file)}, allocator, Progress());
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    std::set<int> types;
    for (const Tensor& tensor : (*gguf)->tensors()) {
      types.insert(static_cast<int>(tensor.type));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(alignment), 0u);
    }
    EXPECT_EQ(types.size(), 16u);
    EXPECT_EQ((*gguf)->find("absent"), nullptr);
  }
}

TEST(GgufGoldenFiles, AnyFileOfASplitSetOpensAllOfThem) {
  Allocator allocator{HostAllocator(), 0};
  for (const char* name : {"split-00001-of-00002.gguf", "split-00002-of-00002.gguf"}) {
    std::vector<float> fractions;
    auto gguf = open_gguf(PathSource{golden_path(name)}, allocator, [&](float fraction) {
      fractions.push_back(fraction);
      return true;
    });
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    size_t keys = 0, keys_ignored = 0, tensors = 0;
    expect_golden(**gguf, "split-00001-of-00002.txt", keys, tensors);
    EXPECT_EQ(tensors, 2u);
    std::istringstream second(read_file(golden_path("split-00002-of-00002.txt")));
    for (std::string line; std::getline(second, line);) {
      std::istringstream fields(line);
      std::string what;
      fields >> what;
      if (what == "tensor") {
        expect_tensor(**gguf, fields);
        ++tensors;
      } else {
        ++keys_ignored;
      }
    }
    EXPECT_EQ(keys, (*gguf)->metadata().entries().size());
    EXPECT_EQ(keys_ignored, 3u);
    EXPECT_EQ(tensors, (*gguf)->tensors().size());
    EXPECT_EQ((*gguf)->tensors()[0].name, "blk.0.weight");
    EXPECT_EQ((*gguf)->tensors()[3].name, "blk.3.weight");
    EXPECT_EQ(fractions, (std::vector<float>{0.0f, 0.5f, 1.0f}));
    (*gguf)->prefetch();
  }
}

}  // namespace
}  // namespace optima::model::test
