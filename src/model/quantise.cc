// Quantises 16- and 32-bit matrices of an opened model; see ModelFile::quantise(). The new tensors
// are in the allocator's memory; what they replace stays mapped and is not touched again, or is
// given back where it was in that memory too.
#include "kernels/quant/quantise.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "model/model_file.h"

namespace optima::model {
namespace {

constexpr int64_t kBlock = 32;

// Matrices that products read, and the embedding; not the few small ones where an error would
// decide (routers), nor tables that are added as they are (positions, types, biases of experts).
bool is_quantised(const Tensor& tensor) {
  const bool plain = tensor.type == kernels::WeightType::f32 ||
                     tensor.type == kernels::WeightType::f16 ||
                     tensor.type == kernels::WeightType::bf16;
  return plain && tensor.rank >= 2 && tensor.row_length() % kBlock == 0 &&
         tensor.name.ends_with(".weight") && !tensor.name.ends_with("ffn_gate_inp.weight") &&
         tensor.name != "position_embd.weight" && tensor.name != "token_types.weight";
}

bool is_embedding_or_head(std::string_view name) {
  return name == "token_embd.weight" || name == "output.weight" ||
         name == "per_layer_token_embd.weight";
}

// Frees the buffer that begins at `data`, if one does and no tensor needs it: a buffer holds one
// tensor, from its start.
void release(const std::vector<Tensor>& tensors, const std::byte* data,
             std::vector<Buffer>& buffers) {
  const auto found = std::find_if(buffers.begin(), buffers.end(),
                                  [data](const Buffer& buffer) { return buffer.data() == data; });
  if (found == buffers.end()) return;
  const bool needed = std::any_of(tensors.begin(), tensors.end(),
                                  [data](const Tensor& tensor) { return tensor.data == data; });
  if (!needed) buffers.erase(found);
}

}  // namespace

Status ModelFile::quantise(kernels::WeightType type, Allocator& allocator,
                           const OpenOptions& options) {
  const size_t count = parts_.tensors.size();
  if (std::none_of(parts_.tensors.begin(), parts_.tensors.end(), is_quantised))
    return Status(
        Code::unsupported,
        text(parts_.name, ": no weights to quantise: none of the ", count,
             " tensors is a matrix of 16 or 32 bits whose rows are whole blocks of ", kBlock));
  OPTIMA_ASSIGN(const std::unique_ptr<ThreadPool> team, ThreadPool::create(options.team));
  const Progress& progress = options.progress;
  std::vector<std::vector<float>> scratch(static_cast<size_t>(team->size()));
  for (size_t i = 0; i < count; ++i) {
    Tensor& tensor = parts_.tensors[i];
    if (progress && !progress(static_cast<float>(i) / static_cast<float>(count)))
      return Status(Code::cancelled,
                    text("the progress callback cancelled the load of ", parts_.name));
    if (!is_quantised(tensor)) continue;
    const kernels::WeightType wanted =
        is_embedding_or_head(tensor.name) ? kernels::WeightType::q8_0 : type;
    const auto* from = kernels::find_weight_type(static_cast<int32_t>(tensor.type));
    const auto* to = kernels::find_weight_type(static_cast<int32_t>(wanted));
    const int64_t columns = tensor.row_length(), rows = tensor.rows();
    const size_t from_bytes = kernels::row_bytes(*from, columns);
    const size_t to_bytes = kernels::row_bytes(*to, columns);
    OPTIMA_ASSIGN(Buffer memory,
                  allocator.allocate(to_bytes * static_cast<size_t>(rows), "quantised weights"));
    for (std::vector<float>& row : scratch) row.resize(static_cast<size_t>(columns));
    std::byte* const out = memory.data();
    team->run([&](int thread, int threads) {
      float* row = scratch[static_cast<size_t>(thread)].data();
      for (int64_t r = rows * thread / threads; r < rows * (thread + 1) / threads; ++r) {
        kernels::dequant_row(tensor.type)(tensor.data + static_cast<size_t>(r) * from_bytes, row,
                                          columns);
        kernels::quantise_row(wanted)(row, out + static_cast<size_t>(r) * to_bytes, columns);
      }
    });
    const std::byte* const replaced = tensor.data;
    tensor.type = wanted;
    tensor.data = memory.data();
    tensor.bytes = static_cast<int64_t>(to_bytes) * rows;
    release(parts_.tensors, replaced, parts_.buffers);
    parts_.buffers.push_back(std::move(memory));
  }
  return {};
}

}  // namespace optima::model
