// A model's file or folder as the rest of the library sees it, whatever its format: metadata by
// key, tensors by name, and the documents that a folder holds beside them. Keys and tensor names
// are those of GGUF; the reader of another format translates (model/hf).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/quant/weight_type.h"
#include "model/source.h"

namespace optima::model {

// One metadata value. Integers of all widths become int64 (a uint64 above INT64_MAX is an error),
// floats double. Arrays keep their element kind.
struct MetadataValue {
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;
  using Bools = std::vector<uint8_t>;
  using Strings = std::vector<std::string_view>;  // views into the file, or into its strings
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
  Result<const MetadataValue::Bools*> booleans(std::string_view key) const;   // null = absent
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

enum class FileFormat : uint8_t { gguf, hugging_face };

// What a reader puts together. Metadata, tensors and documents point into files, buffers and
// strings.
struct ModelFileParts {
  FileFormat format = FileFormat::gguf;
  std::string name;  // the path given, or the kind of source
  std::vector<std::unique_ptr<Bytes>> files;
  std::vector<Buffer> buffers;      // tensors that could not be used as they lie
  std::deque<std::string> strings;  // texts that are in no file
  std::map<std::string, std::string_view, std::less<>> documents;  // "tokenizer.json" -> its bytes
  Metadata metadata;
  std::vector<Tensor> tensors;
};

// How much of a folder is opened; a GGUF file is one piece.
enum class FileContent : uint8_t {
  full,
  vocabulary,  // documents alone: weights may be missing, the architecture need not be known
};
struct OpenOptions {
  FileContent content = FileContent::full;
  Progress progress = {};
  ThreadPoolOptions team = {.threads = 1};  // converts weights, where there are some to convert
};

class ModelFile {
 public:
  // format when two tensors have one name.
  static Result<std::unique_ptr<ModelFile>> create(ModelFileParts parts);

  FileFormat format() const { return parts_.format; }
  const Metadata& metadata() const { return parts_.metadata; }
  const std::vector<Tensor>& tensors() const { return parts_.tensors; }
  const Tensor* find(std::string_view name) const;  // null = absent
  // A file of the folder by its name; nullopt = absent. A GGUF file has none.
  std::optional<std::string_view> document(std::string_view name) const;
  int64_t file_bytes() const { return file_bytes_; }
  const std::string& name() const { return parts_.name; }
  // Asks the system to read all weights of mapped files ahead, without waiting for them.
  void prefetch() const;
  // Replaces matrices of 16 and 32 bits by `type` (Q8_0 or Q4_0; embedding and head by Q8_0) where
  // their rows are whole blocks of 32; unsupported when there is no such matrix. Progress counts
  // tensors.
  Status quantise(kernels::WeightType type, Allocator& allocator, const OpenOptions& options);

 private:
  ModelFileParts parts_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
  int64_t file_bytes_ = 0;
};

// `name` in quotes for a message: printable ASCII as it is, other bytes as \xNN, long names cut.
std::string in_quotes(std::string_view name);

// Opens a GGUF file or set of files, or, for a folder, a Hugging Face folder.
Result<std::unique_ptr<ModelFile>> open_model_file(const Source& source, Allocator& allocator,
                                                   const OpenOptions& options);

}  // namespace optima::model
