// Model files of any bytes: a GGUF file whole, the header of a safetensors file, a config.json with
// its translation. OPTIMA_FUZZ_<kind> tells which.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/json.h"
#include "model/arch/arch.h"
#include "model/gguf.h"
#include "model/hf/coded_weights.h"
#include "model/hf/hf_composite.h"
#include "model/hf/hf_quantisation.h"
#include "model/hf/safetensors.h"

namespace {

using namespace optima;

[[maybe_unused]] void run_gguf(const uint8_t* data, size_t size) {
  Allocator allocator({}, int64_t{64} << 20);
  const auto file = model::open_gguf(
      model::MemorySource{reinterpret_cast<const std::byte*>(data), static_cast<int64_t>(size)},
      allocator, {});
  if (file.ok()) static_cast<void>(model::build_decoder(**file));
}

// The header, and what is made of weights that are codes with scales.
[[maybe_unused]] void run_safetensors(const uint8_t* data, size_t size) {
  const auto tensors = model::parse_safetensors(std::as_bytes(std::span(data, size)));
  if (!tensors.ok()) return;
  for (const int bits : {0, 4, 8}) {
    Allocator allocator({}, int64_t{64} << 20);
    model::ModelFileParts parts;
    const model::HfQuantisation how{true, bits, 16, 24};
    model::CodedWeights codes(how, parts, allocator);
    static_cast<void>(codes.decode(*tensors, {}));
  }
}

void translate(const model::HfConfig& config, std::string_view model_type) {
  const auto layers = config.integer("num_hidden_layers");
  if (layers.ok() && *layers && **layers > 1024) return;
  const model::HfForm* form = model::find_hf_form(model_type);
  if (form == nullptr) return;
  model::ModelFileParts parts;
  model::MetadataWriter out(parts, form->architecture);
  static_cast<void>(form->translate(config, out));
  static_cast<void>(model::read_hf_quantisation(config));
  static_cast<void>(config.all_read());
}

[[maybe_unused]] void run_config(const uint8_t* data, size_t size) {
  const auto root = json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!root.ok()) return;
  const model::HfConfig config(*root);
  const auto type = config.string("model_type");
  if (!type.ok() || !*type) return;
  const model::HfComposite* composite = model::find_hf_composite(**type);
  if (composite == nullptr) return translate(config, **type);
  const json::Value* options = config.find("text_config");
  if (options == nullptr) return;
  const auto defaults = json::parse(model::hf_text_defaults(composite->text_type));
  translate(model::HfConfig(*options, &*defaults), composite->text_type);
  static_cast<void>(model::read_hf_quantisation(config));
  static_cast<void>(model::check_composite_keys(config));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
#if defined(OPTIMA_FUZZ_gguf)
  run_gguf(data, size);
#elif defined(OPTIMA_FUZZ_safetensors)
  run_safetensors(data, size);
#else
  run_config(data, size);
#endif
  return 0;
}
