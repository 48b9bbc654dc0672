// Text and tokens of a model: vocabulary entries, tokenize, detokenize, chat templates.

#include <chrono>
#include <span>

#include "abi/buffer.h"
#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/model_box.h"
#include "abi/structs.h"

namespace optima::abi {
namespace {

using tokenizer::Special;
using tokenizer::SpecialText;
using tokenizer::Tokenizer;

bool in_range(const Tokenizer& tokenizer, int32_t token) {
  return token >= 0 && token < tokenizer.size();
}

// The tokenizer behind a handle, or null.
const Tokenizer* tokenizer_or_null(const optima_model* model) {
  if (!live(model)) return nullptr;
  const auto tokenizer = tokenizer_of(*model->box);
  return tokenizer.ok() ? *tokenizer : nullptr;
}

Result<std::vector<int32_t>> tokenize(const ModelBox& box, std::string_view text, uint32_t flags) {
  OPTIMA_TRY(
      check_flags("flags", flags, OPTIMA_TEXT_NO_ADD_SPECIAL | OPTIMA_TEXT_NO_PARSE_SPECIAL));
  OPTIMA_ASSIGN(const Tokenizer* tokenizer, tokenizer_of(box));
  const bool add = (flags & OPTIMA_TEXT_NO_ADD_SPECIAL) == 0;
  const bool parse = (flags & OPTIMA_TEXT_NO_PARSE_SPECIAL) == 0;
  return tokenizer->encode(text, add ? Special::add : Special::omit,
                           parse ? SpecialText::parse : SpecialText::literal);
}

Result<std::string> detokenize(const ModelBox& box, std::span<const int32_t> ids, uint32_t flags) {
  OPTIMA_TRY(check_flags("flags", flags, OPTIMA_TEXT_SHOW_SPECIAL));
  OPTIMA_ASSIGN(const Tokenizer* tokenizer, tokenizer_of(box));
  const bool show = (flags & OPTIMA_TEXT_SHOW_SPECIAL) != 0;
  return tokenizer->decode(ids, show ? SpecialText::parse : SpecialText::literal);
}

int64_t unix_now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

Result<std::string> render(const ModelBox& box, const optima_chat_desc* in) {
  if (in == nullptr) return Status(Code::invalid_argument, "desc: NULL");
  OPTIMA_ASSIGN(const optima_chat_desc desc, read_struct("chat desc", in));
  OPTIMA_TRY(check_flags("flags", desc.flags, OPTIMA_CHAT_NO_GENERATION_PROMPT));
  tokenizer::ChatTemplateInput input;
  OPTIMA_ASSIGN(input.messages_json,
                read_text("messages_json", desc.messages_json, desc.messages_json_bytes));
  OPTIMA_ASSIGN(input.tools_json, read_text("tools_json", desc.tools_json, desc.tools_json_bytes));
  OPTIMA_ASSIGN(input.extra_json, read_text("extra_json", desc.extra_json, desc.extra_json_bytes));
  OPTIMA_ASSIGN(const std::string_view source,
                read_text("template_source", desc.template_source, desc.template_source_bytes));
  input.generation_prompt = (desc.flags & OPTIMA_CHAT_NO_GENERATION_PROMPT) == 0
                                ? tokenizer::GenerationPrompt::add
                                : tokenizer::GenerationPrompt::omit;
  input.now_unix_s = desc.now_unix_s == 0 ? unix_now_s() : desc.now_unix_s;
  if (const auto tokenizer = tokenizer_of(box); tokenizer.ok()) {
    input.bos_token = (*tokenizer)->token_text((*tokenizer)->bos());
    input.eos_token = (*tokenizer)->token_text((*tokenizer)->eos());
  }
  return box.model->render(source, input);
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Code;
using optima::Status;

const char* optima_model_token_text(const optima_model* model, int32_t token,
                                    int64_t* bytes) noexcept {
  if (bytes != nullptr) *bytes = 0;
  return guard(Fallback<const char*>{nullptr}, [&]() -> const char* {
    const Tokenizer* tokenizer = tokenizer_or_null(model);
    if (tokenizer == nullptr || !in_range(*tokenizer, token)) return nullptr;
    const std::string_view piece = tokenizer->token_text(token);
    if (bytes != nullptr) *bytes = static_cast<int64_t>(piece.size());
    return piece.data();
  });
}

optima_token_kind optima_model_token_kind(const optima_model* model, int32_t token) noexcept {
  return guard(Fallback<optima_token_kind>{0}, [&]() -> optima_token_kind {
    const Tokenizer* tokenizer = tokenizer_or_null(model);
    if (tokenizer == nullptr || !in_range(*tokenizer, token)) return 0;
    return static_cast<optima_token_kind>(tokenizer->kind(token));
  });
}

int32_t optima_model_token_ends(const optima_model* model, int32_t token) noexcept {
  return guard(Fallback<int32_t>{0}, [&]() -> int32_t {
    const Tokenizer* tokenizer = tokenizer_or_null(model);
    if (tokenizer == nullptr || !in_range(*tokenizer, token)) return 0;
    return tokenizer->ends_generation(token) ? 1 : 0;
  });
}

int32_t optima_model_token_find(const optima_model* model, const char* text,
                                size_t text_bytes) noexcept {
  return guard(Fallback<int32_t>{-1}, [&]() -> int32_t {
    const Tokenizer* tokenizer = tokenizer_or_null(model);
    const auto wanted = read_text("text", text, text_bytes);
    if (tokenizer == nullptr || !wanted.ok()) return -1;
    return tokenizer->find(*wanted);
  });
}

optima_status optima_model_tokenize(const optima_model* model, const char* text, size_t text_bytes,
                                    uint32_t flags, optima_buffer** out,
                                    optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_ASSIGN(const std::string_view input, read_text("text", text, text_bytes));
    OPTIMA_ASSIGN(auto ids, tokenize(*box, input, flags));
    *out = make_buffer(std::move(ids));
    return {};
  });
}

optima_status optima_model_detokenize(const optima_model* model, const int32_t* ids,
                                      size_t id_count, uint32_t flags, optima_buffer** out,
                                      optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_TRY(check_array("ids", ids, id_count, sizeof(int32_t)));
    OPTIMA_ASSIGN(auto bytes, detokenize(*box, {ids, id_count}, flags));
    *out = make_buffer(std::move(bytes));
    return {};
  });
}

optima_status optima_model_render(const optima_model* model, const optima_chat_desc* desc,
                                  optima_buffer** out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_ASSIGN(auto prompt, render(*box, desc));
    *out = make_buffer(std::move(prompt));
    return {};
  });
}
