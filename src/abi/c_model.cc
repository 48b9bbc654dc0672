// optima_model: opened from five kinds of source, asked about its sizes.

#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/io.h"
#include "abi/model_box.h"
#include "abi/structs.h"

namespace optima::abi {
namespace {

ReleaseOnce take_hook(const optima_model_options* in) {
  const optima_model_options options = given_fields(in);
  return {options.release, options.user};
}

// The host's progress callback; what it throws cancels.
model::Progress make_progress(const optima_model_options& options) {
  if (options.progress == nullptr) return {};
  return [progress = options.progress, user = options.user](float fraction) {
    int32_t verdict = 1;
    contain([&] { verdict = progress(user, fraction); });
    return verdict == 0;
  };
}

Result<std::string> file_string(const model::ModelFile& file, std::string_view key) {
  OPTIMA_ASSIGN(const auto value, file.metadata().string(key));
  return std::string(value.value_or(std::string_view()));
}

Result<optima_model*> open(const optima_engine* engine, const model::Source& source,
                           const optima_model_options* in) {
  const ReleaseOnce hook = take_hook(in);
  OPTIMA_ASSIGN(const auto engine_box, enter(engine));
  OPTIMA_ASSIGN(const optima_model_options options, read_struct("model options", in));
  OPTIMA_TRY(check_constant("content", options.content, OPTIMA_CONTENT_VOCABULARY));
  auto box = std::make_shared<ModelBox>();
  box->engine = engine_box;
  engine::LoadOptions load;
  OPTIMA_TRY(check_constant("weights", options.weights, OPTIMA_WEIGHTS_Q4_0));
  load.content = static_cast<engine::LoadContent>(options.content);
  load.weights = static_cast<engine::LoadWeights>(options.weights);
  OPTIMA_TRY(check_constant("repack", options.repack, OPTIMA_REPACK_ON));
  load.repack = static_cast<engine::Repack>(options.repack);
  load.progress = make_progress(options);
  OPTIMA_ASSIGN(box->model, engine_box->engine->load(source, load));
  OPTIMA_ASSIGN(box->architecture, file_string(box->model->file(), "general.architecture"));
  OPTIMA_ASSIGN(box->name, file_string(box->model->file(), "general.name"));
  box->chat_template = box->model->chat_template();
  return new optima_model(std::move(box));
}

// Runs `make`, which gives the source, and opens it.
template <typename Make>
optima_status guard_open(const optima_engine* engine, const optima_model_options* options,
                         optima_model** out, optima_error** err, Make make) noexcept {
  return guard(err, [&]() -> Status {
    if (out != nullptr) *out = nullptr;
    Result<model::Source> source = make();
    if (out == nullptr || !source.ok()) {
      const ReleaseOnce hook = take_hook(options);
      return out == nullptr ? Status(Code::invalid_argument, "out: NULL") : source.take_status();
    }
    OPTIMA_ASSIGN(*out, open(engine, *source, options));
    return {};
  });
}

void fill_sizes(const model::ModelConfig& config, optima_model_info& info) {
  info.layers = static_cast<int32_t>(config.layers.size());
  info.hidden = config.hidden;
  info.heads = config.heads;
  info.kv_heads = config.kv_heads;
  info.head_dim = config.head_dim;
  info.ffn = config.ffn;
  info.vocabulary = config.vocabulary;
  info.context_length = config.context_length;
  info.generates = config.mask == kernels::AttentionMask::causal ? 1 : 0;
  info.embedding_width = config.hidden;
  info.pooling = static_cast<optima_pooling>(config.pooling);
  info.normalise = config.normalised_embedding ? OPTIMA_NORMALISE_L2 : OPTIMA_NORMALISE_OFF;
}

void fill_tokens(const tokenizer::Tokenizer& tokenizer, optima_model_info& info) {
  if (info.vocabulary == 0) info.vocabulary = tokenizer.size();
  info.bos = tokenizer.bos();
  info.eos = tokenizer.eos();
  info.adds_bos = tokenizer.adds_bos() ? 1 : 0;
  info.adds_eos = tokenizer.adds_eos() ? 1 : 0;
  info.has_tokenizer = 1;
}

}  // namespace

Result<const tokenizer::Tokenizer*> tokenizer_of(const ModelBox& box) {
  OPTIMA_ASSIGN(const tokenizer::Tokenizer* tokenizer, box.model->tokenizer());
  if (tokenizer == nullptr) return Status(Code::unsupported, "the file has no tokenizer");
  return tokenizer;
}

}  // namespace optima::abi

