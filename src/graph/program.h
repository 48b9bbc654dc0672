// A lowered graph: a flat list of steps over one arena. Between two steps all threads meet; inside
// a step they share nothing. Row-local operations that follow each other form one step: a thread
// takes its tokens through all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "kernels/attention/attention.h"

namespace optima::graph {

// A value's place in the arena: row r starts at offset + r * width floats.
struct Place {
  int64_t offset = 0;  // bytes, 64-byte aligned
  int64_t width = 0;   // floats
};

// Where a layer's keys and values lie: KV group, and the slots inside its pages.
struct KvPlace {
  int32_t group = 0;
  int64_t slot_offset = 0;
  int64_t slot_stride = 0;
};

struct EmbedRow {
  Weight table;
  float scale;
  Place out;
};
struct RopeAnglesRow {  // cos and sin of the batch's positions, shared by all layers
  int32_t table;
  Place out;
};
struct RmsNormRow {
  Place in, out;
  const float* weight;
  int64_t group_width;
  float epsilon;
};
struct LayerNormRow {
  Place in, out;
  const float* weight;
  const float* bias;
  float epsilon;
};
struct AddRow {
  Place a, b, out;
};
struct MulRow {
  Place a, b, out;
};
struct AddBiasRow {
  Place x;
  const float* bias;
};
struct AddPositionRow {
  Place x;
  Weight table;
};
struct GatedActRow {
  Place gate, up, out;
  kernels::GateActParams act;
};
struct ActivateRow {
  Place x;
  kernels::Act act;
};
struct ScaleRow {
  Place x;
  float factor;
};
struct SoftcapRow {
  Place x;
  float cap;
};
struct ColumnsRow {
  Place in, out;
  int64_t begin;
};
struct RouteRow {
  Place in, out;
  int64_t used;
  kernels::MoeScoring scoring;
  kernels::MoeWeights weights;
  const float* scales;
};
struct CombineExpertsRow {
  Place in, route, out;
  int64_t used;
};
struct RopeRow {
  Place x;
  Place angles;
  int64_t head_dim;
  int64_t rotary_dim;
  kernels::RopePairs pairs;
};
struct StoreKvRow {
  Place k, v;
  KvPlace kv;
  int64_t kv_heads, head_dim;
};
struct QuantiseRow {  // int8 rows (kernels::QuantisedRows) of `in` for the matmul that follows
  Place in;
  int64_t out_offset;
  int64_t rows_max;
};
struct GatherRow {
  Place in, out;
};
using RowOp =
    std::variant<EmbedRow, RopeAnglesRow, RmsNormRow, LayerNormRow, AddRow, MulRow, AddBiasRow,
                 AddPositionRow, GatedActRow, ActivateRow, ScaleRow, SoftcapRow, ColumnsRow,
                 RopeRow, StoreKvRow, QuantiseRow, RouteRow, CombineExpertsRow, GatherRow>;

struct RowStep {
  std::vector<RowOp> ops;
};
struct MatmulPart {
  Weight weight;
  Place out;
};
struct MatmulStep {
  Place in;
  int64_t quantised_offset;  // bytes; -1 when no part reads quantised rows
  int64_t rows_max;
  std::vector<MatmulPart> parts;
};
struct AttentionStep {
  Place q, out;
  KvPlace kv;
  int64_t heads, kv_heads, head_dim;
  kernels::AttentionMask mask;
  int64_t window;
  float scale, softcap;
  const float* sinks;
};
struct ExpertPart {  // a matrix of each expert and its bias: see ExpertMatmul
  std::vector<Weight> weights;
  std::vector<const float*> biases;
};
// Tokens are grouped by expert: see ExpertMatmul and GatedExperts.
struct ExpertMatmulStep {
  Place in, route, out;
  ExpertInput input;
  int64_t used;
  std::vector<ExpertPart> parts;              // one, or a gate and an up of the same shape
  std::optional<kernels::GateActParams> act;  // of these two
};

struct Step {
  Rows rows = Rows::tokens;
  std::variant<RowStep, MatmulStep, AttentionStep, ExpertMatmulStep> work;
};

struct Program {
  std::vector<Step> body;  // over the batch's tokens, once
  std::vector<Step> head;  // over a tile of at most outputs_max scored rows, as often as needed
  std::vector<RopeTable> ropes;
  Place result;  // of scored rows
  int64_t tokens_max = 0;
  int64_t outputs_max = 0;
  int64_t arena_bytes = 0;
  int64_t weight_bytes_per_step = 0;
  kernels::KvType kv_type = kernels::KvType::f16;
};

// Whether matmuls read int8 rows (the fast path) or fp32 rows (the reference path).
enum class Activations : uint8_t { quantised, fp32 };

struct LowerOptions {
  int64_t tokens_max = 0;
  int64_t outputs_max = 0;
  Activations activations = Activations::quantised;
  kernels::KvType kv_type = kernels::KvType::f16;
  std::vector<KvPlace> kv;  // [layers]
};

// Fails with `internal` when the graph contradicts itself.
Result<Program> lower(const Graph& graph, const LowerOptions& options);

std::string to_string(const Program& program);

}  // namespace optima::graph
