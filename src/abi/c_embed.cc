// optima_embed_texts: many texts at once, as one matrix.

#include "abi/buffer.h"
#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/request_spec.h"
#include "abi/structs.h"

namespace optima::abi {
namespace {

struct Texts {
  const char* const* data;
  const size_t* bytes;  // NULL = all NUL-terminated
  size_t count;
};

Status check_desc(const optima_request_desc& desc) {
  if (desc.prompt != nullptr || desc.prompt_ids != nullptr)
    return Status(Code::invalid_argument, "desc: its prompt must be NULL, the texts are embedded");
  if (desc.on_event != nullptr)
    return Status(Code::invalid_argument, "on_event: must be NULL for optima_embed_texts");
  return {};
}

Result<std::vector<engine::RequestSpec>> read_specs(const optima_request_desc& desc,
                                                    const Texts& texts,
                                                    const std::shared_ptr<EngineBox>& box) {
  OPTIMA_TRY(check_array("texts", texts.data, texts.count, sizeof(char*)));
  std::vector<engine::RequestSpec> specs;
  for (size_t i = 0; i < texts.count; ++i) {
    optima_request_desc one = desc;
    one.prompt = texts.data[i];
    one.prompt_bytes = texts.bytes == nullptr ? OPTIMA_NTS : texts.bytes[i];
    auto spec = read_request(one, box, engine::SessionOutput::embedding);
    if (!spec.ok()) return spec.take_status().in(text("texts[", i, "]"));
    specs.push_back(spec.take());
  }
  return specs;
}

Status append(const engine::RequestResult& result, std::vector<float>& floats) {
  OPTIMA_TRY(result.status);
  if (result.finish == engine::FinishReason::deadline)
    return Status(Code::deadline, "the deadline passed");
  if (result.finish != engine::FinishReason::embedded)
    return Status(Code::cancelled, "the request was cancelled");
  floats.insert(floats.end(), result.embedding.begin(), result.embedding.end());
  return {};
}

Result<std::vector<float>> embed(const SessionBox& box, const optima_request_desc* in,
                                 const Texts& texts) {
  OPTIMA_ASSIGN(const optima_request_desc desc, read_struct("request desc", in));
  OPTIMA_TRY(check_desc(desc));
  const std::shared_ptr<EngineBox>& engine_box = box.model->engine;
  OPTIMA_ASSIGN(auto specs, read_specs(desc, texts, engine_box));
  if (engine_box->in_callback())
    return Status(Code::busy, "called from a callback of the same engine");
  OPTIMA_ASSIGN(const auto requests, engine_box->engine->run_all(box.session, std::move(specs)));
  std::vector<float> floats;
  for (size_t i = 0; i < requests.size(); ++i) {
    Status status = append(requests[i]->result(), floats);
    if (!status.ok()) return std::move(status).in(text("texts[", i, "]"));
  }
  return floats;
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Code;
using optima::Status;

optima_status optima_embed_texts(optima_session* session, const optima_request_desc* desc,
                                 const char* const* texts, const size_t* text_bytes,
                                 size_t text_count, optima_buffer** out,
                                 optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    const ReleaseOnce hook = take_hook(desc);
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto box, enter(session));
    OPTIMA_ASSIGN(auto floats, embed(*box, desc, {texts, text_bytes, text_count}));
    *out = make_buffer(std::move(floats));
    return {};
  });
}
