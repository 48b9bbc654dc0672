// What a config.json says of weights that are stored as codes of 8 or 4 bits with scales in tensors
// beside them: "quantization_config".
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/hf/hf_config.h"

namespace optima::model {

struct HfQuantisation {
  bool coded = false;   // some weights are codes
  int packed_bits = 0;  // of a code in I32 tensors "weight_packed"; 0 = there are none
  // Weights that share a scale where it is neither that of a tensor nor of a row; 0 = not known.
  int64_t block_rows = 0;
  int64_t block_columns = 0;
};

// Methods read: compressed-tensors (float-quantized, int-quantized, naive-quantized and
// pack-quantized), fp8, fbgemm_fp8; mxfp4 is the architecture's own. Any other, and any setting
// that changes what the weights are, is unsupported by name. What a config says of activations is
// passed over: how another program rounds them is no property of the weights, and not rounding them
// so is nearer to the model that was quantised.
Result<HfQuantisation> read_hf_quantisation(const HfConfig& config);

}  // namespace optima::model
