// A tokenizer.json of any bytes: loading it, and what a loaded one makes of some texts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer/hf/tiktoken.h"
#include "tokenizer/hf/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace optima::tokenizer;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(load_tekken(bytes));
  const auto tokenizer = load_tokenizer_json(bytes, {});
  if (!tokenizer.ok()) return 0;
  for (const std::string_view text :
       {std::string_view("Hello, w\xC3\xB6rld! 12345 \xE4\xB8\xAD\n\n  a\xCC\x81\xFF<|im_end|>"),
        bytes.substr(0, 200)}) {
    const auto ids = (*tokenizer)->encode(text, Special::add, SpecialText::parse);
    if (ids.ok()) static_cast<void>((*tokenizer)->decode(*ids, SpecialText::literal));
  }
  return 0;
}
