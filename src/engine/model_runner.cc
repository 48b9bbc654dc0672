// Lowers a decoder for a compute path; see model_runner.h.
#include "engine/model_runner.h"

#include <algorithm>

#include "backend/cpu/cpu_runner.h"

namespace optima::engine {
namespace {

// Rows scored at once: enough to share the reading of the head's weights, few enough that their
// logits stay small.
int64_t outputs_max(int64_t vocabulary) {
  constexpr int64_t kLogitsBytesMax = 32 << 20;
  return std::clamp<int64_t>(kLogitsBytesMax / (vocabulary * 4), 8, 64);
}

}  // namespace

Result<std::unique_ptr<ModelRunner>> create_model_runner(const model::Decoder& decoder,
                                                         ComputePath path, ThreadPool& pool,
                                                         Allocator& allocator) {
  const bool fast = path == ComputePath::fast;
  auto out = std::make_unique<ModelRunner>();
  const kernels::KvType kv_type = fast ? kernels::KvType::f16 : kernels::KvType::f32;
  out->layout = kv_layout(decoder.config, kv_type);
  out->vocabulary = decoder.config.vocabulary;
  out->outputs_max = outputs_max(decoder.config.vocabulary);
  graph::LowerOptions options;
  options.tokens_max = std::min<int64_t>(kBatchTokensMax, decoder.config.context_length);
  options.outputs_max = out->outputs_max;
  options.activations = fast ? graph::Activations::quantised : graph::Activations::fp32;
  options.kv_type = kv_type;
  options.kv = out->layout.places;
  OPTIMA_ASSIGN(graph::Program program, graph::lower(decoder.graph, options));
  out->weight_bytes_per_step = program.weight_bytes_per_step;
  const backend::cpu::KernelTable kernels =
      fast ? backend::cpu::fast_kernels() : backend::cpu::reference_kernels();
  OPTIMA_ASSIGN(out->runner,
                backend::cpu::create_runner(std::move(program), kernels, pool, allocator));
  out->pages = std::make_unique<kv::PagePool>(allocator, kv::PoolLimits{});
  return out;
}

}  // namespace optima::engine
