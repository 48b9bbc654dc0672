// The pass that makes gate, up and activation of experts one operation: what it makes of a layer,
// what it leaves alone, that it is so for the models that have experts, and that the CPU computes
// the same bits after it as before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <random>

#include "backend/cpu/cpu_runner.h"
#include "graph/passes/passes.h"
#include "kernels/quant/quantise.h"
#include "model/arch/arch.h"

namespace optima::graph {
namespace {

using kernels::GateAct;
using kernels::WeightType;

constexpr int64_t kHidden = 64;
constexpr int64_t kExperts = 5;
constexpr int64_t kUsed = 2;
constexpr int64_t kInner = 320;  // more columns than are multiplied at a time
constexpr int64_t kVocabulary = 16;

// Random weights, which live as long as the graph that reads them.
class Weights {
 public:
  Weight matrix(const char* name, int64_t rows, int64_t columns, WeightType type) {
    const auto* info = kernels::find_weight_type(static_cast<int32_t>(type));
    const size_t row_bytes = kernels::row_bytes(*info, columns);
    const float* values = floats(rows * columns);
    std::vector<std::byte>& out = bytes_.emplace_back(static_cast<size_t>(rows) * row_bytes);
    for (int64_t row = 0; row < rows; ++row) {
      std::byte* to = out.data() + static_cast<size_t>(row) * row_bytes;
      if (type == WeightType::f32)
        std::memcpy(to, values + row * columns, row_bytes);
      else
        kernels::quantise_row(type)(values + row * columns, to, columns);
    }
    return {name, out.data(), type, rows, columns};
  }
  const float* floats(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float>& out = floats_.emplace_back(static_cast<size_t>(count));
    for (float& value : out) value = normal(random_);
    return out.data();
  }

 private:
  std::mt19937 random_{7};
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<std::vector<float>> floats_;
};

struct Form {
  const char* name;
  WeightType gate, up;
  GateAct act;
  bool biases;
};

// The parts of a layer, which each case joins as it likes.
class Layer {
 public:
  explicit Layer(const Form& form) : form_(form) {
    x = g.embed(weights_.matrix("embed", kVocabulary, kHidden, WeightType::f32), 1.0f);
    h = g.rms_norm(x, nullptr, kHidden, 1e-5f);
    route = route_of(h);
  }

  ValueId route_of(ValueId in) {
    const Weight router = weights_.matrix("router", kExperts, kHidden, WeightType::f32);
    return g.route(g.matmul(in, router), {-1, kUsed, kernels::MoeScoring::top_then_softmax,
                                          kernels::MoeWeights::as_is, nullptr, -1});
  }
  ValueId gate(ValueId in, ValueId by) {
    return g.expert_matmul(in, by, experts("gate", kInner, kHidden, form_.gate));
  }
  ValueId up(ValueId in, ValueId by) {
    return g.expert_matmul(in, by, experts("up", kInner, kHidden, form_.up));
  }
  ValueId act(ValueId gated, ValueId with) {
    return g.gated_act(gated, with, {form_.act, 1.7f, 0.5f});
  }
  void finish(ValueId activated) {
    ExpertMatmul down = experts("down", kHidden, kInner, form_.up);
    down.input = ExpertInput::per_slot;
    const ValueId slots = g.expert_matmul(activated, route, down);
    const ValueId y = g.add(x, g.combine_experts(slots, route, kUsed));
    g.result = g.matmul(g.gather_outputs(y),
                        weights_.matrix("head", kVocabulary, kHidden, WeightType::f32));
  }
  ExpertMatmul experts(const char* name, int64_t rows, int64_t columns, WeightType type) {
    ExpertMatmul out{-1, -1, ExpertInput::shared, kUsed, {}, {}, -1};
    for (int64_t expert = 0; expert < kExperts; ++expert) {
      out.experts.push_back(weights_.matrix(name, rows, columns, type));
      if (form_.biases) out.biases.push_back(weights_.floats(rows));
    }
    return out;
  }

  Graph g;
  ValueId x, h, route;

