#include <gtest/gtest.h>

#include "graph/passes/passes.h"
#include "graph/program.h"

namespace optima::graph {
namespace {

constexpr int64_t kHidden = 64;

Weight weight(const char* name, int64_t rows, int64_t columns, kernels::WeightType type) {
  static const std::vector<std::byte> bytes(1 << 16);
  return {name, bytes.data(), type, rows, columns};
}

// One block without attention: norm, two matmuls of one input, gate, matmul, residual; head.
Graph small_graph(kernels::WeightType type) {
  static const std::vector<float> ones(kHidden, 1.0f);
  Graph g;
  const ValueId x = g.embed(weight("embed", 10, kHidden, kernels::WeightType::f32), 1.0f);
  const ValueId h = g.rms_norm(x, ones.data(), kHidden, 1e-5f);
  const ValueId gate = g.matmul(h, weight("gate", 96, kHidden, type));
  const ValueId up = g.matmul(h, weight("up", 96, kHidden, type));
  const ValueId act = g.gated_act(gate, up, {kernels::GateAct::silu, 0, 0});
  const ValueId y = g.add(x, g.matmul(act, weight("down", kHidden, 96, type)));
  const ValueId last = g.rms_norm(g.gather_outputs(y), ones.data(), kHidden, 1e-5f);
  g.result = g.matmul(last, weight("head", 10, kHidden, type));
  return g;
}

LowerOptions options(Activations activations) {
  LowerOptions out;
  out.tokens_max = 32;
  out.outputs_max = 4;
  out.activations = activations;
  return out;
}

TEST(Passes, MatmulsOfOneInputBecomeOne) {
  const Graph before = small_graph(kernels::WeightType::q8_0);
  const Graph after = group_matmuls(before);
  EXPECT_EQ(before.ops.size(), after.ops.size() + 1);
  EXPECT_NE(to_string(after).find("matmul gate[96x64] up[96x64]"), std::string::npos)
      << to_string(after);
  EXPECT_EQ(before.weight_bytes_per_step(), after.weight_bytes_per_step());
}

TEST(Passes, HiddenStatesLeaveTheHeadOut) {
  Graph before = group_matmuls(small_graph(kernels::WeightType::q8_0));
  EXPECT_EQ(hidden_states(before).status().code(), Code::internal) << "hidden is not set";
  for (const Op& op : before.ops)
    if (const auto* norm = std::get_if<RmsNorm>(&op)) before.hidden = norm->out;
  before.result = before.softcap(before.result, 30.0f);
  const Result<Graph> after = hidden_states(before);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(after->result, before.hidden);
  EXPECT_LT(after->weight_bytes_per_step(), before.weight_bytes_per_step());
  const Result<Program> program = lower(*after, options(Activations::quantised));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->result.width, kHidden);
  EXPECT_EQ(to_string(*program).substr(to_string(*program).find('\n') + 1),
            "tokens row embed rms_norm quantise\n"
            "tokens matmul gate up\n"
            "tokens row gated_act quantise\n"
            "tokens matmul down\n"
            "tokens row add\n"
            "outputs row gather rms_norm\n");
}

TEST(Lower, RowLocalWorkSharesAStep) {
  const Result<Program> program =
      lower(group_matmuls(small_graph(kernels::WeightType::q8_0)), options(Activations::quantised));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(to_string(*program).substr(to_string(*program).find('\n') + 1),
            "tokens row embed rms_norm quantise\n"
            "tokens matmul gate up\n"
            "tokens row gated_act quantise\n"
            "tokens matmul down\n"
            "tokens row add\n"
            "outputs row gather rms_norm quantise\n"
            "outputs matmul head\n");
}

TEST(Lower, FloatWeightsAndTheReferencePathQuantiseNothing) {
  for (const auto& [type, activations] :
       {std::pair{kernels::WeightType::f16, Activations::quantised},
        std::pair{kernels::WeightType::q8_0, Activations::fp32}}) {
    const Result<Program> program = lower(small_graph(type), options(activations));
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(to_string(*program).find("quantise"), std::string::npos);
  }
}

TEST(Lower, ArenaHoldsWhatTheHeadReadsAgain) {
  const Result<Program> program =
      lower(small_graph(kernels::WeightType::q8_0), options(Activations::quantised));
  ASSERT_TRUE(program.ok());
  const auto& gather = std::get<GatherRow>(std::get<RowStep>(program->head[0].work).ops[0]);
  const int64_t in_end = gather.in.offset + 32 * kHidden * 4;
  for (const Step& step : program->head) {
    const auto* matmul = std::get_if<MatmulStep>(&step.work);
    if (matmul == nullptr) continue;
    for (const MatmulPart& part : matmul->parts) {
      EXPECT_TRUE(part.out.offset >= in_end || part.out.offset + 4 * 10 * 4 <= gather.in.offset);
    }
  }
}

// A second table of the tokens, scaled and taken apart in columns: angles are computed once.
TEST(Lower, SeveralEmbeddingsShareTheAngles) {
  Graph g;
  g.ropes.emplace_back().inverse_frequency = {1.0, 0.5};
  const ValueId x = g.embed(weight("embed", 10, kHidden, kernels::WeightType::f32), 1.0f);
  const ValueId side = g.embed(weight("side", 10, 2 * kHidden, kernels::WeightType::f32), 2.0f);
  const ValueId y = g.add(x, g.columns(side, kHidden, kHidden));
  const ValueId normed = g.rms_norm(g.gather_outputs(y), nullptr, kHidden, 1e-5f);
  g.result = g.matmul(normed, weight("head", 10, kHidden, kernels::WeightType::f32));
  const Result<Program> program = lower(g, options(Activations::fp32));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(to_string(*program).substr(to_string(*program).find('\n') + 1),
            "tokens row rope_angles embed embed columns add\n"
            "outputs row gather rms_norm\n"
            "outputs matmul head\n");
  // One row of each table and the head; the norm has no weights.
  EXPECT_EQ(g.weight_bytes_per_step(), (kHidden + 2 * kHidden + 10 * kHidden) * 4);
}

// Two layers read one layer's KV: both have the place of the layer that stored it.
TEST(Lower, AttentionReadsWhereItsLayersKvLies) {
  Graph g;
  const ValueId x = g.embed(weight("embed", 10, 16, kernels::WeightType::f32), 1.0f);
  g.store_kv(x, x, {-1, -1, 1, 1, 16});
  const KvRead kv{1, 1, 1, 16};
  ValueId y = g.add(x, x);
  for (int i = 0; i < 2; ++i) {
    const ValueId scores = g.mask(g.scores(y, kv, 0.25f), MaskKind::causal, 0);
    y = g.weigh_values(g.softmax(scores, nullptr), kv);
  }
  g.result = g.matmul(g.gather_outputs(y), weight("head", 10, 16, kernels::WeightType::f32));
  LowerOptions with_kv = options(Activations::fp32);
  with_kv.kv = {{0, 0, 32}, {2, 64, 32}};
  EXPECT_EQ(lower(g, with_kv).status().code(), Code::internal) << "written out";
  g = recognise_attention(std::move(g));
  const Result<Program> program = lower(g, with_kv);
  ASSERT_TRUE(program.ok()) << program.status().message();
  with_kv.kv.pop_back();
  EXPECT_EQ(lower(g, with_kv).status().code(), Code::internal) << "layer 1 has no place";
  int attentions = 0;
  for (const Step& step : program->body) {
    const auto* attention = std::get_if<AttentionStep>(&step.work);
    if (attention == nullptr) continue;
    ++attentions;
    EXPECT_EQ(attention->kv.group, 2);
    EXPECT_EQ(attention->kv.slot_offset, 64);
  }
  EXPECT_EQ(attentions, 2);
}

TEST(Lower, ContradictionsAreErrors) {
  Graph undefined;
  undefined.values.resize(2);
  undefined.ops.emplace_back(Add{0, 0, 1});
  undefined.result = 1;
  EXPECT_EQ(lower(undefined, options(Activations::fp32)).status().code(), Code::internal);
  EXPECT_EQ(lower(Graph{}, options(Activations::fp32)).status().code(), Code::internal);
}

}  // namespace
}  // namespace optima::graph
