// Reads the members of a tokenizer.json component; errors name where the component stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace optima::tokenizer::hf {

// A JSON object and its place in the file ("pre_tokenizer.pretokenizers[1]").
class Component {
 public:
  // `value` must outlive this.
  static Result<Component> of(const json::Value& value, std::string place);

  const std::string& place() const { return place_; }
  Result<std::string_view> type() const { return string("type"); }

  // Null where the member is missing or null.
  const json::Value* find(std::string_view key) const;
  Result<Component> object(std::string_view key) const;
  Result<const json::Array*> array(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;
  Result<std::string_view> string_or(std::string_view key, std::string_view otherwise) const;
  Result<int64_t> integer(std::string_view key) const;
  Result<int64_t> integer_or(std::string_view key, int64_t otherwise) const;
  // A flag: the values 0 and 1, or `otherwise` where the member is missing.
  Result<int> flag_or(std::string_view key, int otherwise) const;

  Status wrong(std::string_view key, std::string_view expected) const;      // `format`
  Status unsupported(std::string_view what, std::string_view value) const;  // names both

 private:
  Component(const json::Value& value, std::string place)
      : value_(&value), place_(std::move(place)) {}
  const json::Value* value_;
  std::string place_;
};

inline constexpr int kNestingMax = 16;        // Sequences within Sequences
inline constexpr size_t kComponentsMax = 64;  // members of one Sequence

// The steps of a Sequence, each with its place.
Result<std::vector<Component>> steps_of(const Component& sequence, std::string_view key,
                                        int nesting);

// The one character that the member's text is made of.
Result<std::string_view> one_character(const Component& component, std::string_view key,
                                       std::string_view otherwise);

}  // namespace optima::tokenizer::hf
