// Tensors of a file, asked for by name and checked against the shape the architecture expects.
// Keeps count: a tensor that no one asked for means that the file holds something this
// architecture does not compute, which is an error rather than a guess.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "model/model_file.h"

namespace optima::model {

// Where expert matrices lie: in one tensor [experts, rows, columns], alone or with others of each
// expert, or one by one, with the expert's number between the parts of the name.
struct ExpertNames {
  std::string merged;         // "blk.0.ffn_gate_exps.weight"
  std::string single_prefix;  // "blk.0.ffn_gate."
  int64_t rows_before = 0;    // of each expert of the merged tensor, those of other matrices
  int64_t rows_after = 0;
};

class Weights {
 public:
  explicit Weights(const ModelFile& file);

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  // A matrix [rows, columns]; format error with both shapes when it is missing or different.
  Result<graph::Weight> matrix(const std::string& name, int64_t rows, int64_t columns);
  // Rows [begin, begin + count) of a matrix [rows, columns]: one of several that lie in one tensor.
  Result<graph::Weight> rows(const std::string& name, const graph::Weight& shape, int64_t begin,
                             int64_t count);
  // One matrix [rows, columns] for each of `count` experts.
  Result<std::vector<graph::Weight>> experts(const ExpertNames& names, int64_t count, int64_t rows,
                                             int64_t columns);
  // A vector as fp32: in place where the file has aligned F32, else a converted copy.
  Result<const float*> vector(const std::string& name, int64_t size);
  // Several vectors back to back, [count, size]: biases of experts.
  Result<const float*> vectors(const std::string& name, int64_t count, int64_t size);
  // A tensor that was read elsewhere; absent or not, it is accounted for.
  void account_for(std::string_view name);
  // unsupported, naming the first tensor that was never asked for.
  Status all_used() const;
  // The converted copies, to be kept as long as the pointers are used.
  std::vector<std::unique_ptr<float[]>> take_copies() { return std::move(copies_); }

 private:
  Result<const Tensor*> require(const std::string& name);
  Result<const float*> as_floats(const Tensor& tensor);
  const ModelFile& file_;
  std::vector<bool> used_;
  std::vector<std::unique_ptr<float[]>> copies_;
};

}  // namespace optima::model
