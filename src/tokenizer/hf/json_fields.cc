// The files are written by one library, but read from anywhere: every member is checked for its
// kind, and a member that is missing where the library always writes it is an error.
#include "tokenizer/hf/json_fields.h"

#include "base/text.h"
#include "tokenizer/utf8.h"

namespace optima::tokenizer::hf {

Result<Component> Component::of(const json::Value& value, std::string place) {
  if (value.object() == nullptr) {
    return Status(Code::format, text("tokenizer.json: ", place, " is no object"));
  }
  return Component(value, std::move(place));
}

const json::Value* Component::find(std::string_view key) const {
  const json::Value* member = value_->find(key);
  return member != nullptr && member->is_null() ? nullptr : member;
}

Status Component::wrong(std::string_view key, std::string_view expected) const {
  return {Code::format, text("tokenizer.json: ", place_, ".", key, " is no ", expected)};
}

Status Component::unsupported(std::string_view what, std::string_view value) const {
  return {Code::unsupported,
          text("tokenizer.json: ", place_, ": ", what, " '", value, "' is not supported")};
}

Result<Component> Component::object(std::string_view key) const {
  const json::Value* member = find(key);
  if (member == nullptr) return wrong(key, "object");
  return of(*member, text(place_, ".", key));
}

Result<const json::Array*> Component::array(std::string_view key) const {
  const json::Value* member = find(key);
  if (member == nullptr || member->array() == nullptr) return wrong(key, "list");
  return member->array();
}

Result<std::string_view> Component::string(std::string_view key) const {
  const json::Value* member = find(key);
  if (member == nullptr || member->string() == nullptr) return wrong(key, "string");
  return std::string_view(*member->string());
}

Result<std::string_view> Component::string_or(std::string_view key,
                                              std::string_view otherwise) const {
  if (find(key) == nullptr) return otherwise;
  return string(key);
}

Result<int64_t> Component::integer(std::string_view key) const {
  const json::Value* member = find(key);
  if (member == nullptr || member->integer() == nullptr) return wrong(key, "whole number");
  return *member->integer();
}

Result<int64_t> Component::integer_or(std::string_view key, int64_t otherwise) const {
  if (find(key) == nullptr) return otherwise;
  return integer(key);
}

Result<int> Component::flag_or(std::string_view key, int otherwise) const {
  const json::Value* member = find(key);
  if (member == nullptr) return otherwise;
  if (member->boolean() == nullptr) return wrong(key, "true or false");
  return *member->boolean() ? 1 : 0;
}

Result<std::vector<Component>> steps_of(const Component& sequence, std::string_view key,
                                        int nesting) {
  if (nesting >= kNestingMax) {
    return Status(Code::format, text("tokenizer.json: ", sequence.place(),
                                     ": sequences nested deeper than ", kNestingMax));
  }
  OPTIMA_ASSIGN(const json::Array* items, sequence.array(key));
  if (items->size() > kComponentsMax) {
    return Status(Code::format, text("tokenizer.json: ", sequence.place(), " has ", items->size(),
                                     " steps; at most ", kComponentsMax));
  }
  std::vector<Component> steps;
  for (size_t i = 0; i < items->size(); ++i) {
    OPTIMA_ASSIGN(Component step,
                  Component::of((*items)[i], text(sequence.place(), ".", key, "[", i, "]")));
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<std::string_view> one_character(const Component& component, std::string_view key,
                                       std::string_view otherwise) {
  OPTIMA_ASSIGN(const std::string_view value, component.string_or(key, otherwise));
  if (value.empty() || utf8_step(value, 0).bytes != value.size()) {
    return component.wrong(key, "single character");
  }
  return value;
}

}  // namespace optima::tokenizer::hf
