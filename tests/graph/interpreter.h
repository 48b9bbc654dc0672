// Computes a graph as it is written, one operation after the other, for one sequence from position
// 0: no pages, no steps, attention in its parts. The measure of what passes and lowering make of
// it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "base/overloaded.h"
#include "graph/graph.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/rms_norm/rms_norm.h"

namespace optima::graph {

class Interpreter {
 public:
  // `graph` must outlive it. Frequencies that depend on the context are not supported.
  Interpreter(const Graph& graph, std::vector<int32_t> ids)
      : graph_(graph), ids_(std::move(ids)), rows_(graph.values.size()) {}

  // [tokens][vocabulary]
  std::vector<float> run() {
    for (const Op& op : graph_.ops) {
      if (const ValueId in = rewritten(op); in >= 0) row(defines(op).front()) = row(in);
      std::visit([this](const auto& o) { compute(o); }, op);
    }
    return row(graph_.result);
  }

 private:
  using Floats = std::vector<float>;
  struct Cache {
    Floats k, v;
    int64_t width = 0;
  };

  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  Floats& row(ValueId id) { return rows_[static_cast<size_t>(id)]; }
  int64_t width(ValueId id) const { return graph_.values[static_cast<size_t>(id)].width; }
  Floats& fresh(ValueId id) {
    row(id).assign(static_cast<size_t>(tokens() * width(id)), 0.0f);
    return row(id);
  }
  static Floats weight_row(const Weight& weight, int64_t index) {
    const auto* info = kernels::find_weight_type(static_cast<int32_t>(weight.type));
    Floats out(static_cast<size_t>(weight.columns));
    kernels::dequant_row(weight.type)(
        static_cast<const std::byte*>(weight.data) +
            static_cast<size_t>(index) * kernels::row_bytes(*info, weight.columns),
        out.data(), weight.columns);
    return out;
  }
  static float product(const float* x, const Floats& w) {
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i) sum += double{x[i]} * double{w[i]};
    return static_cast<float>(sum);
  }

  void compute(const Embed& o) {
    Floats& out = fresh(o.out);
    for (int64_t t = 0; t < tokens(); ++t) {
      const Floats from = weight_row(o.table, ids_[static_cast<size_t>(t)]);
      for (int64_t i = 0; i < width(o.out); ++i)
        out[static_cast<size_t>(t * width(o.out) + i)] = o.scale * from[static_cast<size_t>(i)];
    }
  }
  void compute(const RmsNorm& o) {
    kernels::RmsNormArgs args{};
    args.x = row(o.in).data();
    args.x_stride = args.out_stride = args.width = o.group_width;
    args.weight = o.weight;
    args.epsilon = o.epsilon;
    args.out = fresh(o.out).data();
    kernels::kRmsNormReference(args, 0, tokens() * width(o.out) / o.group_width);
  }
  void compute(const LayerNorm& o) {
    kernels::LayerNormArgs args{};
    args.x = row(o.in).data();
    args.x_stride = args.out_stride = args.width = width(o.out);
    args.weight = o.weight;
    args.bias = o.bias;
    args.epsilon = o.epsilon;
    args.out = fresh(o.out).data();
    kernels::kLayerNormReference(args, 0, tokens());
  }
  void compute(const Matmul& o) {
    for (size_t w = 0; w < o.weights.size(); ++w) {
      Floats& out = fresh(o.outs[w]);
      const Weight& weight = o.weights[w];
      for (int64_t r = 0; r < weight.rows; ++r) {
        const Floats values = weight_row(weight, r);
        for (int64_t t = 0; t < tokens(); ++t)
          out[static_cast<size_t>(t * weight.rows + r)] =
              product(row(o.in).data() + t * weight.columns, values);
      }
    }
  }
  void compute(const Add& o) {
    Floats& out = fresh(o.out);
    kernels::kAddReference(row(o.a).data(), row(o.b).data(), out.data(),
                           static_cast<int64_t>(out.size()));
  }
  void compute(const Mul& o) {
    Floats& out = fresh(o.out);
    kernels::kMulReference(row(o.a).data(), row(o.b).data(), out.data(),
                           static_cast<int64_t>(out.size()));
  }
  void compute(const AddBias& o) {
    float* x = row(o.out).data();
    kernels::kAddBiasReference(x, o.bias, x, tokens(), width(o.out));
  }
  void compute(const AddPosition& o) {
    for (int64_t t = 0; t < tokens(); ++t) {
      float* x = row(o.out).data() + t * width(o.out);
      kernels::kAddReference(x, weight_row(o.table, t).data(), x, width(o.out));
    }
  }
  void compute(const GatedAct& o) {
    Floats& out = fresh(o.out);
    kernels::kGatedActReference(row(o.gate).data(), row(o.up).data(), out.data(),
                                static_cast<int64_t>(out.size()), o.act);
  }
  void compute(const Activate& o) {
    Floats& x = row(o.out);
    kernels::kActReference(x.data(), x.data(), static_cast<int64_t>(x.size()), o.act);
  }
  void compute(const Scale& o) {
    for (float& x : row(o.out)) x *= o.factor;
  }
  void compute(const Softcap& o) {
    for (float& x : row(o.out)) x = o.cap * std::tanh(x / o.cap);
  }
  void compute(const Columns& o) {
    Floats& out = fresh(o.out);
    for (int64_t t = 0; t < tokens(); ++t)
      std::copy_n(row(o.in).data() + t * width(o.in) + o.begin, width(o.out),
                  out.data() + t * width(o.out));
  }
  void compute(const Rope& o) {
    const RopeTable& table = graph_.ropes[static_cast<size_t>(o.table)];
    const auto half = static_cast<int64_t>(table.inverse_frequency.size());
    const bool halves = table.pairs == kernels::RopePairs::halves;
    const int64_t heads = width(o.out) / o.head_dim;
    for (int64_t t = 0; t < tokens(); ++t)
      for (int64_t h = 0; h < heads; ++h) {
        float* x = row(o.out).data() + t * width(o.out) + h * o.head_dim;
        for (int64_t i = 0; i < half; ++i) {
          const double angle =
              static_cast<double>(t) * table.inverse_frequency[static_cast<size_t>(i)];
          const double cosine = table.magnitude * std::cos(angle);
          const double sine = table.magnitude * std::sin(angle);
          float& a = x[halves ? i : 2 * i];
          float& b = x[halves ? i + half : 2 * i + 1];
          const double first = a, second = b;
          a = static_cast<float>(first * cosine - second * sine);
          b = static_cast<float>(second * cosine + first * sine);
        }
      }
  }
  void compute(const StoreKv& o) {
    cache_[static_cast<size_t>(o.layer)] = {row(o.k), row(o.v), o.kv_heads * o.head_dim};
  }

