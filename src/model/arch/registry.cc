// The architectures that run, and the way from a file to a graph.
#include <array>
#include <cmath>

#include "base/text.h"
#include "graph/passes/passes.h"
#include "model/arch/arch.h"

namespace optima::model {
namespace {

const std::array<const Architecture*, 2>& architectures() {
  static constexpr std::array<const Architecture*, 2> kArchitectures = {&kGemma3, &kLlama};
  return kArchitectures;
}

Result<Decoder> build(const Gguf& file) {
  OPTIMA_ASSIGN(const std::optional<std::string_view> name,
                file.metadata().string("general.architecture"));
  if (!name) return Status(Code::format, "metadata key 'general.architecture' is missing");
  const Architecture* architecture = find_architecture(*name);
  if (architecture == nullptr)
    return Status(Code::unsupported, text("architecture '", *name, "' is not known; known are ",
                                          architecture_names()));
  Decoder decoder;
  OPTIMA_ASSIGN(decoder.config, architecture->configure(file));
  Weights weights(file);
  OPTIMA_ASSIGN(graph::Graph graph, architecture->build(decoder.config, weights));
  OPTIMA_TRY(weights.all_used());
  decoder.graph = graph::group_matmuls(std::move(graph));
  decoder.copies = weights.take_copies();
  return decoder;
}

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* row : architectures())
    if (row->name == name) return row;
  return nullptr;
}

std::string architecture_names() {
  std::string out;
  for (const Architecture* row : architectures()) out += text(out.empty() ? "" : ", ", row->name);
  return out;
}

Result<Decoder> build_decoder(const Gguf& file) {
  Result<Decoder> decoder = build(file);
  if (!decoder.ok()) return decoder.take_status().in(file.name());
  return decoder;
}

// inverse_frequency[i] = base^(-2i / rotary_dim) * scale / factor[i]
graph::RopeTable rope_table(const RopeConfig& rope) {
  graph::RopeTable table;
  table.pairs = rope.pairs;
  const int32_t pairs = rope.rotary_dim / 2;
  for (int32_t i = 0; i < pairs; ++i) {
    double frequency = std::pow(rope.base, -2.0 * i / rope.rotary_dim) * rope.frequency_scale;
    if (!rope.frequency_factors.empty())
      frequency /= static_cast<double>(rope.frequency_factors[static_cast<size_t>(i)]);
    table.inverse_frequency.push_back(frequency);
  }
  return table;
}

}  // namespace optima::model
