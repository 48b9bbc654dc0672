// Filters that make text.
#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/chat_template/filters.h"
#include "tokenizer/chat_template/text_tools.h"

namespace optima::tokenizer::jinja {
namespace {

template <std::string (*kMap)(std::string_view)>
Result<Value> filter_map_text(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "filter", arguments, {}, 0).take_status());
  OPTIMA_ASSIGN(const Value printed, str_of(runtime, input));
  OPTIMA_TRY(runtime.tick_bytes(4 * printed.text().size()));
  return runtime.string(kMap(printed.text()));
}

// Jinja's title: a word starts after white space, '-' or an opening bracket.
std::string title_text(std::string_view text) {
  std::string out;
  std::string word;
  const auto finish_word = [&] {
    if (word.empty()) return;
    const CodePoint first = decode_utf8(word, 0);
    const std::string_view rest = std::string_view(word).substr(std::max(first.byte_count, 1u));
    out += to_upper(std::string_view(word).substr(0, word.size() - rest.size())) + to_lower(rest);
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const size_t size = std::max(point.byte_count, 1u);
    const bool splits =
        is_space(point.value) ||
        (point.value < 0x80 && std::string_view("-({[<").find(text[at]) != std::string_view::npos);
    if (splits) {
      finish_word();
      out.append(text.substr(at, size));
    } else {
      word.append(text.substr(at, size));
    }
    at += size;
  }
  finish_word();
  return out;
}

Result<Value> filter_string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "string", arguments, {}, 0).take_status());
  return str_of(runtime, input);
}

Result<Value> mark_safe(Runtime& runtime, std::string text) {
  OPTIMA_ASSIGN(Value result, runtime.string(std::move(text)));
  static_cast<String*>(result.object())->safe = true;
  return result;
}

Result<Value> filter_safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "safe", arguments, {}, 0).take_status());
  OPTIMA_ASSIGN(const Value printed, str_of(runtime, input));
  return mark_safe(runtime, printed.text());
}

Result<Value> filter_escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "escape", arguments, {}, 0).take_status());
  if (input.is(Kind::string) && input.string().safe) return input;
  OPTIMA_ASSIGN(const Value printed, str_of(runtime, input));
  OPTIMA_TRY(runtime.allow_text(static_cast<int64_t>(printed.text().size())));
  return mark_safe(runtime, escape_html(printed.text()));
}

Result<Value> filter_trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "trim", arguments, {"chars"}, 0));
  OPTIMA_ASSIGN(const Value printed, str_of(runtime, input));
  OPTIMA_TRY(runtime.tick_bytes(printed.text().size()));
  if (bound[0].is(Kind::missing) || bound[0].is(Kind::none)) {
    return runtime.string(std::string(strip(printed.text(), Side::both)));
  }
  if (!bound[0].is(Kind::string)) return runtime.fail("'trim' needs a string of characters");
  return runtime.string(std::string(strip(printed.text(), Side::both, bound[0].text())));
}

Result<Value> filter_replace(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "replace", arguments, {"old", "new", "count"}, 2));
  OPTIMA_ASSIGN(const Value whole, str_of(runtime, input));
  OPTIMA_ASSIGN(const Value old_part, str_of(runtime, bound[0]));
  OPTIMA_ASSIGN(const Value new_part, str_of(runtime, bound[1]));
  int64_t count = -1;
  if (!bound[2].is(Kind::missing) && !bound[2].is(Kind::none)) {
    OPTIMA_ASSIGN(count, to_index(runtime, bound[2], "'replace'"));
  }
  const std::string_view old_text = old_part.text();
  std::string_view rest = whole.text();
  TextBuffer out(runtime);
  for (int64_t done = 0; count < 0 || done < count; ++done) {
    if (old_text.empty()) {  // matches before every character and at the end
      OPTIMA_TRY(out.append(new_part.text()));
      if (rest.empty()) return out.take_value();
      const size_t size = std::max(decode_utf8(rest, 0).byte_count, 1u);
      OPTIMA_TRY(out.append(rest.substr(0, size)));
      rest.remove_prefix(size);
      continue;
    }
    const size_t at = rest.find(old_text);
    if (at == std::string_view::npos) break;
    OPTIMA_TRY(out.append(rest.substr(0, at)));
    OPTIMA_TRY(out.append(new_part.text()));
    rest.remove_prefix(at + old_text.size());
  }
  OPTIMA_TRY(out.append(rest));
  return out.take_value();
}