using namespace optima::abi;
using optima::Code;
using optima::Result;
using optima::Status;
using optima::model::Source;

optima_status optima_model_open_path(optima_engine* engine, const char* path, size_t path_bytes,
                                     const optima_model_options* options, optima_model** out,
                                     optima_error** err) noexcept {
  return guard_open(engine, options, out, err, [&]() -> Result<Source> {
    OPTIMA_ASSIGN(std::string name, read_path(path, path_bytes));
    return Source(optima::model::PathSource{std::move(name)});
  });
}

optima_status optima_model_open_fd(optima_engine* engine, int32_t fd, int64_t offset,
                                   int64_t length, const optima_model_options* options,
                                   optima_model** out, optima_error** err) noexcept {
  return guard_open(engine, options, out, err, [&]() -> Result<Source> {
    if (fd < 0 || offset < 0 || length < 0) {
      return Status(Code::invalid_argument,
                    optima::text("fd is ", fd, ", offset is ", offset, ", length is ", length,
                                 ": none may be negative"));
    }
    return Source(optima::model::DescriptorSource{fd, offset, length});
  });
}

optima_status optima_model_open_memory(optima_engine* engine, const void* data, size_t data_bytes,
                                       const optima_model_options* options, optima_model** out,
                                       optima_error** err) noexcept {
  return guard_open(engine, options, out, err, [&]() -> Result<Source> {
    if (data == nullptr) return Status(Code::invalid_argument, "data: NULL");
    OPTIMA_TRY(check_array("data", data, data_bytes, 1));
    return Source(optima::model::MemorySource{static_cast<const std::byte*>(data),
                                              static_cast<int64_t>(data_bytes)});
  });
}

optima_status optima_model_open_io(optima_engine* engine, const optima_io* io,
                                   const optima_model_options* options, optima_model** out,
                                   optima_error** err) noexcept {
  ReleaseOnce hook;
  return guard_open(engine, options, out, err, [&]() -> Result<Source> {
    OPTIMA_ASSIGN(auto source, read_io(io, hook));
    return Source(std::move(source));
  });
}

optima_status optima_model_open_folder(optima_engine* engine, const optima_folder* folder,
                                       const optima_model_options* options, optima_model** out,
                                       optima_error** err) noexcept {
  ReleaseOnce hook;
  return guard_open(engine, options, out, err, [&]() -> Result<Source> {
    OPTIMA_ASSIGN(auto source, read_folder(folder, hook));
    return Source(std::move(source));
  });
}

void optima_model_destroy(optima_model* model) noexcept {
  guard([&] { release(model); });
}

optima_status optima_model_get_info(const optima_model* model, optima_model_info* out,
                                    optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_TRY(check_out("out", out));
    optima_model_info info{};
    info.bos = info.eos = -1;
    if (const auto* config = box->model->config()) fill_sizes(*config, info);
    if (const auto tokenizer = tokenizer_of(*box); tokenizer.ok()) fill_tokens(**tokenizer, info);
    const optima::model::ModelFile& file = box->model->file();
    info.tensor_count = static_cast<int64_t>(file.tensors().size());
    info.metadata_count = static_cast<int64_t>(file.metadata().entries().size());
    info.file_bytes = file.file_bytes();
    info.load_ns = box->model->load_ns();
    write_struct(out, info);
    return {};
  });
}

const char* optima_model_architecture(const optima_model* model) noexcept {
  return guard(Fallback<const char*>{nullptr}, [&]() -> const char* {
    return live(model) ? model->box->architecture.c_str() : nullptr;
  });
}

const char* optima_model_name(const optima_model* model) noexcept {
  return guard(Fallback<const char*>{nullptr},
               [&]() -> const char* { return live(model) ? model->box->name.c_str() : nullptr; });
}

const char* optima_model_chat_template(const optima_model* model, int64_t* bytes) noexcept {
  if (bytes != nullptr) *bytes = 0;
  return guard(Fallback<const char*>{nullptr}, [&]() -> const char* {
    if (!live(model)) return nullptr;
    if (bytes != nullptr) *bytes = static_cast<int64_t>(model->box->chat_template.size());
    return model->box->chat_template.c_str();
  });
}
