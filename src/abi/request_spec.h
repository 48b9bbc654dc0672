// optima_request_desc -> engine::RequestSpec: everything checked and copied.
#pragma once

#include "base/status.h"
#include "engine/request.h"
#include "optima/optima.h"

namespace optima::abi {

// Does not look at on_event, user and release.
Result<engine::RequestSpec> read_request(const optima_request_desc& desc);

}  // namespace optima::abi
