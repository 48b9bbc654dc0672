// Engine events as the C struct.
#pragma once

#include "engine/request.h"
#include "optima/optima.h"

namespace optima::abi {

// The C view of an event; its pointers are into `event`.
optima_event describe(const engine::Event& event);

const optima_token_logprob* as_c(const std::vector<sampling::TokenLogprob>& top);

}  // namespace optima::abi
