// Which weights have panels and where; see packed_weights.h.
#include "backend/cpu/packed_weights.h"

#include "base/overloaded.h"

namespace optima::backend::cpu {
namespace {

// Passes after which all are made, if a pass reads all.
constexpr int64_t kPasses = 16;

template <typename Fn>
void for_each_weight(const graph::Program& program, const Fn& fn) {
  for (const auto* steps : {&program.body, &program.head})
    for (const graph::Step& step : *steps)
      if (const auto* matmul = std::get_if<graph::MatmulStep>(&step.work))
        for (const graph::MatmulPart& part : matmul->parts) fn(part.weight);
}

size_t panels_bytes(const graph::Weight& weight, const kernels::MatmulKernel& kernel) {
  if (kernel.panels_bytes == nullptr) return 0;
  return (kernel.panels_bytes(weight.type, weight.rows, weight.columns) + 63) / 64 * 64;
}

}  // namespace

int64_t PackedWeights::bytes_for(const graph::Program& program,
                                 const kernels::MatmulKernel& kernel) const {
  size_t bytes = 0;
  for_each_weight(program, [&](const graph::Weight& weight) {
    if (find(weight) == nullptr) bytes += panels_bytes(weight, kernel);
  });
  return static_cast<int64_t>(bytes);
}

Status PackedWeights::add(const graph::Program& program, const kernels::MatmulKernel& kernel,
                          Allocator& allocator) {
  const int64_t bytes = bytes_for(program, kernel);
  if (bytes == 0) return {};
  OPTIMA_ASSIGN(Buffer memory, allocator.allocate(static_cast<size_t>(bytes), "packed weights"));
  auto* at = memory.as<uint8_t>();
  for_each_weight(program, [&](const graph::Weight& weight) {
    const size_t size = panels_bytes(weight, kernel);
    if (size == 0 || find(weight) != nullptr) return;
    auto packed = std::make_unique<PackedWeight>();
    packed->panels = at;
    packed->bytes = static_cast<int64_t>(size);
    at += size;
    by_data_.emplace(weight.data, std::move(packed));
  });
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

void PackedWeights::begin_walk(const std::vector<StepWeights>& steps, Making making) {
  if (making == Making::share && passes_ <= 1) return;
  // A weight that is begun is made whole.
  int64_t left = making == Making::all ? bytes_ : bytes_ / kPasses;
  for (const StepWeights& step : steps)
    for (PackedWeight* weight : step) {
      if (left <= 0) return;
      if (weight == nullptr || weight->state != PackedWeight::State::unmade) continue;
      weight->state = PackedWeight::State::making;
      left -= weight->bytes;
    }
}

void PackedWeights::settle(const std::vector<StepWeights>& steps, PackedWeight::State state) {
  for (const StepWeights& step : steps)
    for (PackedWeight* weight : step)
      if (weight != nullptr && weight->state == PackedWeight::State::making) weight->state = state;
}

PackedWeight* PackedWeights::find(const graph::Weight& weight) const {
  const auto found = by_data_.find(weight.data);
  return found == by_data_.end() ? nullptr : found->second.get();
}

}  // namespace optima::backend::cpu
