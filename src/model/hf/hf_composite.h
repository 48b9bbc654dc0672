// Folders that hold a model of texts and images (or sound): the text part is computed, the others
// are left out. config.json has the text part's options in "text_config"; its tensors carry a
// prefix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/hf/hf_config.h"
#include "model/hf/safetensors.h"

namespace optima::model {

struct HfComposite {
  std::string_view model_type;  // of the folder
  std::string_view text_type;   // model_type of the text part where text_config names none
};

// Null when the model_type is not one of these.
const HfComposite* find_hf_composite(std::string_view model_type);
std::string hf_composite_types();

// What the classes of transformers fill in where a text_config leaves a key out, as JSON: a
// text_config may hold only what differs from it. "{}" for a type without such defaults.
std::string_view hf_text_defaults(std::string_view text_type);

// Accounts for the keys beside text_config that concern what is left out; one that is not known is
// unsupported by name.
Status check_composite_keys(const HfConfig& root);

// The text part's tensors under the names of a folder that holds nothing else. `left_out` counts
// the others.
std::vector<SafeTensor> take_text_part(std::vector<SafeTensor> tensors, size_t& left_out);

}  // namespace optima::model
