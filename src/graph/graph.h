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

#include "kernels/elementwise/elementwise.h"
#include "kernels/quant/weight_type.h"
#include "kernels/rope/rope.h"

namespace optima::graph {

using ValueId = int32_t;

enum class Rows : uint8_t { tokens, outputs };

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

// One rotary setting, resolved to frequencies.
struct RopeTable {
  std::vector<double> inverse_frequency;  // [rotary_dim / 2]
  double magnitude = 1.0;
  kernels::RopePairs pairs = kernels::RopePairs::adjacent;
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
  const float* weight;  // [group_width]
  int64_t group_width;
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
struct GatedAct {
  ValueId gate, up;
  kernels::GateAct act;
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
struct Attention {
  ValueId q;
  int32_t layer;
  int64_t heads, kv_heads, head_dim;
  int64_t window;  // 0 = all positions
  float scale;
  float softcap;  // 0 = none
  ValueId out;
};
struct GatherOutputs {
  ValueId in;
  ValueId out;
};

using Op =
    std::variant<Embed, RmsNorm, Matmul, Add, GatedAct, Rope, StoreKv, Attention, GatherOutputs>;

class Graph {
 public:
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<RopeTable> ropes;
  ValueId logits = -1;  // [outputs, vocabulary]

  // Builders: append the operation, return the value it defines.
  ValueId embed(const Weight& table, float scale);
  ValueId rms_norm(ValueId in, const float* weight, int64_t group_width, float epsilon);
  ValueId matmul(ValueId in, const Weight& weight);
  ValueId add(ValueId a, ValueId b);
  ValueId gated_act(ValueId gate, ValueId up, kernels::GateAct act);
  ValueId rope(ValueId in, int32_t table, int64_t head_dim);
  void store_kv(ValueId k, ValueId v, const StoreKv& where);
  ValueId attention(ValueId q, const Attention& how);
  ValueId gather_outputs(ValueId in);

  // Bytes of weights that one step reads when a single row is embedded and scored.
  int64_t weight_bytes_per_step() const;

 private:
  ValueId define(int64_t width, Rows rows);
};

// The values an operation reads and defines.
std::vector<ValueId> reads(const Op& op);
std::vector<ValueId> defines(const Op& op);

// One line an operation, for reports and tests.
std::string to_string(const Graph& graph);

}  // namespace optima::graph
