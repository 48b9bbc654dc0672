// Rewrites of a graph. Each keeps what its result is, unless it says otherwise; to_string() before
// and after shows what it did.
#pragma once

#include "base/status.h"
#include "graph/graph.h"

namespace optima::graph {

// Matmuls of the same input (q, k, v; gate and up) become one operation, so that the input is
// quantised once and the threads meet once.
Graph group_matmuls(Graph graph);

// Attention written out (scores, softcap, masks, softmax, weighed values) becomes one Attention,
// when it is in a form that kernels compute:
// - masks: none (encoders), causal, or causal and sliding;
// - rotation: queries and stored keys by one table, or neither;
// - no part of it is read by anything else.
// What is in no such form stays as it is, and lower() refuses it.
Graph recognise_attention(Graph graph);

// Two products with experts and the activation that gates one by the other become one operation, so
// that rows are grouped and quantised once, threads meet once in place of three times, and only
// what is activated goes to memory. The products must
// - read the same value by the same route, and have matrices of the same shape;
// - read it in the same form: an expert of which one matrix meets quantised activations and the
//   other floats would want its rows twice;
// - be read by nothing else.
Graph gate_experts(Graph graph);

// Makes the hidden rows the result and drops what only the head needed. Fails with `internal` when
// the graph does not say which rows they are.
Result<Graph> hidden_states(Graph graph);

}  // namespace optima::graph
