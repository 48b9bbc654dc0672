// The pass that recognises attention: what it makes of a Llama and of a Mistral layer, what it
// leaves alone, and that the graphs as they are written compute what transformers computes, as the
// engine does after the pass (tests/engine/architectures_test.cc, with the same goldens).
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/passes/passes.h"
#include "model/arch/arch.h"
#include "tests/graph/interpreter.h"

namespace optima::graph {
namespace {

constexpr KvRead kKv{0, 4, 2, 16};

enum class Rotation { none, same, other_keys };

// Queries of 4 heads and keys of 2, of 16 floats each, rotated and stored.
ValueId queries(Graph& g, Rotation rotation) {
  static const std::vector<std::byte> bytes(1 << 16);
  const auto weight = [](const char* name, int64_t rows) {
    return Weight{name, bytes.data(), kernels::WeightType::f32, rows, 64};
  };
  g.ropes.resize(2);
  const ValueId x = g.embed(weight("embed", 10), 1.0f);
  ValueId q = g.matmul(x, weight("q", 64));
  ValueId k = g.matmul(x, weight("k", 32));
  if (rotation != Rotation::none) {
    q = g.rope(q, 0, 16);
    k = g.rope(k, rotation == Rotation::same ? 0 : 1, 16);
  }
  g.store_kv(k, g.matmul(x, weight("v", 32)), {-1, -1, 0, 2, 16});
  return q;
}

std::string lines_from(const Graph& graph, const char* begin) {
  const std::string all = to_string(graph);
  const size_t at = all.find(begin);
  return at == std::string::npos ? all : all.substr(all.rfind('\n', at) + 1);
}

TEST(AttentionPass, LlamaIsCausalAndRotated) {
  Graph g;
  const ValueId q = queries(g, Rotation::same);
  const ValueId seen = g.mask(g.scores(q, kKv, 0.25f), MaskKind::causal, 0);
  g.weigh_values(g.softmax(seen, nullptr), kKv);
  EXPECT_EQ(lines_from(g, "scores"),
            "%6 = scores layer 0 heads 4/2 dim 16 scale 0.25 (%3)\n"
            "%7 = mask causal (%6)\n"
            "%8 = softmax (%7)\n"
            "%9 = weigh_values layer 0 heads 4/2 dim 16 (%8)\n");
  EXPECT_EQ(lines_from(recognise_attention(g), "attention"),
            "%9 = attention layer 0 heads 4/2 dim 16 causal scale 0.25 rope 0 (%3)\n");
}

TEST(AttentionPass, MistralSlides) {
  Graph g;
  const ValueId q = queries(g, Rotation::same);
  const ValueId causal = g.mask(g.scores(q, kKv, 0.25f), MaskKind::causal, 0);
  const ValueId seen = g.mask(causal, MaskKind::sliding, 5);
  g.weigh_values(g.softmax(seen, nullptr), kKv);
  EXPECT_EQ(lines_from(g, "scores"),
            "%6 = scores layer 0 heads 4/2 dim 16 scale 0.25 (%3)\n"
            "%7 = mask causal (%6)\n"
            "%8 = mask sliding 5 (%7)\n"
            "%9 = softmax (%8)\n"
            "%10 = weigh_values layer 0 heads 4/2 dim 16 (%9)\n");
  EXPECT_EQ(lines_from(recognise_attention(g), "attention"),
            "%10 = attention layer 0 heads 4/2 dim 16 causal window 5 scale 0.25 rope 0 (%3)\n");
}

TEST(AttentionPass, CapsSinksAndEncoders) {
  const float sinks[4] = {};
  Graph g;
  const ValueId q = queries(g, Rotation::none);
  const ValueId capped = g.softcap(g.scores(q, kKv, 0.5f), 30.0f);
  g.weigh_values(g.softmax(capped, sinks), kKv);
  EXPECT_EQ(lines_from(recognise_attention(g), "attention"),
            "%7 = attention layer 0 heads 4/2 dim 16 all scale 0.5 softcap 30 sinks (%1)\n");
}

// Each differs from what kernels compute in one thing, and stays as it is.
TEST(AttentionPass, WhatIsInNoKnownFormStays) {
  using Build = void (*)(Graph & g);
  const std::pair<const char*, Build> cases[] = {
      {"keys rotated by another table",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::other_keys);
         g.weigh_values(g.softmax(g.scores(q, kKv, 1), nullptr), kKv);
       }},
      {"keys that nobody stored",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         const KvRead other{1, 4, 2, 16};
         g.weigh_values(g.softmax(g.scores(q, other, 1), nullptr), other);
       }},
      {"heads stored in another shape",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         const KvRead other{0, 4, 4, 16};
         g.weigh_values(g.softmax(g.scores(q, other, 1), nullptr), other);
       }},
      {"values of another layer",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         g.weigh_values(g.softmax(g.scores(q, kKv, 1), nullptr), {1, 4, 2, 16});
       }},
      {"a window that sees the future",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         const ValueId seen = g.mask(g.scores(q, kKv, 1), MaskKind::sliding, 5);
         g.weigh_values(g.softmax(seen, nullptr), kKv);
       }},
      {"a cap after the mask",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         const ValueId seen = g.mask(g.scores(q, kKv, 1), MaskKind::causal, 0);
         g.weigh_values(g.softmax(g.softcap(seen, 30), nullptr), kKv);
       }},
      {"no softmax",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         g.weigh_values(g.mask(g.scores(q, kKv, 1), MaskKind::causal, 0), kKv);
       }},
      {"weights that are read twice",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         const ValueId weights = g.softmax(g.scores(q, kKv, 1), nullptr);
         g.add(g.weigh_values(weights, kKv), g.weigh_values(weights, kKv));
       }},
      {"queries that are read again",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         g.add(g.weigh_values(g.softmax(g.scores(q, kKv, 1), nullptr), kKv), q);
       }},
      {"weights that are scaled",
       [](Graph& g) {
         const ValueId q = queries(g, Rotation::same);
         const ValueId weights = g.softmax(g.scores(q, kKv, 1), nullptr);
         g.weigh_values(g.scale(weights, 2), kKv);
       }},
  };
  for (const auto& [what, build] : cases) {
    Graph g;
    build(g);
    EXPECT_EQ(to_string(recognise_attention(g)), to_string(g)) << what;
  }
}

