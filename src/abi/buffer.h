// Makes the library-owned buffers that functions return.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optima/optima.h"

namespace optima::abi {

optima_buffer* make_buffer(std::string text);
optima_buffer* make_buffer(std::vector<int32_t> ids);
optima_buffer* make_buffer(std::vector<float> floats);

}  // namespace optima::abi
