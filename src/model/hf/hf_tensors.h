// Tensors of a Hugging Face folder -> tensors with GGUF names and layouts.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/allocator.h"
#include "model/hf/hf_form.h"
#include "model/hf/safetensors.h"
#include "model/model_file.h"

namespace optima::model {

class HfTensors {
 public:
  // `heads` counts query heads, for heads_to_parts. All references must outlive the object.
  HfTensors(const HfForm& form, int64_t heads, ModelFileParts& parts, Allocator& allocator)
      : form_(form), heads_(heads), parts_(parts), allocator_(allocator) {}

  // Adds what the form makes of the tensors. A name that it does not know is an error that names
  // it; buffers that older checkpoints carry along are passed over.
  Status add_all(const std::vector<SafeTensor>& tensors);

 private:
  Status add(const SafeTensor& tensor);
  // What the form makes of the tensor under this name; false when it does not know the name.
  Result<bool> add_as(const SafeTensor& tensor, std::string_view name);
  Status add_row(const SafeTensor& tensor, const HfTensorName& row, std::string name);
  Status add_as_is(const SafeTensor& tensor, std::string_view name);
  Status add_one(const SafeTensor& tensor, std::string_view name);
  Status transpose(const SafeTensor& tensor, std::string_view name);
  Status heads_to_parts(const SafeTensor& tensor, std::string_view name);
  Status halve_pairs(const SafeTensor& tensor, std::string_view name, int64_t odd);
  Status halve_bias_pairs(const SafeTensor& tensor, std::string_view name, int64_t odd);
  struct Mxfp4Rows {
    int64_t first, step;  // of the tensor's rows, those that are taken
  };
  Status mxfp4(const SafeTensor& blocks, std::string_view name, Mxfp4Rows rows);

  Result<std::byte*> buffer(int64_t bytes, std::string_view name);
  void push(std::string_view name, kernels::WeightType type, std::vector<int64_t> shape,
            const std::byte* data);

  const HfForm& form_;
  int64_t heads_;
  ModelFileParts& parts_;
  Allocator& allocator_;
  std::unordered_map<std::string_view, const SafeTensor*> by_name_;
};

}  // namespace optima::model
