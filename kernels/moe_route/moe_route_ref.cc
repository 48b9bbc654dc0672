// Routing in plain loops: a few hundred logits a token are nothing beside one expert's matrix, so
// this is both the reference and the only variant.
//
// The chosen experts are kept sorted in the row's outputs while the logits are walked once; until
// the walk ends out_weights holds what they were chosen by. So no scratch is needed.
#include <math.h>

#include "kernels/moe_route/moe_route.h"

namespace optima::kernels {
namespace {

// exp(x - max) / sum; the empty softmax (-inf, 0) is never asked.
struct Softmax {
  double max;
  double sum;
  double of(float x) const { return exp(static_cast<double>(x) - max) / sum; }
};

// Softmax over at(0) … at(count - 1). NaN anywhere makes everything NaN.
template <typename At>
Softmax softmax_over(int64_t count, const At& at) {
  Softmax result = {-static_cast<double>(INFINITY), 0};
  for (int64_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(at(i));
    if (x > result.max) result.max = x;
  }
  for (int64_t i = 0; i < count; ++i) result.sum += exp(static_cast<double>(at(i)) - result.max);
  return result;
}

double sigmoid(float x) {
  return 1.0 / (1.0 + exp(-static_cast<double>(x)));
}

// One row of the problem.
struct Row {
  const MoeRouteArgs& args;
  const float* logits;
  int32_t* ids;
  float* weights;
  Softmax all;  // over all logits, where the scoring asks for it
};

double score(const Row& row, int64_t expert) {
  const float logit = row.logits[expert];
  switch (row.args.scoring) {
    case MoeScoring::softmax_then_top:
      return row.all.of(logit);
    case MoeScoring::sigmoid_then_top:
      return sigmoid(logit);
    case MoeScoring::top_then_softmax:
      break;
  }
  return static_cast<double>(logit);
}

// What the expert is chosen by. Without a bias the logit itself: scores rise with it, and where
// they round to the same number it still tells which is larger.
float merit(const Row& row, int64_t expert) {
  if (row.args.selection_bias == nullptr) return row.logits[expert];
  return static_cast<float>(score(row, expert)) + row.args.selection_bias[expert];
}

bool beats(float a, float b) {
  return a > b || (isnan(a) && !isnan(b));
}

// Insertion into the falling list; an equal one that came earlier stays ahead.
void choose(const Row& row) {
  int64_t held = 0;
  for (int64_t expert = 0; expert < row.args.experts; ++expert) {
    const float value = merit(row, expert);
    int64_t place = held;
    while (place > 0 && beats(value, row.weights[place - 1])) --place;
    if (place == row.args.used) continue;
    if (held < row.args.used) ++held;
    for (int64_t i = held - 1; i > place; --i) {
      row.ids[i] = row.ids[i - 1];
      row.weights[i] = row.weights[i - 1];
    }
    row.ids[place] = static_cast<int32_t>(expert);
    row.weights[place] = value;
  }
}

// Replaces the merits of the chosen by their weights.
void weigh(const Row& row) {
  const int64_t used = row.args.used;
  const double scale = static_cast<double>(row.args.scale);
  if (row.args.scoring == MoeScoring::top_then_softmax) {
    const Softmax chosen = softmax_over(used, [&](int64_t i) { return row.logits[row.ids[i]]; });
    for (int64_t i = 0; i < used; ++i) {
      row.weights[i] = static_cast<float>(chosen.of(row.logits[row.ids[i]]) * scale);
    }
    return;
  }
  double divisor = 1;
  if (row.args.weights == MoeWeights::normalised) {
    divisor = 0;
    for (int64_t i = 0; i < used; ++i) divisor += score(row, row.ids[i]);
    if (divisor == 0) divisor = 1;
  }
  for (int64_t i = 0; i < used; ++i) {
    row.weights[i] = static_cast<float>(score(row, row.ids[i]) / divisor * scale);
  }
}

}  // namespace

void moe_route_ref(const MoeRouteArgs& args, int64_t row_begin, int64_t row_end) {
  for (int64_t index = row_begin; index < row_end; ++index) {
    Row row = {args,
               args.logits + index * args.logits_stride,
               args.out_ids + index * args.used,
               args.out_weights + index * args.used,
               {0, 1}};
    if (args.scoring == MoeScoring::softmax_then_top) {
      row.all = softmax_over(args.experts, [&](int64_t i) { return row.logits[i]; });
    }
    choose(row);
    weigh(row);
  }
}

const MoeRouteFn kMoeRouteReference = moe_route_ref;

}  // namespace optima::kernels
