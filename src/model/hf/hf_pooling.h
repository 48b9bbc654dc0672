// How a folder says that hidden rows become an embedding: the modules.json of sentence-transformers
// lists what follows the model, each module with a folder of its own.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "model/hf/hf_config.h"

namespace optima::model {

struct PoolingModules {
  std::string pooling_folder;  // its config.json says how; empty = no module pools
  bool normalises = false;
};

// Reads modules.json. A module that is not known is unsupported: what it does to the embedding
// would be missing.
Result<PoolingModules> read_modules(const json::Value& modules);

// Writes pooling_type from the pooling module's config.json. A way that is not supported, or more
// than one, is named.
Status translate_pooling(const json::Value& config, MetadataWriter& out);

}  // namespace optima::model