 private:
  Form form_;
  Weights weights_;
};

constexpr Form kPlain{"plain", WeightType::q8_0, WeightType::q8_0, GateAct::silu, false};

std::string experts_in(const Graph& graph) {
  std::string out;
  for (const Op& op : graph.ops)
    if (const std::string line = to_string(op);
        line.find("expert") != std::string::npos || std::holds_alternative<GatedAct>(op))
      out += line + "\n";
  return out;
}

TEST(GateExperts, GateUpAndActivationBecomeOne) {
  Layer layer(kPlain);
  const ValueId gate = layer.gate(layer.h, layer.route);
  layer.finish(layer.act(gate, layer.up(layer.h, layer.route)));
  EXPECT_EQ(experts_in(layer.g),
            "%4 = expert_matmul gate and so on, 5 of [320x64], 2 used (%1, %3)\n"
            "%5 = expert_matmul up and so on, 5 of [320x64], 2 used (%1, %3)\n"
            "%6 = gated_act silu (%4, %5)\n"
            "%7 = expert_matmul down and so on, 5 of [64x320], 2 used (%6, %3)\n"
            "%8 = combine_experts of 2 (%7, %3)\n");
  const Graph after = gate_experts(layer.g);
  EXPECT_EQ(experts_in(after),
            "%6 = gated_experts silu gate up and so on, 5 of [320x64], 2 used (%1, %3)\n"
            "%7 = expert_matmul down and so on, 5 of [64x320], 2 used (%6, %3)\n"
            "%8 = combine_experts of 2 (%7, %3)\n");
  EXPECT_EQ(after.ops.size(), layer.g.ops.size() - 2);
  EXPECT_EQ(after.weight_bytes_per_step(), layer.g.weight_bytes_per_step());
}

// Up may come first, and the input need not be there any more when the activation comes.
TEST(GateExperts, StandWhereTheFirstProductStood) {
  Layer layer(kPlain);
  const ValueId up = layer.up(layer.h, layer.route);
  const ValueId gate = layer.gate(layer.h, layer.route);
  layer.g.scale(layer.h, 2.0f);
  layer.finish(layer.act(gate, up));
  const Graph after = gate_experts(layer.g);
  EXPECT_EQ(to_string(after.ops[4]),
            "%7 = gated_experts silu gate up and so on, 5 of [320x64], 2 used (%1, %3)");
  LowerOptions options;
  options.tokens_max = options.outputs_max = 4;
  EXPECT_TRUE(lower(after, options).ok());
}

// Each differs from what one step computes in one thing, and stays as it is.
TEST(GateExperts, WhatIsInNoKnownFormStays) {
  const Form mixed{"mixed", WeightType::f32, WeightType::q8_0, GateAct::silu, false};
  const std::tuple<const char*, Form, std::function<void(Layer&)>> cases[] = {
      {"another route", kPlain,
       [](Layer& l) {
         const ValueId other = l.route_of(l.h);
         l.act(l.gate(l.h, l.route), l.up(l.h, other));
       }},
      {"another input", kPlain, [](Layer& l) { l.act(l.gate(l.h, l.route), l.up(l.x, l.route)); }},
      {"another number of used experts", kPlain,
       [](Layer& l) {
         ExpertMatmul one = l.experts("up", kUsed * kInner, kHidden, WeightType::q8_0);
         one.used = 1;
         l.act(l.gate(l.h, l.route), l.g.expert_matmul(l.h, l.route, one));
       }},
      {"fewer experts", kPlain,
       [](Layer& l) {
         ExpertMatmul fewer = l.experts("up", kInner, kHidden, WeightType::q8_0);
         fewer.experts.pop_back();
         l.act(l.gate(l.h, l.route), l.g.expert_matmul(l.h, l.route, fewer));
       }},
      {"other rows of a slot's input", kPlain,
       [](Layer& l) {
         ExpertMatmul slots = l.experts("up", kInner, kHidden, WeightType::q8_0);
         slots.input = ExpertInput::per_slot;
         l.act(l.gate(l.h, l.route), l.g.expert_matmul(l.h, l.route, slots));
       }},
      {"floats beside quantised activations", mixed,
       [](Layer& l) { l.act(l.gate(l.h, l.route), l.up(l.h, l.route)); }},
      {"a product that is read again", kPlain,
       [](Layer& l) {
         const ValueId gate = l.gate(l.h, l.route);
         l.g.add(l.act(gate, l.up(l.h, l.route)), gate);
       }},
      {"a product that is the result", kPlain,
       [](Layer& l) {
         l.g.result = l.gate(l.h, l.route);
         l.act(l.g.result, l.up(l.h, l.route));
       }},
      {"a product gated by itself", kPlain,
       [](Layer& l) {
         const ValueId gate = l.gate(l.h, l.route);
         l.act(gate, gate);
       }},
      {"a product that is scaled first", kPlain,
       [](Layer& l) { l.act(l.g.scale(l.gate(l.h, l.route), 2), l.up(l.h, l.route)); }},
  };
  for (const auto& [what, form, build] : cases) {
    Layer layer(form);
    build(layer);
    EXPECT_EQ(to_string(gate_experts(layer.g)), to_string(layer.g)) << what;
  }
}

// ---- what the CPU computes ----

class GatedExpertsOnCpu : public testing::TestWithParam<Form> {
 protected:
  // Three of four tokens are the same, so that an expert has more rows than a tile holds.
  static constexpr int64_t kTokens = 260;

