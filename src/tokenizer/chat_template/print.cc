// How values become text: str() and repr() as Python prints them, and JSON as Python's json.dumps
// writes it, which is what the transformers library gives templates as `tojson`.
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "tokenizer/chat_template/operators.h"

namespace optima::tokenizer::jinja {
namespace {

void append_hex(std::string& out, uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out.push_back("0123456789abcdef"[value >> shift & 0xF]);
  }
}

bool is_printable(uint32_t code_point) {
  if (code_point < 0x7F) return code_point >= 0x20;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

void append_unprintable(std::string& out, uint32_t code_point) {
  const int digits = code_point < 0x100 ? 2 : code_point < 0x10000 ? 4 : 8;
  out.append(digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U");
  append_hex(out, code_point, digits);
}

std::string quoted(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.value == static_cast<uint32_t>(quote) || point.value == '\\') {
      out.push_back('\\');
      out.push_back(text[at]);
    } else if (point.value == '\n' || point.value == '\r' || point.value == '\t') {
      out.append(point.value == '\n' ? "\\n" : point.value == '\r' ? "\\r" : "\\t");
    } else if (is_printable(point.value)) {
      out.append(text, at, point.byte_count);
    } else {
      append_unprintable(out, point.value);
    }
    at += std::max(point.byte_count, 1u);
  }
  out.push_back(quote);
  return out;
}

// Walks a value and writes it as repr() does.
class ReprWriter {
 public:
  ReprWriter(Runtime& runtime, TextBuffer& out) : runtime_(runtime), out_(out) {}

  Status write(const Value& value) {
    OPTIMA_TRY(runtime_.tick());
    switch (value.kind()) {
      case Kind::missing:
      case Kind::undefined:
        return out_.append("Undefined");
      case Kind::none:
        return out_.append("None");
      case Kind::boolean:
        return out_.append(value.whole() != 0 ? "True" : "False");
      case Kind::integer:
        return out_.append(text(value.whole()));
      case Kind::real:
        return out_.append(real_repr(value.number()));
      case Kind::string:
        return out_.append(quoted(value.text()));
      case Kind::sequence:
        return nested(&ReprWriter::write_sequence, value);
      case Kind::dict:
        return nested(&ReprWriter::write_dict, value);
      case Kind::name_space:
        OPTIMA_TRY(out_.append("<Namespace "));
        OPTIMA_TRY(nested(&ReprWriter::write_dict, value));
        return out_.append(">");
      case Kind::macro:
        return out_.append(text("<Macro ", quoted(macro_name(value)), ">"));
      case Kind::function:
        return out_.append(text("<function ", global_name(value.whole()), ">"));
      default:
        return out_.append(text("<", type_name(value), ">"));
    }
  }

 private:
  Status nested(Status (ReprWriter::*rule)(const Value&), const Value& value) {
    if (++depth_ > Runtime::kValueDepthMax) {
      return runtime_.fail(text("a value nested deeper than ", Runtime::kValueDepthMax));
    }
    OPTIMA_TRY((this->*rule)(value));
    --depth_;
    return {};
  }

  Status write_items(const std::vector<Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) OPTIMA_TRY(out_.append(", "));
      OPTIMA_TRY(write(items[i]));
    }
    return {};
  }

  Status write_sequence(const Value& value) {
    const Sequence& sequence = value.sequence();
    const std::vector<Value>& items = sequence.items;
    switch (sequence.flavor) {
      case Flavor::tuple:
        OPTIMA_TRY(out_.append("("));
        OPTIMA_TRY(write_items(items));
        return out_.append(items.size() == 1 ? ",)" : ")");
      case Flavor::range: {
        const int64_t start = items.empty() ? 0 : items[0].whole();
        const int64_t step = items.size() < 2 ? 1 : items[1].whole() - start;
        OPTIMA_TRY(out_.append(text("range(", start, ", ", sequence.range_stop)));
        return out_.append(step == 1 ? std::string(")") : text(", ", step, ")"));
      }
      case Flavor::generator:
        return out_.append("<generator>");
      default: {
        const bool is_view = sequence.flavor != Flavor::list;
        if (is_view) OPTIMA_TRY(out_.append(text(type_name(value), "(")));
        OPTIMA_TRY(out_.append("["));
        OPTIMA_TRY(write_items(items));
        return out_.append(is_view ? "])" : "]");
      }
    }
  }

  Status write_dict(const Value& value) {
    OPTIMA_TRY(out_.append("{"));
    const std::vector<Dict::Entry>& entries = value.dict().entries;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) OPTIMA_TRY(out_.append(", "));
      OPTIMA_TRY(write(entries[i].first));
      OPTIMA_TRY(out_.append(": "));
      OPTIMA_TRY(write(entries[i].second));
    }
    return out_.append("}");
  }

  Runtime& runtime_;
  TextBuffer& out_;
  int32_t depth_ = 0;
};

