// The tables of filters, one per file; only filters.cc looks into them.
#pragma once

#include <span>

#include "tokenizer/chat_template/operators.h"

namespace optima::tokenizer::jinja {

using FilterFunction = Result<Value> (*)(Runtime& runtime, const Value& input,
                                         const Arguments& arguments);

struct FilterEntry {
  std::string_view name;
  FilterFunction function;
};

std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> number_filters();
std::span<const FilterEntry> sequence_filters();

}  // namespace optima::tokenizer::jinja
