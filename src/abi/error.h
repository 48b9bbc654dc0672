// The error object of the C ABI: a Status that the host owns.
#pragma once

#include "base/status.h"
#include "optima/optima.h"

namespace optima::abi {

// May throw std::bad_alloc; the status must be a failure.
optima_error* make_error(Status status);

}  // namespace optima::abi
