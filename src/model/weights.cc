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

Weights::Weights(const ModelFile& file) : file_(file), used_(file.tensors().size(), false) {}

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

Result<graph::Weight> Weights::rows(const std::string& name, const graph::Weight& shape,
                                    int64_t begin, int64_t count) {
  OPTIMA_ASSIGN(graph::Weight weight, matrix(name, shape.rows, shape.columns));
  const auto* info = kernels::find_weight_type(static_cast<int32_t>(weight.type));
  weight.data = static_cast<const std::byte*>(weight.data) +
                static_cast<size_t>(begin) * kernels::row_bytes(*info, weight.columns);
  weight.rows = count;
  return weight;
}

Result<std::vector<graph::Weight>> Weights::experts(const ExpertNames& names, int64_t count,
                                                    int64_t rows, int64_t columns) {
  std::vector<graph::Weight> out;
  if (!has(names.merged)) {
    for (int64_t e = 0; e < count; ++e) {
      OPTIMA_ASSIGN(const graph::Weight weight,
                    matrix(text(names.single_prefix, e, ".weight"), rows, columns));
      out.push_back(weight);
    }
    return out;
  }
  OPTIMA_ASSIGN(const Tensor* tensor, require(names.merged));
  const int64_t all_rows = names.rows_before + rows + names.rows_after;
  if (tensor->rank != 3 || tensor->shape[0] != columns || tensor->shape[1] != all_rows ||
      tensor->shape[2] != count)
    return Status(Code::format, text("tensor '", names.merged, "' has shape ", shape_text(*tensor),
                                     ", wanted [", count, ", ", all_rows, ", ", columns, "]"));
  const auto* info = kernels::find_weight_type(static_cast<int32_t>(tensor->type));
  const size_t row_bytes = kernels::row_bytes(*info, columns);
  for (int64_t e = 0; e < count; ++e) {
    const auto first_row = static_cast<size_t>(e * all_rows + names.rows_before);
    out.push_back(
        {tensor->name, tensor->data + first_row * row_bytes, tensor->type, rows, columns});
  }
  return out;
}

Result<const float*> Weights::as_floats(const Tensor& tensor) {
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) == 0;
  if (tensor.type == kernels::WeightType::f32 && aligned)
    return reinterpret_cast<const float*>(tensor.data);
  const int64_t size = tensor.row_length() * tensor.rows();
  copies_.push_back(std::make_unique<float[]>(static_cast<size_t>(size)));
  kernels::dequant_row(tensor.type)(tensor.data, copies_.back().get(), size);
  return static_cast<const float*>(copies_.back().get());
}

Result<const float*> Weights::vector(const std::string& name, int64_t size) {
  OPTIMA_ASSIGN(const Tensor* tensor, require(name));
  if (tensor->rank != 1 || tensor->shape[0] != size)
    return Status(Code::format, text("tensor '", name, "' has shape ", shape_text(*tensor),
                                     ", wanted [", size, "]"));
  return as_floats(*tensor);
}

Result<const float*> Weights::vectors(const std::string& name, int64_t count, int64_t size) {
  OPTIMA_ASSIGN(const Tensor* tensor, require(name));
  if (tensor->rank != 2 || tensor->shape[0] != size || tensor->shape[1] != count)
    return Status(Code::format, text("tensor '", name, "' has shape ", shape_text(*tensor),
                                     ", wanted [", count, ", ", size, "]"));
  return as_floats(*tensor);
}

void Weights::account_for(std::string_view name) {
  const Tensor* tensor = file_.find(name);
  if (tensor != nullptr) used_[static_cast<size_t>(tensor - file_.tensors().data())] = true;
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