std::string json_string(const std::string& text, bool ascii_only) {
  std::string out = "\"";
  const auto append_unit = [&](uint32_t unit) {
    out.append("\\u");
    append_hex(out, unit, 4);
  };
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
    const size_t special = point.value < 0x80 ? kSpecial.find(text[at]) : std::string_view::npos;
    if (special != std::string_view::npos) {
      out.push_back('\\');
      out.push_back("\"\\bfnrt"[special]);
    } else if (point.value < 0x20 || (ascii_only && point.value >= 0x7F && point.value < 0x10000)) {
      append_unit(point.value);
    } else if (ascii_only && point.value >= 0x10000) {
      append_unit(0xD800 + ((point.value - 0x10000) >> 10));
      append_unit(0xDC00 + ((point.value - 0x10000) & 0x3FF));
    } else {
      out.append(text, at, point.byte_count);
    }
    at += std::max(point.byte_count, 1u);
  }
  out.push_back('"');
  return out;
}

std::string json_real(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return real_repr(value);
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, TextBuffer& out, const JsonStyle& style)
      : runtime_(runtime), out_(out), style_(style) {}

  Status write(const Value& value) {
    OPTIMA_TRY(runtime_.tick());
    switch (value.kind()) {
      case Kind::none:
        return out_.append("null");
      case Kind::boolean:
        return out_.append(value.whole() != 0 ? "true" : "false");
      case Kind::integer:
        return out_.append(text(value.whole()));
      case Kind::real:
        return out_.append(json_real(value.number()));
      case Kind::string:
        return out_.append(json_string(value.text(), style_.ascii_only));
      case Kind::sequence:
        if (value.sequence().flavor > Flavor::tuple) break;
        return nested(&JsonWriter::write_array, value);
      case Kind::dict:
        return nested(&JsonWriter::write_object, value);
      default:
        break;
    }
    return runtime_.fail(text("tojson: a value of type '", type_name(value), "' has no JSON form"));
  }

 private:
  Status nested(Status (JsonWriter::*rule)(const Value&), const Value& value) {
    if (++depth_ > Runtime::kValueDepthMax) {
      return runtime_.fail(text("tojson: nested deeper than ", Runtime::kValueDepthMax));
    }
    OPTIMA_TRY((this->*rule)(value));
    --depth_;
    return {};
  }

  Status new_line(int32_t depth) {
    if (!style_.has_indent) return {};
    OPTIMA_TRY(out_.append("\n"));
    for (int32_t i = 0; i < depth; ++i) OPTIMA_TRY(out_.append(style_.indent));
    return {};
  }

  Status write_array(const Value& value) {
    const std::vector<Value>& items = value.sequence().items;
    if (items.empty()) return out_.append("[]");
    OPTIMA_TRY(out_.append("["));
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) OPTIMA_TRY(out_.append(style_.item_separator));
      OPTIMA_TRY(new_line(depth_));
      OPTIMA_TRY(write(items[i]));
    }
    OPTIMA_TRY(new_line(depth_ - 1));
    return out_.append("]");
  }

  Result<std::string> key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::string:
        return key.text();
      case Kind::none:
        return std::string("null");
      case Kind::boolean:
        return std::string(key.whole() != 0 ? "true" : "false");
      case Kind::integer:
        return text(key.whole());
      case Kind::real:
        return json_real(key.number());
      default:
        return runtime_.fail(text("tojson: a key of type '", type_name(key), "'"));
    }
  }

  Result<std::vector<const Dict::Entry*>> ordered(const Dict& dict) {
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries) entries.push_back(&entry);
    if (!style_.sort_keys) return entries;
    Status failure;
    std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
      if (!failure.ok()) return false;
      Result<bool> less = is_ordered(runtime_, Operator::less, a->first, b->first);
      if (!less.ok()) failure = less.take_status();
      return less.ok() && *less;
    });
    if (!failure.ok()) return failure;
    return entries;
  }

  Status write_object(const Value& value) {
    OPTIMA_ASSIGN(const auto entries, ordered(value.dict()));
    if (entries.empty()) return out_.append("{}");
    OPTIMA_TRY(out_.append("{"));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) OPTIMA_TRY(out_.append(style_.item_separator));
      OPTIMA_TRY(new_line(depth_));
      OPTIMA_ASSIGN(const std::string key, key_text(entries[i]->first));
      OPTIMA_TRY(out_.append(json_string(key, style_.ascii_only)));
      OPTIMA_TRY(out_.append(style_.key_separator));
      OPTIMA_TRY(write(entries[i]->second));
    }
    OPTIMA_TRY(new_line(depth_ - 1));
    return out_.append("}");
  }

  Runtime& runtime_;
  TextBuffer& out_;
  const JsonStyle& style_;
  int32_t depth_ = 0;
};

}  // namespace

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return "str";
    case Kind::sequence: {
      constexpr std::string_view kNames[] = {"list",       "tuple",     "range",      "generator",
                                             "dict_items", "dict_keys", "dict_values"};
      return kNames[static_cast<size_t>(value.sequence().flavor)];
    }
    case Kind::dict:
      return "dict";
    case Kind::name_space:
      return "Namespace";
    case Kind::macro:
      return "Macro";
    case Kind::method:
    case Kind::function:
      return "function";
    case Kind::loop:
      return "LoopContext";
    default:
      return "Undefined";
  }
}

