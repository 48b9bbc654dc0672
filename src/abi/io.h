// The host's readers of bytes that lie anywhere.
#pragma once

#include "abi/handle.h"
#include "base/status.h"
#include "model/source.h"
#include "optima/optima.h"

namespace optima::abi {

// `hook` keeps the host's release hook, also when this fails.
Result<model::CallbackSource> read_io(const optima_io* in, ReleaseOnce& hook);

// The same for the files of a folder.
Result<model::FolderSource> read_folder(const optima_folder* in, ReleaseOnce& hook);

// A path argument: not empty, no NUL in it.
Result<std::string> read_path(const char* path, size_t path_bytes);

}  // namespace optima::abi
