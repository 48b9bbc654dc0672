// Texts of option values -> numbers and arrays. Every function fails with invalid_argument naming
// the value and what would be one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "optima/optima.h"

namespace optima::abi {

template <typename Number>
Result<Number> parse_number(std::string_view value);

// "0" / "1" / "false" / "true"
Result<bool> parse_switch(std::string_view value);

// "3,17,5"; an empty text is an empty list.
template <typename Number>
Result<std::vector<Number>> parse_list(std::string_view value);

// "0-3,8": a CPU list as the kernel writes it -> bit mask.
Result<std::vector<uint64_t>> parse_cpus(std::string_view value);

// "5:-1.5,17:2"
Result<std::vector<optima_logit_bias>> parse_biases(std::string_view value);

}  // namespace optima::abi
