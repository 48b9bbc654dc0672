// A loaded model: the mapped file, its tokenizer and template, the decoder graph, and one runner
// for each compute path, result and KV type that a session asked for.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include "engine/engine.h"
#include "engine/grammar_cache.h"
#include "engine/model_runner.h"

namespace optima::engine {

class ModelImpl final : public Model {
 public:
  // `team`: the threads that convert weights, where there are some to convert.
  static Result<std::shared_ptr<ModelImpl>> load(std::shared_ptr<Engine> engine,
                                                 const model::Source& source,
                                                 const LoadOptions& options, Allocator& allocator,
                                                 const ThreadPoolOptions& team);

  const std::shared_ptr<Engine>& engine() const override { return engine_; }
  const model::ModelFile& file() const override { return *file_; }
  const model::ModelConfig* config() const override {
    return decoder_ ? &decoder_->config : nullptr;
  }
  Result<const tokenizer::Tokenizer*> tokenizer() const override;
  std::string_view chat_template() const override { return chat_template_; }
  Result<std::string> render(std::string_view source,
                             tokenizer::ChatTemplateInput input) const override;
  int64_t load_ns() const override { return load_ns_; }
  void close() override { closed_.store(true); }

  bool closed() const { return closed_.load(); }
  uint64_t fingerprint() const;  // computed at first use
  // Created at first use and kept; fails with the reason (memory).
  Result<ModelRunner*> runner(RunnerKind kind, const RunnerResources& resources);
  // Compiled for this vocabulary; the last few are kept. Fails with the grammar's own error.
  Result<std::shared_ptr<const sampling::Grammar>> grammar(const GrammarSpec& spec);
  // Weights, packed ones, and activations of the runners made so far.
  void add_memory(MemoryUse& use) const;

 private:
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<model::ModelFile> file_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  Status tokenizer_status_;
  std::optional<model::Decoder> decoder_;
  std::string_view chat_template_;
  int64_t load_ns_ = 0;
  Repack repack_ = Repack::when_free;
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;                                                  // guards what follows
  std::unique_ptr<backend::DeviceWeights> packed_ = create_device_weights();  // of all runners
  // By RunnerKind; null where making one failed.
  std::map<std::tuple<ComputePath, RunnerResult, kernels::KvType>, std::unique_ptr<ModelRunner>>
      runners_;
  mutable std::unique_ptr<tokenizer::ChatTemplate> parsed_template_;
  mutable std::optional<uint64_t> fingerprint_;
  std::unique_ptr<GrammarCache> grammars_;
};

}  // namespace optima::engine
