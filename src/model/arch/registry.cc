// The architectures that run, and the way from a file to a graph.
#include <array>

#include "base/text.h"
#include "graph/passes/passes.h"
#include "model/arch/arch.h"

namespace optima::model {
namespace {

constexpr std::array<const Architecture*, 14> kArchitectures = {
    &kBert,  &kGemma2, &kGemma3, &kGemma4, &kGpt2,  &kGptNeox,  &kGptOss,
    &kLlama, &kOlmo2,  &kPhi3,   &kQwen2,  &kQwen3, &kQwen3Moe, &kSmolLm3};

Result<Decoder> describe(const ModelFile& file) {
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
  OPTIMA_ASSIGN(decoder.graph, architecture->build(decoder.config, weights));
  OPTIMA_TRY(weights.all_used());
  decoder.copies = weights.take_copies();
  return decoder;
}

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* row : kArchitectures)
    if (row->name == name) return row;
  return nullptr;
}

const HfForm* find_hf_form(std::string_view model_type) {
  for (const Architecture* row : kArchitectures)
    for (const HfForm& form : row->hf_forms)
      if (form.model_type == model_type) return &form;
  return nullptr;
}

std::string hf_model_types() {
  std::string out;
  for (const Architecture* row : kArchitectures)
    for (const HfForm& form : row->hf_forms) out += text(out.empty() ? "" : ", ", form.model_type);
  return out;
}

std::string architecture_names() {
  std::string out;
  for (const Architecture* row : kArchitectures) out += text(out.empty() ? "" : ", ", row->name);
  return out;
}

Result<Decoder> describe_decoder(const ModelFile& file) {
  Result<Decoder> decoder = describe(file);
  if (!decoder.ok()) return decoder.take_status().in(file.name());
  return decoder;
}

Result<Decoder> build_decoder(const ModelFile& file) {
  OPTIMA_ASSIGN(Decoder decoder, describe_decoder(file));
  decoder.graph = graph::gate_experts(
      graph::recognise_attention(graph::group_matmuls(std::move(decoder.graph))));
  return decoder;
}

}  // namespace optima::model
