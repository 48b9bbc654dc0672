// Lowers a decoder for a compute path and a result; see model_runner.h.
#include "engine/model_runner.h"

#include <algorithm>

#include "backend/cpu/cpu_runner.h"
#include "graph/passes/passes.h"

namespace optima::engine {
namespace {

// Rows scored at once: enough to share the reading of the head's weights, few enough that their
// logits stay small. Hidden rows need no head: all of a batch, if they are not too many bytes.
int64_t outputs_max(RunnerResult result, int64_t width) {
  constexpr int64_t kBytesMax = 32 << 20;
  const int64_t rows_max = result == RunnerResult::logits ? 64 : kBatchTokensMax;
  return std::clamp<int64_t>(kBytesMax / (width * 4), 8, rows_max);
}

Result<graph::Program> lower_for(const model::Decoder& decoder, RunnerResult result,
                                 const graph::LowerOptions& options) {
  if (result == RunnerResult::logits) return graph::lower(decoder.graph, options);
  OPTIMA_ASSIGN(const graph::Graph graph, graph::hidden_states(decoder.graph));
  return graph::lower(graph, options);
}

backend::cpu::KernelTable kernels_for(ComputePath path) {
  switch (path) {
    case ComputePath::fast:
      break;
    case ComputePath::reference:
      return backend::cpu::reference_kernels();
    case ComputePath::deterministic:
      return backend::cpu::deterministic_kernels();
  }
  return backend::cpu::fast_kernels();
}

}  // namespace

std::unique_ptr<backend::DeviceWeights> create_device_weights() {
  return std::make_unique<backend::cpu::PackedWeights>();
}

Result<std::unique_ptr<ModelRunner>> create_model_runner(const ModelWeights& model, RunnerKind kind,
                                                         const RunnerResources& resources) {
  const model::Decoder& decoder = model.decoder;
  const bool fast = kind.path != ComputePath::reference;
  auto out = std::make_unique<ModelRunner>();
  const kernels::KvType kv_type = fast ? kind.kv_type : kernels::KvType::f32;
  out->layout = kv_layout(decoder.config, kv_type);
  out->vocabulary = decoder.config.vocabulary;
  out->result_width =
      kind.result == RunnerResult::logits ? out->vocabulary : int64_t{decoder.config.hidden};
  out->outputs_max = outputs_max(kind.result, out->result_width);
  graph::LowerOptions options;
  options.tokens_max = kBatchTokensMax;
  options.outputs_max = out->outputs_max;
  options.activations = fast ? graph::Activations::quantised : graph::Activations::fp32;
  options.kv_type = kv_type;
  options.kv = out->layout.places;
  OPTIMA_ASSIGN(graph::Program program, lower_for(decoder, kind.result, options));
  out->weight_bytes_per_step = program.weight_bytes_per_step;
  const backend::cpu::KernelTable kernels = kernels_for(kind.path);
  // Whether there are panels shows in the last bits, so it may not depend on the memory of the day.
  const Repack repack = kind.path == ComputePath::deterministic && model.repack != Repack::off
                            ? Repack::on
                            : model.repack;
  auto& packed = static_cast<backend::cpu::PackedWeights&>(model.packed);
  OPTIMA_ASSIGN(out->runner,
                backend::cpu::create_runner(std::move(program), kernels,
                                            {resources.pool, resources.allocator, packed, repack}));
  out->root = resources.pages->new_root();
  out->pages = resources.pages;
  return out;
}

}  // namespace optima::engine
