// Loading a model; see model_impl.h. Nothing is copied: tensors stay in the mapped file.
#include "engine/model_impl.h"

#include <chrono>

#include "base/text.h"
#include "engine/vocabulary.h"
#include "model/fingerprint.h"

namespace optima::engine {

Result<std::shared_ptr<ModelImpl>> ModelImpl::load(std::shared_ptr<Engine> engine,
                                                   const model::Source& source,
                                                   const LoadOptions& options, Allocator& allocator,
                                                   const ThreadPoolOptions& team) {
  const auto start = std::chrono::steady_clock::now();
  auto out = std::make_shared<ModelImpl>();
  out->engine_ = std::move(engine);
  out->repack_ = options.repack;
  const auto content = options.content == LoadContent::full ? model::FileContent::full
                                                            : model::FileContent::vocabulary;
  const model::OpenOptions opening{content, options.progress, team};
  OPTIMA_ASSIGN(out->file_, model::open_model_file(source, allocator, opening));
  const model::Metadata& metadata = out->file_->metadata();

  Result<std::unique_ptr<tokenizer::Tokenizer>> tokenizer = load_tokenizer(*out->file_);
  if (tokenizer.ok()) {
    out->tokenizer_ = tokenizer.take();
  } else {
    out->tokenizer_status_ = tokenizer.take_status().in(out->file_->name());
    if (options.content == LoadContent::full) return out->tokenizer_status_;
  }
  OPTIMA_ASSIGN(const auto chat_template, metadata.string("tokenizer.chat_template"));
  out->chat_template_ = chat_template.value_or("");

  if (options.content == LoadContent::full) {
    out->file_->prefetch();
    if (options.weights != LoadWeights::as_is) {
      const auto type = options.weights == LoadWeights::q8_0 ? kernels::WeightType::q8_0
                                                             : kernels::WeightType::q4_0;
      OPTIMA_TRY(out->file_->quantise(type, allocator, opening));
    }
    OPTIMA_ASSIGN(out->decoder_, model::build_decoder(*out->file_));
    if (out->tokenizer_->size() > out->decoder_->config.vocabulary)
      return Status(Code::format,
                    text(out->file_->name(), ": ", out->tokenizer_->size(), " tokens, but only ",
                         out->decoder_->config.vocabulary, " embedding rows"),
                    {out->tokenizer_->size(), -1, out->decoder_->config.vocabulary});
  }
  if (options.progress && !options.progress(1.0f))
    return Status(Code::cancelled, "the load was cancelled by its progress callback");
  out->load_ns_ =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count();
  return out;
}

Result<const tokenizer::Tokenizer*> ModelImpl::tokenizer() const {
  if (tokenizer_ == nullptr) return tokenizer_status_;
  return static_cast<const tokenizer::Tokenizer*>(tokenizer_.get());
}

Result<std::string> ModelImpl::render(std::string_view source,
                                      tokenizer::ChatTemplateInput input) const {
  if (tokenizer_ != nullptr) {
    if (input.bos_token.empty()) input.bos_token = tokenizer_->token_text(tokenizer_->bos());
    if (input.eos_token.empty()) input.eos_token = tokenizer_->token_text(tokenizer_->eos());
  }
  if (!source.empty()) {
    OPTIMA_ASSIGN(const auto parsed, tokenizer::ChatTemplate::parse(source));
    return parsed->render(input, {});
  }
  if (chat_template_.empty())
    return Status(Code::unsupported, text(file_->name(), ": the file holds no chat template"));
  const tokenizer::ChatTemplate* parsed = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (parsed_template_ == nullptr) {
      OPTIMA_ASSIGN(parsed_template_, tokenizer::ChatTemplate::parse(chat_template_));
    }
    parsed = parsed_template_.get();
  }
  return parsed->render(input, {});
}

uint64_t ModelImpl::fingerprint() const {
  const std::lock_guard lock(mutex_);
  if (!fingerprint_) fingerprint_ = model::fingerprint(*file_);
  return *fingerprint_;
}

Result<ModelRunner*> ModelImpl::runner(RunnerKind kind, const RunnerResources& resources) {
  if (!decoder_)
    return Status(Code::invalid_state,
                  text(file_->name(), ": loaded for its vocabulary only, it cannot run"));
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ModelRunner>& runner = runners_[std::tuple(kind.path, kind.result, kind.kv_type)];
  if (runner == nullptr) {
    OPTIMA_ASSIGN(runner, create_model_runner({*decoder_, repack_, *packed_}, kind, resources));
  }
  return runner.get();
}

Result<std::shared_ptr<const sampling::Grammar>> ModelImpl::grammar(const GrammarSpec& spec) {
  GrammarCache* cache = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (grammars_ == nullptr) {
      OPTIMA_ASSIGN(grammars_, GrammarCache::create(*tokenizer_, decoder_->config.vocabulary));
    }
    cache = grammars_.get();
  }
  return cache->get(spec);
}

void ModelImpl::add_memory(MemoryUse& use) const {
  const std::lock_guard lock(mutex_);
  use.weights_mapped_bytes += file_->file_bytes();
  use.weights_packed_bytes += packed_->bytes();
  for (const auto& [kind, runner] : runners_) {
    if (runner != nullptr) use.activation_bytes += runner->runner->arena_bytes();
  }
}

}  // namespace optima::engine
