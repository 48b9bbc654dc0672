// Rewrites of a graph. Each keeps the values of the logits; to_string() before and after shows
// what it did.
#pragma once

#include "graph/graph.h"

namespace optima::graph {

// Matmuls of the same input (q, k, v; gate and up) become one operation, so that the input is
// quantised once and the threads meet once.
Graph group_matmuls(Graph graph);

}  // namespace optima::graph
