// Which weights have panels and where; see packed_weights.h.
#include "backend/cpu/packed_weights.h"

#include <variant>

namespace optima::backend::cpu {
namespace {

size_t panels_bytes(const graph::Weight& weight, const kernels::MatmulKernel& kernel) {
  if (kernel.panels_bytes == nullptr) return 0;
  return (kernel.panels_bytes(weight.type, weight.rows, weight.columns) + 63) / 64 * 64;
}

}  // namespace

// Bytes of the panels that the program's weights have not got yet; each once, wherever it is read.
std::map<PackedWeights::Key, size_t> PackedWeights::missing(
    const graph::Program& program, const kernels::MatmulKernel& kernel) const {
  std::map<Key, size_t> out;
  for (const auto* steps : {&program.body, &program.head})
    for (const graph::Step& step : *steps)
      if (const auto* matmul = std::get_if<graph::MatmulStep>(&step.work))
        for (const graph::MatmulPart& part : matmul->parts)
          if (const size_t bytes = panels_bytes(part.weight, kernel);
              bytes > 0 && find(part.weight) == nullptr)
            out.emplace(Key(part.weight.data, part.weight.rows), bytes);
  return out;
}

int64_t PackedWeights::bytes_for(const graph::Program& program,
                                 const kernels::MatmulKernel& kernel) const {
  size_t bytes = 0;
  for (const auto& [key, size] : missing(program, kernel)) bytes += size;
  return static_cast<int64_t>(bytes);
}

Status PackedWeights::add(const graph::Program& program, const kernels::MatmulKernel& kernel,
                          Allocator& allocator) {
  const int64_t bytes = bytes_for(program, kernel);
  if (bytes == 0) return {};
  OPTIMA_ASSIGN(Buffer memory, allocator.allocate(static_cast<size_t>(bytes), "packed weights"));
  auto* at = memory.as<uint8_t>();
  for (const auto& [key, size] : missing(program, kernel)) {
    auto packed = std::make_unique<PackedWeight>();
    packed->panels = at;
    packed->bytes = static_cast<int64_t>(size);
    at += size;
    by_rows_.emplace(key, std::move(packed));
  }
  memory_.push_back(std::move(memory));
  bytes_ += bytes;
  return {};
}

std::vector<StepWeights> PackedWeights::of(const std::vector<graph::Step>& steps) const {
  std::vector<StepWeights> out(steps.size());
  for (size_t s = 0; s < steps.size(); ++s)
    if (const auto* matmul = std::get_if<graph::MatmulStep>(&steps[s].work))
      for (const graph::MatmulPart& part : matmul->parts) out[s].push_back(find(part.weight));
  return out;
}

void PackedWeights::begin_walk(const std::vector<StepWeights>& steps, int64_t bytes_max) {
  for (const StepWeights& step : steps)
    for (PackedWeight* weight : step) {
      if (bytes_max <= 0) return;
      if (weight == nullptr || weight->state != PackedWeight::State::unmade) continue;
      weight->state = PackedWeight::State::making;
      bytes_max -= weight->bytes;
    }
}

void PackedWeights::settle(const std::vector<StepWeights>& steps, PackedWeight::State state) {
  for (const StepWeights& step : steps)
    for (PackedWeight* weight : step)
      if (weight != nullptr && weight->state == PackedWeight::State::making) weight->state = state;
}

PackedWeight* PackedWeights::find(const graph::Weight& weight) const {
  const auto found = by_rows_.find({weight.data, weight.rows});
  return found == by_rows_.end() ? nullptr : found->second.get();
}

}  // namespace optima::backend::cpu
