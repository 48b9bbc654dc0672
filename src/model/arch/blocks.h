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
  fused,     // attn_qkv: all rows of q, then of k, then of v; every layer owns its KV
};
enum class Sinks : uint8_t { none, required };
enum class ValueNorm : uint8_t { none, each_head };  // without weights

struct AttentionParts {
  Projections projections = Projections::separate;
  Bias qkv_bias = Bias::none;
  Bias output_bias = Bias::none;
  Sinks sinks = Sinks::none;
  ValueNorm value_norm = ValueNorm::none;
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
  BlockBuilder(graph::Graph& graph, const ModelConfig& config, Weights& weights, int32_t layer,
               graph::ValueId side);

  graph::Graph& graph() { return graph_; }
  const ModelConfig& config() const { return config_; }
  const LayerConfig& layer() const { return config_.layers[static_cast<size_t>(layer_)]; }
  int32_t index() const { return layer_; }
  graph::ValueId side() const { return side_; }  // see DecoderParts
  Weights& weights() { return weights_; }
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }

  // The norm that config names, over the whole row; layer norms may have a bias.
  Result<graph::ValueId> norm(graph::ValueId x, std::string_view name);
  Result<graph::ValueId> linear(graph::ValueId x, std::string_view name, int64_t rows, Bias bias);
  // Queries, keys and values of `h`, norms of heads, rotation, KV store, attention, output product.
  // A layer that shares another's KV has queries alone.
  Result<graph::ValueId> attention(graph::ValueId h, const AttentionParts& parts);
  Result<graph::ValueId> feed_forward(graph::ValueId h, const FeedForwardParts& parts);
  // The experts that the router chooses for `h`, by config.moe; `bias` is the router's.
  Result<graph::ValueId> route(graph::ValueId h, Bias bias);
  // The weighted sum of these experts for `h`; with the biases that the file has.
  Result<graph::ValueId> experts(graph::ValueId h, graph::ValueId route);

 private:
  struct Qkv {
    graph::ValueId q, k, v;
  };
  Result<graph::ValueId> add_bias(graph::ValueId x, std::string_view name, Bias bias);
  bool shares_kv() const { return layer().kv_owner != layer_; }
  Result<Qkv> project(graph::ValueId h, const AttentionParts& parts);
  Result<Qkv> project_fused(graph::ValueId h, Bias bias);
  Result<graph::ValueId> attend(graph::ValueId q, Sinks sinks);
  Result<graph::ValueId> head_norm(graph::ValueId x, std::string_view name);
  ExpertNames expert_names(std::string_view name) const;
  Result<graph::ValueId> expert_product(graph::ValueId in, graph::ValueId route,
                                        std::string_view name, graph::ExpertMatmul shape);

  graph::Graph& graph_;
  const ModelConfig& config_;
  Weights& weights_;
  int32_t layer_;
  graph::ValueId side_;
  std::string prefix_;
};

enum class Positions : uint8_t { rotary, learned };

struct DecoderParts {
  Result<graph::ValueId> (*block)(BlockBuilder& block, graph::ValueId x);
  Positions positions = Positions::rotary;
  // What all blocks may read beside x, made of the embedding once; null = nothing.
  Result<graph::ValueId> (*side)(graph::Graph& graph, const ModelConfig& config, Weights& weights,
                                 graph::ValueId embedding) = nullptr;
};

// Embedding, blocks, final norm, head (the embedding where there is no output.weight), soft cap.
Result<graph::Graph> build_graph(const ModelConfig& config, Weights& weights,
                                 const DecoderParts& parts);

struct EncoderParts {
  Result<graph::ValueId> (*embed)(graph::Graph& graph, const ModelConfig& config, Weights& weights);
  Result<graph::ValueId> (*block)(BlockBuilder& block, graph::ValueId x);
};

// Embedding, token_embd_norm, blocks. There is no head: the result are the hidden rows.
Result<graph::Graph> build_encoder_graph(const ModelConfig& config, Weights& weights,
                                         const EncoderParts& parts);

// The block that most have: x + attention(norm(x)), then + ffn(norm(.)).
Result<graph::ValueId> pre_norm_block(BlockBuilder& block, graph::ValueId x,
                                      const AttentionParts& attention,
                                      const FeedForwardParts& feed_forward);

}  // namespace optima::model
