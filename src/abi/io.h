// The host's reader of bytes that lie anywhere.
#pragma once

#include "abi/handle.h"
#include "base/status.h"
#include "model/source.h"
#include "optima/optima.h"

namespace optima::abi {

// `hook` keeps the host's release hook, also when this fails.
Result<model::CallbackSource> read_io(const optima_io* in, ReleaseOnce& hook);

// A path argument: not empty, no NUL in it.
Result<std::string> read_path(const char* path, size_t path_bytes);

}  // namespace optima::abi
