// See hf_pooling.h.
#include "model/hf/hf_pooling.h"

#include <algorithm>

#include "base/text.h"
#include "model/config.h"

namespace optima::model {
namespace {

// The last part of "sentence_transformers.models.Pooling".
std::string_view class_of(std::string_view type) {
  return type.substr(type.rfind('.') + 1);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

Status malformed(std::string_view what) {
  return Status(Code::format, text("modules.json: ", what));
}

}  // namespace

Result<PoolingModules> read_modules(const json::Value& modules) {
  if (modules.array() == nullptr) return malformed("no list");
  PoolingModules out;
  for (const json::Value& module : *modules.array()) {
    const json::Value* type = module.find("type");
    const json::Value* path = module.find("path");
    if (type == nullptr || type->string() == nullptr || path == nullptr ||
        path->string() == nullptr)
      return malformed("a module has no type or no path");
    const std::string_view kind = class_of(*type->string());
    if (kind == "Normalize") {
      out.normalises = true;
    } else if (kind == "Pooling") {
      if (!is_plain_name(*path->string()) || !out.pooling_folder.empty())
        return malformed(text("the pooling module's path is ", in_quotes(*path->string()),
                              ", wanted is one name of a folder"));
      out.pooling_folder = *path->string();
    } else if (kind != "Transformer") {
      return Status(Code::unsupported, text("modules.json: module ", in_quotes(*type->string()),
                                            " is not supported; known are Transformer, Pooling "
                                            "and Normalize"));
    }
  }
  return out;
}

Status translate_pooling(const json::Value& config, MetadataWriter& out) {
  constexpr std::string_view kPrefix = "pooling_mode_";
  struct Row {
    std::string_view mode;
    Pooling pooling;
  };
  constexpr Row kRows[] = {
      {"mean_tokens", Pooling::mean}, {"cls_token", Pooling::cls}, {"lasttoken", Pooling::last}};
  if (config.object() == nullptr) return Status(Code::format, "pooling: config.json is no object");
  std::string_view chosen;
  for (const json::Member& entry : *config.object()) {
    const std::string_view key = entry.key;
    const bool* on = entry.value.boolean();
    if (!key.starts_with(kPrefix) || on == nullptr || !*on) continue;
    if (!chosen.empty())
      return Status(Code::unsupported, text("pooling: both ", chosen, " and ", key, " are on"));
    chosen = key;
  }
  for (const Row& row : kRows)
    if (!chosen.empty() && chosen.substr(kPrefix.size()) == row.mode)
      return out.integer("pooling_type", static_cast<int64_t>(row.pooling));
  return Status(Code::unsupported,
                text("pooling: ", chosen.empty() ? "no mode that is known" : chosen,
                     " is on; supported are mean_tokens, cls_token and lasttoken"));
}

}  // namespace optima::model
