// A tokenizer.model or a rank file of any bytes: loading it, and what a loaded one makes of a text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer/hf/sentencepiece_model.h"
#include "tokenizer/hf/tiktoken.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace optima::tokenizer;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(load_tiktoken(bytes, "llama3"));
  const auto tokenizer = load_sentencepiece_model(bytes, {});
  if (!tokenizer.ok()) return 0;
  const auto ids =
      (*tokenizer)
          ->encode("Hello,  w\xC3\xB6rld \xE4\xB8\xAD\xFF </s>", Special::add, SpecialText::parse);
  if (ids.ok()) static_cast<void>((*tokenizer)->decode(*ids, SpecialText::literal));
  return 0;
}
