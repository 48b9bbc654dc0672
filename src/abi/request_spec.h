// optima_request_desc -> engine::RequestSpec: everything checked and copied.
#pragma once

#include "abi/handle.h"
#include "base/status.h"
#include "engine/request.h"
#include "optima/optima.h"

namespace optima::abi {

// Does not look at on_event and release. `box` is where the hook on logits will be called back
// from.
Result<engine::RequestSpec> read_request(const optima_request_desc& desc,
                                         std::shared_ptr<EngineBox> box);

}  // namespace optima::abi
