// Numbers by from_chars: no locale, the whole text must be the number, out of range is an error.

#include "abi/option_values.h"

#include <charconv>
#include <utility>

#include "base/text.h"

namespace optima::abi {
namespace {

constexpr uint32_t kCpusMax = 65536;

// The text before the next comma; `rest` keeps what follows.
std::string_view next_item(std::string_view& rest) {
  const size_t comma = rest.find(',');
  const std::string_view item = rest.substr(0, comma);
  rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  return item;
}

// Calls add(item) for each item of a comma-separated list.
template <typename Add>
Status for_each_item(std::string_view value, Add add) {
  if (value.empty()) return {};
  if (value.back() == ',') return Status(Code::invalid_argument, "the list ends with a comma");
  while (!value.empty()) OPTIMA_TRY(add(next_item(value)));
  return {};
}

}  // namespace

template <typename Number>
Result<Number> parse_number(std::string_view value) {
  Number number{};
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  if (parsed.ec == std::errc::result_out_of_range) {
    return Status(Code::invalid_argument, text("'", value, "' is out of range"));
  }
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return Status(Code::invalid_argument, text("'", value, "' is not a number"));
  }
  return number;
}

template Result<int32_t> parse_number<int32_t>(std::string_view);
template Result<uint32_t> parse_number<uint32_t>(std::string_view);
template Result<int64_t> parse_number<int64_t>(std::string_view);
template Result<uint64_t> parse_number<uint64_t>(std::string_view);
template Result<float> parse_number<float>(std::string_view);

Result<bool> parse_switch(std::string_view value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return Status(Code::invalid_argument, text("'", value, "' is none of 0, 1, false, true"));
}

template <typename Number>
Result<std::vector<Number>> parse_list(std::string_view value) {
  std::vector<Number> out;
  OPTIMA_TRY(for_each_item(value, [&out](std::string_view item) -> Status {
    OPTIMA_ASSIGN(const Number number, parse_number<Number>(item));
    out.push_back(number);
    return {};
  }));
  return out;
}

template Result<std::vector<int32_t>> parse_list<int32_t>(std::string_view);
template Result<std::vector<int64_t>> parse_list<int64_t>(std::string_view);

Result<std::vector<uint64_t>> parse_cpus(std::string_view value) {
  std::vector<uint64_t> mask;
  OPTIMA_TRY(for_each_item(value, [&mask](std::string_view item) -> Status {
    const size_t dash = item.find('-');
    OPTIMA_ASSIGN(const uint32_t first, parse_number<uint32_t>(item.substr(0, dash)));
    uint32_t last = first;
    if (dash != std::string_view::npos) {
      OPTIMA_ASSIGN(last, parse_number<uint32_t>(item.substr(dash + 1)));
    }
    if (last < first || last >= kCpusMax) {
      return Status(Code::invalid_argument,
                    text("'", item, "' is not a range of CPUs below ", kCpusMax));
    }
    if (mask.size() <= last / 64) mask.resize(last / 64 + 1);
    for (uint32_t cpu = first; cpu <= last; ++cpu) mask[cpu / 64] |= uint64_t{1} << cpu % 64;
    return {};
  }));
  return mask;
}

Result<std::vector<optima_logit_bias>> parse_biases(std::string_view value) {
  std::vector<optima_logit_bias> out;
  OPTIMA_TRY(for_each_item(value, [&out](std::string_view item) -> Status {
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      return Status(Code::invalid_argument, text("'", item, "' is not id:bias"));
    }
    optima_logit_bias bias{};
    OPTIMA_ASSIGN(bias.token, parse_number<int32_t>(item.substr(0, colon)));
    OPTIMA_ASSIGN(bias.bias, parse_number<float>(item.substr(colon + 1)));
    out.push_back(bias);
    return {};
  }));
  return out;
}

}  // namespace optima::abi
