// A chat template of any bytes: parsing it, and rendering it under small limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokenizer/chat_template/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace optima::tokenizer;
  const auto parsed = ChatTemplate::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  ChatTemplateInput input;
  input.messages_json =
      R"([{"role":"system","content":"s"},{"role":"user","content":"u\u00e9"},{"role":"assistant",)"
      R"("content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}])";
  input.tools_json = R"([{"type":"function","function":{"name":"f","parameters":{}}}])";
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  ChatTemplateLimits limits;
  limits.output_bytes_max = 1 << 20;
  limits.iterations_max = 10'000;
  limits.time_ms_max = 200;
  static_cast<void>((*parsed)->render(input, limits));
  return 0;
}
