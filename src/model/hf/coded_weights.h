// Weights that a folder stores as codes of 8 or 4 bits, with scales in tensors beside them, as
// weights that the kernels have. A weight is code x scale.
//
//   F8_E4M3, I8 "<module>.weight" [rows, columns]    scales "<module>.weight_scale" or
//   I32 "<module>.weight_packed", with weight_shape          "<module>.weight_scale_inv"
//
// A scale is that of the tensor, of a row ([rows] or [rows, 1]) or of a block (as many as cover
// rows and columns). What becomes of the codes:
//   - whole numbers keep their bits: I8 and packed 8 bits become Q8_0, packed 4 bits Q4_0, with the
//     scale rounded to F16, where rows are whole blocks of 32 with one scale each and every scale
//     is a normal number of F16;
//   - all others become F16, or BF16 where a tensor's scales are so small or large that F16 would
//     be the coarser of the two.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/allocator.h"
#include "model/hf/hf_quantisation.h"
#include "model/hf/safetensors.h"
#include "model/model_file.h"

namespace optima::model {

class CodedWeights {
 public:
  // All references must outlive the object.
  CodedWeights(const HfQuantisation& how, ModelFileParts& parts, Allocator& allocator)
      : how_(how), parts_(parts), allocator_(allocator) {}

  // The tensors with codes decoded and without what lay beside them.
  Result<std::vector<SafeTensor>> decode(const std::vector<SafeTensor>& tensors,
                                         const OpenOptions& options);

 private:
  struct Scales {
    std::vector<float> values;
    int64_t block_rows, block_columns, across;  // blocks in a row
  };
  struct Job;
  Result<SafeTensor> decode_one(const SafeTensor& codes, ThreadPool& team);
  Result<SafeTensor> logical(const SafeTensor& codes);
  Result<const SafeTensor*> scale_of(const SafeTensor& codes);
  Result<Scales> read_scales(const SafeTensor& codes, const SafeTensor& scales) const;
  Result<std::vector<int64_t>> read_shape(const SafeTensor& codes);

  const HfQuantisation& how_;
  ModelFileParts& parts_;
  Allocator& allocator_;
  std::unordered_map<std::string_view, const SafeTensor*> by_name_;
  std::unordered_map<std::string_view, bool> used_;  // scales and shapes
};

}  // namespace optima::model
