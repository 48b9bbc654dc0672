// Base64 (RFC 4648, standard alphabet, padded) as tokenizer files have it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace optima::tokenizer::hf {

std::optional<std::string> decode_base64(std::string_view text);  // nullopt = it is none

}  // namespace optima::tokenizer::hf
