// A model as a graph: values (rows of fp32 activations) and the operations between them, in the
// order of computation. Architecture files build it, passes rewrite it, lower() turns it into a
// flat list of steps.
//
// Every value has one row per token of the batch (Rows::tokens) or one per scored row
// (Rows::outputs): gather_outputs leads from the first kind to the second.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/moe_route/moe_route.h"
#include "kernels/quant/weight_type.h"
#include "kernels/rope/rope.h"

namespace optima::graph {

using ValueId = int32_t;

enum class Rows : uint8_t { tokens, outputs };

// Width of attention scores: for each head, a number for each position of the sequence so far.
inline constexpr int64_t kPositions = -1;

struct Value {
  int64_t width = 0;  // floats in a row
  Rows rows = Rows::tokens;
};

// A matrix [rows, columns] of a weight file, where it lies.
struct Weight {
  std::string_view name;
  const void* data = nullptr;
  kernels::WeightType type{};
  int64_t rows = 0;     // output features
  int64_t columns = 0;  // input features
};

// One rotary setting, resolved to frequencies. Where they depend on the context, they are those of
// the sequence's context length (SequenceRun::context): one choice for all of its tokens, so that
// KV once written stays right.
struct RopeTable {
  std::vector<double> inverse_frequency;  // [rotary_dim / 2]
  double magnitude = 1.0;
  kernels::RopePairs pairs = kernels::RopePairs::adjacent;
  double base = 0;
  int64_t original_context = 0;                // contexts beyond it differ; 0 = none does
  std::vector<double> long_inverse_frequency;  // theirs, or empty
  double stretch = 0;                          // dynamic NTK's factor; 0 = not stretched
};

// ---- operations; the field `out` is the value an operation defines ----

// out = scale * row of `table` for each token id.
struct Embed {
  Weight table;
  float scale;
  ValueId out;
};
// RMS norm of each group of `group_width` floats of a row; the whole row unless it is a head norm.
struct RmsNorm {
  ValueId in;
  const float* weight;  // [group_width]; null = all ones
  int64_t group_width;
  float epsilon;
  ValueId out;
};
// Layer norm of a whole row.
struct LayerNorm {
  ValueId in;
  const float* weight;  // [width]
  const float* bias;    // [width]; null = none
  float epsilon;
  ValueId out;
};
// outs[i] = in × weights[i]ᵀ; several weights share one reading (and quantisation) of `in`.
struct Matmul {
  ValueId in;
  std::vector<Weight> weights;
  std::vector<ValueId> outs;
};
struct Add {
  ValueId a, b;
  ValueId out;
};
struct Mul {
  ValueId a, b;
  ValueId out;
};
// In place, as Rope is.
struct AddBias {
  ValueId in;
  const float* bias;  // [width]
  ValueId out;
};
// Adds the row of `table` at the token's position (learned positions); in place.
struct AddPosition {
  ValueId in;
  Weight table;
  ValueId out;
};
struct GatedAct {
  ValueId gate, up;
  kernels::GateActParams act;
  ValueId out;
};
struct Activate {  // in place
  ValueId in;
  kernels::Act act;
  ValueId out;
};
struct Scale {  // in place
  ValueId in;
  float factor;
  ValueId out;
};
struct Softcap {  // in place: cap * tanh(x / cap)
  ValueId in;
  float cap;
  ValueId out;
};
// Copies columns [begin, begin + width of out) of a row.
struct Columns {
  ValueId in;
  int64_t begin;
  ValueId out;
};
// Rotates the heads of `in` in place: `out` names the same row afterwards.
struct Rope {
  ValueId in;
  int32_t table;  // index into Graph::ropes
  int64_t head_dim;
  ValueId out;
};
struct StoreKv {
  ValueId k, v;
  int32_t layer;
  int64_t kv_heads, head_dim;
};

// ---- attention as it is written: described in parts, which passes/attention.cc makes one of ----

// Whose cached keys or values are read, and how query heads share them.
struct KvRead {
  int32_t layer;  // that stored them
  int64_t heads, kv_heads, head_dim;
};
// out[head][position] = scale * q[head] · key[head / (heads / kv_heads)][position].
struct Scores {
  ValueId q;
  KvRead keys;
  float scale;
  ValueId out;
};
enum class MaskKind : uint8_t {
  causal,   // a query at p does not see positions > p
  sliding,  // nor positions <= p - window
};
struct Mask {  // in place: -infinity where nothing is seen
  ValueId in;
  MaskKind kind;
  int64_t window;  // of sliding
  ValueId out;
};
struct Softmax {  // in place, over the positions of each head
  ValueId in;
  // [heads], null = none: one more score of each head, which takes its share and has no value.
  const float* sinks;
  ValueId out;
};
// out[head] = sum over positions of in[head][position] * value[head's kv head][position].
struct WeighValues {
  ValueId in;
  KvRead values;
  ValueId out;
};

// The whole of it, which is what kernels compute. Keys are rotated once, when they are stored.
struct Attention {
  ValueId q;
  KvRead kv;
  kernels::AttentionMask mask;
  int64_t window;  // 0 = all positions
  float scale;
  float softcap;       // 0 = none
  const float* sinks;  // [heads]; null = none
  int32_t rope;        // the table that rotated q and the stored keys; -1 = none
  ValueId out;
};

// ---- mixture of experts ----

// Chooses `used` experts for each token. A row of `out` holds their ids as int32, then their
// weights as fp32: 2 * used values.
struct Route {
  ValueId in;  // router logits [experts]
  int64_t used;
  kernels::MoeScoring scoring;
  kernels::MoeWeights weights;
  const float* scales;  // [experts], of the weights in the end; null = none
  ValueId out;
};
enum class ExpertInput : uint8_t {
  shared,    // every chosen expert reads the whole row
  per_slot,  // the expert in slot j reads columns [j * columns, (j + 1) * columns)
};
// Slot j of a row of `out` = input × experts[id of slot j]ᵀ + its bias.
struct ExpertMatmul {
  ValueId in;
  ValueId route;
  ExpertInput input;
  int64_t used;
  std::vector<Weight> experts;       // all of one shape
  std::vector<const float*> biases;  // [experts] of [rows], or empty
  ValueId out;
};
// Slot j of a row of `out` = act(slot j of gate's product) * slot j of up's: products of one input,
// chosen by one route. passes/gate_experts.cc makes it of the three operations.
struct GatedExperts {
  ExpertMatmul gate, up;
  kernels::GateActParams act;
  ValueId out;
};
// out = sum over slots of weight * slot.
struct CombineExperts {
  ValueId in;
  ValueId route;
  int64_t used;
  ValueId out;
};

struct GatherOutputs {
  ValueId in;
  ValueId out;
};

using Op = std::variant<Embed, RmsNorm, LayerNorm, Matmul, Add, Mul, AddBias, AddPosition, GatedAct,
                        Activate, Scale, Softcap, Columns, Rope, StoreKv, Scores, Mask, Softmax,
                        WeighValues, Attention, Route, ExpertMatmul, GatedExperts, CombineExperts,
                        GatherOutputs>;

class Graph {
 public:
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<RopeTable> ropes;
  ValueId result = -1;  // of scored rows: logits [outputs, vocabulary], or the hidden rows
  ValueId hidden = -1;  // [outputs, hidden], after the last norm: what a head reads