  // Scores lie [token][head][position].
  float* scores_of(ValueId id, int64_t heads, int64_t token, int64_t head) {
    return row(id).data() + (token * heads + head) * tokens();
  }
  int64_t heads_of(ValueId id) {
    return static_cast<int64_t>(row(id).size()) / (tokens() * tokens());
  }
  void compute(const Scores& o) {
    row(o.out).assign(static_cast<size_t>(tokens() * o.keys.heads * tokens()), 0.0f);
    const Cache& cache = cache_[static_cast<size_t>(o.keys.layer)];
    for (int64_t t = 0; t < tokens(); ++t)
      for (int64_t h = 0; h < o.keys.heads; ++h)
        for (int64_t p = 0; p < tokens(); ++p) {
          const float* q = row(o.q).data() + (t * o.keys.heads + h) * o.keys.head_dim;
          const float* k = cache.k.data() + p * cache.width +
                           h / (o.keys.heads / o.keys.kv_heads) * o.keys.head_dim;
          scores_of(o.out, o.keys.heads, t, h)[p] =
              o.scale * product(q, Floats(k, k + o.keys.head_dim));
        }
  }
  void compute(const Mask& o) {
    const int64_t heads = heads_of(o.in);
    for (int64_t t = 0; t < tokens(); ++t)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t p = 0; p < tokens(); ++p)
          if (o.kind == MaskKind::causal ? p > t : p <= t - o.window)
            scores_of(o.out, heads, t, h)[p] = -INFINITY;
  }
  void compute(const Softmax& o) {
    const int64_t heads = heads_of(o.in);
    for (int64_t t = 0; t < tokens(); ++t)
      for (int64_t h = 0; h < heads; ++h) {
        float* x = scores_of(o.out, heads, t, h);
        double top = *std::max_element(x, x + tokens()), sum = 0;
        if (o.sinks != nullptr) {
          top = std::max(top, double{o.sinks[h]});
          sum = std::exp(double{o.sinks[h]} - top);
        }
        for (int64_t p = 0; p < tokens(); ++p) sum += std::exp(double{x[p]} - top);
        for (int64_t p = 0; p < tokens(); ++p)
          x[p] = static_cast<float>(std::exp(double{x[p]} - top) / sum);
      }
  }
  void compute(const WeighValues& o) {
    Floats& out = fresh(o.out);
    const KvRead& kv = o.values;
    const Cache& cache = cache_[static_cast<size_t>(kv.layer)];
    for (int64_t t = 0; t < tokens(); ++t)
      for (int64_t h = 0; h < kv.heads; ++h)
        for (int64_t i = 0; i < kv.head_dim; ++i) {
          const float* v = cache.v.data() + h / (kv.heads / kv.kv_heads) * kv.head_dim + i;
          double sum = 0;
          for (int64_t p = 0; p < tokens(); ++p)
            sum += double{scores_of(o.in, kv.heads, t, h)[p]} * double{v[p * cache.width]};
          out[static_cast<size_t>((t * kv.heads + h) * kv.head_dim + i)] = static_cast<float>(sum);
        }
  }
  void compute(const GatherOutputs& o) { row(o.out) = row(o.in); }
  void compute(const Attention&) { FAIL() << "the graph is no longer as it was written"; }
  void compute(const Route&) { FAIL() << "experts are not interpreted"; }
  void compute(const ExpertMatmul&) { FAIL() << "experts are not interpreted"; }
  void compute(const GatedExperts&) { FAIL() << "the graph is no longer as it was written"; }
  void compute(const CombineExperts&) { FAIL() << "experts are not interpreted"; }

  const Graph& graph_;
  std::vector<int32_t> ids_;
  std::vector<Floats> rows_;
  std::map<size_t, Cache> cache_;
};

}  // namespace optima::graph
