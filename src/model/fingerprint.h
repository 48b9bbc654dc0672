// A number by which two opened models are the same or not.
#pragma once

#include <cstdint>

#include "model/model_file.h"

namespace optima::model {

// Of all metadata, and of each tensor's name, type, shape and first and last bytes (4 KiB each):
// reading all weights would take longer than what the number is for. XXH3-64.
uint64_t fingerprint(const ModelFile& file);

}  // namespace optima::model
