// GGUF files, versions 2 and 3, little-endian, single or split. Every offset, count and product is
// checked against the file's size before use; nothing in a file can cause more than an error.
// Format: the GGUF specification of the ggml project (docs/gguf.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/status.h"
#include "kernels/quant/weight_type.h"
#include "model/source.h"

namespace optima::model {

// One metadata value. Integers of all widths become int64 (a uint64 above INT64_MAX is an error),
// floats double. Arrays keep their element kind.
struct MetadataValue {
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;
  using Bools = std::vector<uint8_t>;
  using Strings = std::vector<std::string_view>;  // views into the mapped file
  std::variant<int64_t, double, bool, std::string_view, Ints, Floats, Bools, Strings> value;
};

class Metadata {
 public:
  const MetadataValue* find(std::string_view key) const;
  // nullopt when the key is absent; an absent key and one of another type are different things:
  // a wrong type is an error naming the key and both types. Integers widen to float on request.
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> real(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;
  Result<const MetadataValue::Ints*> integers(std::string_view key) const;    // null = absent
  Result<const MetadataValue::Floats*> reals(std::string_view key) const;     // null = absent
  Result<const MetadataValue::Strings*> strings(std::string_view key) const;  // null = absent

  const std::vector<std::pair<std::string_view, MetadataValue>>& entries() const {
    return entries_;
  }
  Status insert(std::string_view key, MetadataValue value);  // a duplicate key is an error

 private:
  std::vector<std::pair<std::string_view, MetadataValue>> entries_;  // in the file's order
  std::unordered_map<std::string_view, size_t> index_;
};

// A value as text, for inspection: a string as it is, an array as "[a, b, ... 9 items]", cut after
// `items_max` items, its strings quoted and escaped. Floats as short as their width allows.
std::string to_string(const MetadataValue& value, size_t items_max);

// A weight tensor where it lies. shape[0] is the innermost (row) length, as GGUF orders it.
struct Tensor {
  std::string_view name;
  kernels::WeightType type{};
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  int rank = 1;
  const std::byte* data = nullptr;
  int64_t bytes = 0;
  int64_t row_length() const { return shape[0]; }
  int64_t rows() const { return shape[1] * shape[2] * shape[3]; }
};

class Gguf {
 public:
  // Opens a file or, for a path that is part of a split set, all of its files.
  static Result<std::unique_ptr<Gguf>> open(const Source& source, Allocator& allocator,
                                            const Progress& progress);

  const Metadata& metadata() const { return metadata_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;  // null = absent
  int64_t file_bytes() const { return file_bytes_; }
  const std::string& name() const { return name_; }  // the path given, or the kind of source
  // Asks the system to read all weights of mapped files ahead, without waiting for them.
  void prefetch() const;

 private:
  friend class GgufReader;
  std::vector<std::unique_ptr<Bytes>> files_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
  int64_t file_bytes_ = 0;
  std::string name_;
};

}  // namespace optima::model
