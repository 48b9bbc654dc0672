// The process that runs this code.
#pragma once

#include <cstdint>

namespace optima {

// Its number; a forked child has another one.
int64_t process_id();

}  // namespace optima
