// Shape-checked access to a file's tensors; see weights.h.
#include "model/weights.h"

#include "base/text.h"

namespace optima::model {
namespace {

std::string shape_text(const Tensor& tensor) {
  std::string out = "[";
  for (int i = tensor.rank - 1; i >= 0; --i)
    out += text(tensor.shape[static_cast<size_t>(i)], i > 0 ? ", " : "]");
  return out;
}

}  // namespace

Weights::Weights(const Gguf& file) : file_(file), used_(file.tensors().size(), false) {}

Result<const Tensor*> Weights::require(const std::string& name) {
  const Tensor* tensor = file_.find(name);
  if (tensor == nullptr) return Status(Code::format, text("tensor '", name, "' is missing"));
  used_[static_cast<size_t>(tensor - file_.tensors().data())] = true;
  return tensor;
}

Result<graph::Weight> Weights::matrix(const std::string& name, int64_t rows, int64_t columns) {
  OPTIMA_ASSIGN(const Tensor* tensor, require(name));
  if (tensor->rank > 2 || tensor->shape[0] != columns || tensor->shape[1] != rows)
    return Status(Code::format, text("tensor '", name, "' has shape ", shape_text(*tensor),
                                     ", wanted [", rows, ", ", columns, "]"));
  return graph::Weight{tensor->name, tensor->data, tensor->type, rows, columns};
}

Result<const float*> Weights::vector(const std::string& name, int64_t size) {
  OPTIMA_ASSIGN(const Tensor* tensor, require(name));
  if (tensor->rank != 1 || tensor->shape[0] != size)
    return Status(Code::format, text("tensor '", name, "' has shape ", shape_text(*tensor),
                                     ", wanted [", size, "]"));
  const bool aligned = reinterpret_cast<uintptr_t>(tensor->data) % alignof(float) == 0;
  if (tensor->type == kernels::WeightType::f32 && aligned)
    return reinterpret_cast<const float*>(tensor->data);
  copies_.push_back(std::make_unique<float[]>(static_cast<size_t>(size)));
  kernels::dequant_row(tensor->type)(tensor->data, copies_.back().get(), size);
  return static_cast<const float*>(copies_.back().get());
}

Status Weights::all_used() const {
  for (size_t i = 0; i < used_.size(); ++i)
    if (!used_[i])
      return Status(Code::unsupported,
                    text("tensor '", file_.tensors()[i].name,
                         "' is not part of this architecture as it is known here"));
  return {};
}

}  // namespace optima::model