  // Builders: append the operation, return the value it defines.
  ValueId embed(const Weight& table, float scale);
  ValueId rms_norm(ValueId in, const float* weight, int64_t group_width, float epsilon);
  ValueId layer_norm(ValueId in, const float* weight, const float* bias, float epsilon);
  ValueId matmul(ValueId in, const Weight& weight);
  ValueId add(ValueId a, ValueId b);
  ValueId mul(ValueId a, ValueId b);
  ValueId add_bias(ValueId in, const float* bias);
  ValueId add_position(ValueId in, const Weight& table);
  ValueId gated_act(ValueId gate, ValueId up, const kernels::GateActParams& act);
  ValueId activate(ValueId in, kernels::Act act);
  ValueId scale(ValueId in, float factor);
  ValueId softcap(ValueId in, float cap);
  ValueId columns(ValueId in, int64_t begin, int64_t width);
  ValueId rope(ValueId in, int32_t table, int64_t head_dim);
  void store_kv(ValueId k, ValueId v, const StoreKv& where);
  ValueId scores(ValueId q, const KvRead& keys, float scale);
  ValueId mask(ValueId scores, MaskKind kind, int64_t window);
  ValueId softmax(ValueId scores, const float* sinks);
  ValueId weigh_values(ValueId weights, const KvRead& of);
  ValueId route(ValueId in, const Route& how);
  ValueId expert_matmul(ValueId in, ValueId route, ExpertMatmul what);
  ValueId combine_experts(ValueId in, ValueId route, int64_t used);
  ValueId gather_outputs(ValueId in);

  // Bytes of weights that one step reads when a single row is embedded and scored.
  int64_t weight_bytes_per_step() const;

 private:
  ValueId define(int64_t width, Rows rows);
  ValueId define_like(ValueId other);
};

// The value that `op` rewrites in place under the name of its result; -1 = none.
ValueId rewritten(const Op& op);

// The values an operation reads and defines.
std::vector<ValueId> reads(const Op& op);
std::vector<ValueId> defines(const Op& op);

// One line an operation, for reports and tests.
std::string to_string(const Op& op);
std::string to_string(const Graph& graph);

}  // namespace optima::graph
