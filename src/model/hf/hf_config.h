// A Hugging Face config.json, read key by key. Keys are counted: one that no reader asked for and
// that is not known to be without effect is an error, because it may change what the model
// computes.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/model_file.h"

namespace optima::model {

class HfConfig {
 public:
  // `config` must outlive this, and so must `defaults`: what an absent key stands for, null = none.
  explicit HfConfig(const json::Value& config, const json::Value* defaults = nullptr)
      : config_(config), defaults_(defaults) {}

  // Null when the key is absent or null. The key counts as read.
  const json::Value* find(std::string_view key) const;
  // nullopt when absent; another type is an error that names the key. Whole numbers are reals too.
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> real(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> string(std::string_view key) const;
  Result<std::optional<std::vector<double>>> reals(std::string_view key) const;
  Result<std::optional<std::vector<std::string>>> strings(std::string_view key) const;
  // The same, and an error when absent.
  Result<int64_t> need_integer(std::string_view key) const;
  Result<double> need_real(std::string_view key) const;

  // unsupported, naming the first key that no one read; null values ask for nothing.
  Status all_read() const;

 private:
  const json::Value& config_;
  const json::Value* defaults_;
  mutable std::set<std::string, std::less<>> read_;
};

// Adds metadata "<architecture>.<key>" to a file that is being put together.
class MetadataWriter {
 public:
  MetadataWriter(ModelFileParts& parts, std::string_view architecture)
      : parts_(parts), prefix_(std::string(architecture) + ".") {}

  Status integer(std::string_view key, int64_t value) { return add(key, {value}); }
  Status real(std::string_view key, double value) { return add(key, {value}); }
  Status flag(std::string_view key, bool value) { return add(key, {value}); }
  Status string(std::string_view key, std::string_view value);
  Status reals(std::string_view key, std::vector<double> values) {
    return add(key, {std::move(values)});
  }
  Status flags(std::string_view key, std::vector<uint8_t> values) {
    return add(key, {std::move(values)});
  }
  Status integers(std::string_view key, std::vector<int64_t> values) {
    return add(key, {std::move(values)});
  }

 private:
  Status add(std::string_view key, MetadataValue value);
  ModelFileParts& parts_;
  std::string prefix_;
};

}  // namespace optima::model