std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const char* const end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));
  const size_t e = shortest.find('e');
  int exponent = 0;
  const size_t exponent_at = e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(buffer + exponent_at, end, exponent);
  std::string digits;
  for (const char c : shortest.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const std::string sign = value < 0 || (value == 0 && std::signbit(value)) ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = count > 1 ? "." + digits.substr(1) : "";
    const int size = std::abs(exponent);
    return text(sign, digits[0], fraction, exponent < 0 ? "e-" : "e+", size < 10 ? "0" : "", size);
  }
  if (exponent < 0) {
    return text(sign, "0.", std::string(static_cast<size_t>(-exponent - 1), '0'), digits);
  }
  if (count <= exponent + 1) {
    return text(sign, digits, std::string(static_cast<size_t>(exponent + 1 - count), '0'), ".0");
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  return text(sign, digits.substr(0, whole), ".", digits.substr(whole));
}

Status append_str(Runtime& runtime, TextBuffer& out, const Value& value) {
  if (value.is(Kind::string)) return out.append(value.text());
  if (value.is(Kind::undefined)) return {};
  return append_repr(runtime, out, value);
}

Status append_repr(Runtime& runtime, TextBuffer& out, const Value& value) {
  return ReprWriter(runtime, out).write(value);
}

Result<Value> str_of(Runtime& runtime, const Value& value) {
  if (value.is(Kind::string)) return value;
  TextBuffer out(runtime);
  OPTIMA_TRY(append_str(runtime, out, value));
  return out.take_value();
}

Status append_json(Runtime& runtime, TextBuffer& out, const Value& value, const JsonStyle& style) {
  return JsonWriter(runtime, out, style).write(value);
}

}  // namespace optima::tokenizer::jinja