  std::vector<float> run(const Graph& graph, const backend::cpu::KernelTable& kernels) {
    std::vector<int32_t> ids, rows;
    for (int32_t i = 0; i < kTokens; ++i) {
      ids.push_back(i % 4 == 0 ? i / 4 % static_cast<int32_t>(kVocabulary) : 3);
      rows.push_back(i);
    }
    LowerOptions options;
    options.tokens_max = options.outputs_max = kTokens;
    auto program = lower(graph, options);
    EXPECT_TRUE(program.ok()) << program.status().message();
    auto runner = backend::cpu::create_runner(std::move(*program), kernels,
                                              {*pool_, allocator_, packed_, backend::Repack::off});
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    const SequenceRun sequence{0, kTokens, 0, kTokens, {}};
    const Batch batch{ids, rows, {&sequence, 1}, rows};
    EXPECT_TRUE((*runner)->run_body(batch, {}).ok());
    const Result<float*> out = (*runner)->run_head(batch, 0, kTokens);
    EXPECT_TRUE(out.ok()) << out.status().message();
    return {*out, *out + kTokens * kVocabulary};
  }

  Allocator allocator_{{}, 0};
  backend::cpu::PackedWeights packed_;
  std::unique_ptr<ThreadPool> pool_ = std::move(*ThreadPool::create({.threads = 3}));
};

TEST_P(GatedExpertsOnCpu, HaveTheBitsOfThreeSteps) {
  Layer layer(GetParam());
  const ValueId gate = layer.gate(layer.h, layer.route);
  layer.finish(layer.act(gate, layer.up(layer.h, layer.route)));
  const Graph after = gate_experts(layer.g);
  ASSERT_EQ(after.ops.size(), layer.g.ops.size() - 2);
  const std::pair<const char*, backend::cpu::KernelTable> paths[] = {
      {"fast", backend::cpu::fast_kernels()},
      {"deterministic", backend::cpu::deterministic_kernels()},
      {"reference", backend::cpu::reference_kernels()}};
  for (const auto& [path, kernels] : paths) {
    const std::vector<float> apart = run(layer.g, kernels), one = run(after, kernels);
    EXPECT_TRUE(std::all_of(one.begin(), one.end(), [](float x) { return std::isfinite(x); }));
    EXPECT_EQ(0, std::memcmp(apart.data(), one.data(), one.size() * sizeof(float))) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, GatedExpertsOnCpu,
                         testing::Values(Form{"floats", WeightType::f32, WeightType::f32,
                                              GateAct::silu, false},
                                         Form{"two_types", WeightType::q4_0, WeightType::q8_0,
                                              GateAct::gelu_tanh, false},
                                         Form{"biases", WeightType::q4_0, WeightType::q4_0,
                                              GateAct::swiglu_clamped, true}),
                         [](const auto& test) { return std::string(test.param.name); });

// ---- models ----

class ModelsWithExperts : public testing::TestWithParam<const char*> {};

TEST_P(ModelsWithExperts, AreGatedInOneStep) {
  const std::string folder = std::string(OPTIMA_SOURCE_DIR "/tests/goldens/arch/") + GetParam();
  Allocator allocator({}, 0);
  const auto file = model::open_model_file(model::PathSource{folder}, allocator, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Result<model::Decoder> decoder = model::build_decoder(**file);
  ASSERT_TRUE(decoder.ok()) << decoder.status().message();
  size_t gated = 0, products = 0, routes = 0;
  for (const Op& op : decoder->graph.ops) {
    gated += std::holds_alternative<GatedExperts>(op);
    products += std::holds_alternative<ExpertMatmul>(op);
    routes += std::holds_alternative<Route>(op);
  }
  EXPECT_GT(routes, 0u);
  EXPECT_EQ(gated, routes);
  EXPECT_EQ(products, routes) << "down alone";
}

INSTANTIATE_TEST_SUITE_P(All, ModelsWithExperts,
                         testing::Values("mixtral", "qwen3_moe", "gemma4_moe", "gpt_oss",
                                         "gpt_oss_mxfp4"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace optima::graph
