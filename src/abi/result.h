// Makes the result object of a finished request.
#pragma once

#include "engine/request.h"
#include "optima/optima.h"

namespace optima::abi {

optima_result* make_result(const engine::RequestResult& result);

}  // namespace optima::abi
