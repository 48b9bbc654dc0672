// Pieces that decoder blocks are put together from. What differs between layers and models is data
// in ModelConfig; what differs between architectures is which pieces they join, and how.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"
#include "model/config.h"
#include "model/weights.h"

namespace optima::model {

enum class Bias : uint8_t { none, if_present, required };
enum class Projections : uint8_t {
  separate,  // attn_q, attn_k, attn_v
  fused,     // attn_qkv: all rows of q, then of k, then of v
};
enum class Sinks : uint8_t { none, required };

struct AttentionParts {
  Projections projections = Projections::separate;
  Bias qkv_bias = Bias::none;
  Bias output_bias = Bias::none;
  Sinks sinks = Sinks::none;
};

enum class FeedForward : uint8_t {
  gated,        // ffn_gate, ffn_up, ffn_down
  gated_fused,  // ffn_up holds the rows of the gate, then of up
  plain,        // ffn_up, ffn_down, ModelConfig::act between
};
struct FeedForwardParts {
  FeedForward kind = FeedForward::gated;
  Bias bias = Bias::none;
};

// Builds one layer. Tensor names are "blk.<layer>.<name>.weight" and ".bias".
class BlockBuilder {
 public:
  BlockBuilder(graph::Graph& graph, const ModelConfig& config, Weights& weights, int32_t layer);

  graph::Graph& graph() { return graph_; }
  const ModelConfig& config() const { return config_; }
  const LayerConfig& layer() const { return config_.layers[static_cast<size_t>(layer_)]; }

  // The norm that config names, over the whole row; layer norms may have a bias.
  Result<graph::ValueId> norm(graph::ValueId x, std::string_view name);
  // Queries, keys and values of `h`, q and k norms, rotation, KV store, attention, output product.
  Result<graph::ValueId> attention(graph::ValueId h, const AttentionParts& parts);
  Result<graph::ValueId> feed_forward(graph::ValueId h, const FeedForwardParts& parts);
  // Router, experts, weighted sum, by config.moe; biases of router and experts by `bias`.
  Result<graph::ValueId> experts(graph::ValueId h, Bias bias);

 private:
  struct Qkv {
    graph::ValueId q, k, v;
  };
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  Result<graph::ValueId> add_bias(graph::ValueId x, std::string_view name, Bias bias);
  Result<graph::ValueId> linear(graph::ValueId x, std::string_view name, int64_t rows, Bias bias);
  Result<Qkv> project(graph::ValueId h, const AttentionParts& parts);
  Result<Qkv> project_fused(graph::ValueId h, Bias bias);
  Result<graph::ValueId> head_norm(graph::ValueId x, std::string_view name);
  Result<graph::ValueId> expert_product(graph::ValueId in, graph::ValueId route,
                                        std::string_view name, graph::ExpertMatmul shape);

  graph::Graph& graph_;
  const ModelConfig& config_;
  Weights& weights_;
  int32_t layer_;
  std::string prefix_;
};

enum class Positions : uint8_t { rotary, learned };

struct DecoderParts {
  Result<graph::ValueId> (*block)(BlockBuilder& block, graph::ValueId x);
  Positions positions = Positions::rotary;
};

// Embedding, blocks, final norm, head (the embedding where there is no output.weight), soft cap.
Result<graph::Graph> build_graph(const ModelConfig& config, Weights& weights,
                                 const DecoderParts& parts);

// The block that most have: x + attention(norm(x)), then + ffn(norm(.)).
Result<graph::ValueId> pre_norm_block(BlockBuilder& block, graph::ValueId x,
                                      const AttentionParts& attention,
                                      const FeedForwardParts& feed_forward);

}  // namespace optima::model
