// optima_request_desc -> engine::RequestSpec: everything checked and copied.
#pragma once

#include "abi/handle.h"
#include "base/status.h"
#include "engine/request.h"
#include "optima/optima.h"

namespace optima::abi {

// The release hook and what it is for, taken before anything can fail.
ReleaseOnce take_hook(const optima_request_desc* in);

// Does not look at on_event and release. `box` is where the hook on logits will be called back
// from; `purpose` says whether an embedding is asked for.
Result<engine::RequestSpec> read_request(const optima_request_desc& desc,
                                         std::shared_ptr<EngineBox> box,
                                         engine::SessionOutput purpose);

}  // namespace optima::abi
