// Makes the library-owned buffers that text functions return.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optima/optima.h"

namespace optima::abi {

optima_buffer* make_buffer(std::string text);
optima_buffer* make_buffer(std::vector<int32_t> ids);

}  // namespace optima::abi