// ---- whole models, as they are written ----

class AsWritten : public testing::TestWithParam<const char*> {};

TEST_P(AsWritten, ComputesWhatTransformersComputes) {
  const std::string folder = std::string(OPTIMA_SOURCE_DIR "/tests/goldens/arch/") + GetParam();
  std::ifstream json(folder + "/golden.json");
  const auto golden = nlohmann::json::parse(json);
  const auto sequences = golden["sequences"].get<std::vector<std::vector<int32_t>>>();
  const auto vocabulary = golden["vocabulary"].get<size_t>();
  const double tolerance = golden["tolerance"].get<double>() * golden["logits_std"].get<double>();

  Allocator allocator({}, 0);
  const auto file = model::open_model_file(model::PathSource{folder}, allocator, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Result<model::Decoder> written = model::describe_decoder(**file);
  ASSERT_TRUE(written.ok()) << written.status().message();
  std::ifstream binary(folder + "/logits.bin", std::ios::binary);
  for (const auto& ids : sequences) {
    std::vector<float> truth(ids.size() * vocabulary);
    binary.read(reinterpret_cast<char*>(truth.data()),
                static_cast<std::streamsize>(truth.size() * sizeof(float)));
    const std::vector<float> logits = Interpreter(written->graph, ids).run();
    ASSERT_EQ(logits.size(), truth.size());
    for (size_t i = 0; i < truth.size(); ++i)
      ASSERT_NEAR(logits[i], truth[i], tolerance) << "position " << i / vocabulary;
  }
}

// Every attention of the graph is recognised, none is lost, and nothing else is touched.
TEST_P(AsWritten, IsRecognised) {
  const std::string folder = std::string(OPTIMA_SOURCE_DIR "/tests/goldens/arch/") + GetParam();
  Allocator allocator({}, 0);
  const auto file = model::open_model_file(model::PathSource{folder}, allocator, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Result<model::Decoder> written = model::describe_decoder(**file);
  ASSERT_TRUE(written.ok()) << written.status().message();
  const Graph after = recognise_attention(written->graph);
  size_t attentions = 0, parts = 0;
  for (const Op& op : after.ops) attentions += std::holds_alternative<Attention>(op);
  for (const Op& op : written->graph.ops)
    parts += std::holds_alternative<Scores>(op) || std::holds_alternative<Mask>(op) ||
             std::holds_alternative<Softmax>(op) || std::holds_alternative<WeighValues>(op);
  EXPECT_EQ(attentions, written->config.layers.size());
  const size_t caps = written->config.attention_softcap > 0 ? attentions : 0;
  EXPECT_EQ(after.ops.size(), written->graph.ops.size() - parts - caps + attentions);
}

INSTANTIATE_TEST_SUITE_P(All, AsWritten,
                         testing::Values("gemma2", "gemma3", "gemma4", "gpt2", "gpt_neox", "llama",
                                         "llama_linear", "llama_llama3", "llama_yarn", "mistral",
                                         "olmo2", "qwen2", "qwen3", "smollm3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace optima::graph