Result<Value> filter_join(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound, bind(runtime, "join", arguments, {"d", "attribute"}, 0));
  OPTIMA_ASSIGN(const Value items, iterate(runtime, input));
  const bool has_path = !bound[1].is(Kind::missing) && !bound[1].is(Kind::none);
  TextBuffer out(runtime);
  bool is_first = true;
  for (const Value& item : items.sequence().items) {
    if (!is_first && !bound[0].is(Kind::missing)) {
      OPTIMA_TRY(append_str(runtime, out, bound[0]));
    }
    is_first = false;
    Value shown = item;
    if (has_path) {
      OPTIMA_ASSIGN(shown, get_path(runtime, item, bound[1]));
    }
    OPTIMA_TRY(append_str(runtime, out, shown));
  }
  return out.take_value();
}

Result<Value> filter_indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const auto bound,
                bind(runtime, "indent", arguments, {"width", "first", "blank"}, 0));
  OPTIMA_TRY(cannot_use_undefined(runtime, input));
  if (!input.is(Kind::string)) {
    return runtime.fail(text("'indent' needs a string, not '", type_name(input), "'"));
  }
  std::string indent = "    ";
  if (bound[0].is(Kind::string)) {
    indent = bound[0].text();
  } else if (!bound[0].is(Kind::missing)) {
    OPTIMA_ASSIGN(const int64_t width, to_index(runtime, bound[0], "'indent'"));
    OPTIMA_TRY(runtime.allow_text(width));
    indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  OPTIMA_TRY(runtime.allow_text(static_cast<int64_t>(2 * input.text().size())));
  const std::string whole = input.text() + "\n";
  const std::vector<std::string_view> lines = split_lines(whole, LineEnds::drop);
  const bool indents_blank = is_true(bound[2]);
  TextBuffer out(runtime);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) OPTIMA_TRY(out.append("\n"));
    const bool is_indented = i == 0 ? is_true(bound[1]) : indents_blank || !lines[i].empty();
    if (is_indented) OPTIMA_TRY(out.append(indent));
    OPTIMA_TRY(out.append(lines[i]));
  }
  return out.take_value();
}

bool is_word_character(uint32_t c) {
  return c == '_' || is_letter(c) || is_digit(c);
}

Result<Value> filter_wordcount(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_TRY(bind(runtime, "wordcount", arguments, {}, 0).take_status());
  OPTIMA_ASSIGN(const Value printed, str_of(runtime, input));
  OPTIMA_TRY(runtime.tick_bytes(printed.text().size()));
  const std::string& whole = printed.text();
  int64_t count = 0;
  bool in_word = false;
  for (size_t at = 0; at < whole.size();) {
    const CodePoint point = decode_utf8(whole, at);
    const bool is_word = is_word_character(point.value);
    if (is_word && !in_word) ++count;
    in_word = is_word;
    at += std::max(point.byte_count, 1u);
  }
  return Value::integer(count);
}

Result<Value> filter_format(Runtime& runtime, const Value& input, const Arguments& arguments) {
  OPTIMA_ASSIGN(const Value format, str_of(runtime, input));
  if (arguments.named.empty()) {
    OPTIMA_ASSIGN(const Value given, runtime.sequence(Flavor::tuple, arguments.positional));
    return format_percent(runtime, format.text(), given);
  }
  if (!arguments.positional.empty()) return runtime.fail("'format' takes values or names");
  OPTIMA_ASSIGN(const Value given, call_global(runtime, find_global("dict"), arguments));
  return format_percent(runtime, format.text(), given);
}

constexpr FilterEntry kTextFilters[] = {
    {"upper", filter_map_text<to_upper>},
    {"lower", filter_map_text<to_lower>},
    {"capitalize", filter_map_text<capitalize>},
    {"title", filter_map_text<title_text>},
    {"string", filter_string},
    {"safe", filter_safe},
    {"escape", filter_escape},
    {"e", filter_escape},
    {"trim", filter_trim},
    {"replace", filter_replace},
    {"join", filter_join},
    {"indent", filter_indent},
    {"wordcount", filter_wordcount},
    {"format", filter_format},
};

}  // namespace

std::span<const FilterEntry> text_filters() {
  return kTextFilters;
}

}  // namespace optima::tokenizer::jinja
