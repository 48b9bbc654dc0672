// Tensors of a file, asked for by name and checked against the shape the architecture expects.
// Keeps count: a tensor that no one asked for means that the file holds something this
// architecture does not compute, which is an error rather than a guess.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "model/gguf.h"

namespace optima::model {

class Weights {
 public:
  explicit Weights(const Gguf& file);

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  // A matrix [rows, columns]; format error with both shapes when it is missing or different.
  Result<graph::Weight> matrix(const std::string& name, int64_t rows, int64_t columns);
  // A vector as fp32: in place where the file has aligned F32, else a converted copy.
  Result<const float*> vector(const std::string& name, int64_t size);
  // unsupported, naming the first tensor that was never asked for.
  Status all_used() const;
  // The converted copies, to be kept as long as the pointers are used.
  std::vector<std::unique_ptr<float[]>> take_copies() { return std::move(copies_); }

 private:
  Result<const Tensor*> require(const std::string& name);
  const Gguf& file_;
  std::vector<bool> used_;
  std::vector<std::unique_ptr<float[]>> copies_;
};

}  // namespace optima::model
