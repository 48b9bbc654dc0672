// Every post-processor is, for one text, ids before and ids after it; a Sequence nests them. A
// template that has the text twice or not at all is refused: no model does, and neither end of
// the interface could undo it.
#include "tokenizer/hf/post_processor.h"

#include <limits>

#include "base/text.h"

namespace optima::tokenizer::hf {
namespace {

Status append_id(const Component& component, const json::Value& value, std::vector<int32_t>& out) {
  const int64_t* id = value.integer();
  if (id == nullptr || *id < 0 || *id > std::numeric_limits<int32_t>::max()) {
    return component.wrong("ids", "list of token ids");
  }
  out.push_back(static_cast<int32_t>(*id));
  return {};
}

// The ids that a special token of the template stands for.
Status append_special(const Component& component, std::string_view name,
                      std::vector<int32_t>& out) {
  OPTIMA_ASSIGN(const Component tokens, component.object("special_tokens"));
  OPTIMA_ASSIGN(const Component token, tokens.object(name));
  OPTIMA_ASSIGN(const json::Array* ids, token.array("ids"));
  for (const json::Value& id : *ids) OPTIMA_TRY(append_id(token, id, out));
  return {};
}

Result<Template> read_template(const Component& component) {
  Template made;
  int texts = 0;
  OPTIMA_ASSIGN(const std::vector<Component> items, steps_of(component, "single", 0));
  for (const Component& item : items) {
    if (item.find("SpecialToken") != nullptr) {
      OPTIMA_ASSIGN(const Component special, item.object("SpecialToken"));
      OPTIMA_ASSIGN(const std::string_view name, special.string("id"));
      OPTIMA_TRY(append_special(component, name, texts == 0 ? made.before : made.after));
    } else {
      OPTIMA_ASSIGN(const Component sequence, item.object("Sequence"));
      OPTIMA_ASSIGN(const std::string_view id, sequence.string("id"));
      if (id != "A") return item.unsupported("sequence", id);
      ++texts;
    }
  }
  if (texts != 1) {
    return Status(Code::unsupported, text("tokenizer.json: ", component.place(),
                                          ".single has the text ", texts, " times"));
  }
  return made;
}

// "cls" and "sep": [text, id].
Status append_pair(const Component& component, std::string_view key, std::vector<int32_t>& out) {
  OPTIMA_ASSIGN(const json::Array* pair, component.array(key));
  if (pair->size() != 2) return component.wrong(key, "token with its id");
  return append_id(component, (*pair)[1], out);
}

Result<Template> read(const Component& component, int nesting);

Result<Template> read_sequence(const Component& component, int nesting) {
  OPTIMA_ASSIGN(const std::vector<Component> steps, steps_of(component, "processors", nesting));
  Template whole;
  for (const Component& step : steps) {
    OPTIMA_ASSIGN(const Template outer, read(step, nesting + 1));
    whole.before.insert(whole.before.begin(), outer.before.begin(), outer.before.end());
    whole.after.insert(whole.after.end(), outer.after.begin(), outer.after.end());
  }
  return whole;
}

Result<Template> read(const Component& component, int nesting) {
  OPTIMA_ASSIGN(const std::string_view type, component.type());
  if (type == "Sequence") return read_sequence(component, nesting);
  if (type == "TemplateProcessing") return read_template(component);
  Template made;
  if (type == "ByteLevel") return made;  // moves offsets, not ids
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    OPTIMA_TRY(append_pair(component, "cls", made.before));
    OPTIMA_TRY(append_pair(component, "sep", made.after));
    return made;
  }
  return component.unsupported("post-processor", type);
}

}  // namespace

Result<Template> read_post_processor(const json::Value* value) {
  if (value == nullptr || value->is_null()) return Template();
  OPTIMA_ASSIGN(const Component component, Component::of(*value, "post_processor"));
  return read(component, 0);
}

}  // namespace optima::tokenizer::hf
