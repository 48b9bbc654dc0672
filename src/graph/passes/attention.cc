// Recognises attention. A chain starts at Scores and goes from reader to reader, each the only one
// of what it reads, up to WeighValues; what it meets on the way fills in the Attention that takes
// the chain's place.
#include <algorithm>
#include <optional>

#include "graph/passes/passes.h"

namespace optima::graph {
namespace {

constexpr int32_t kNoTable = -1;

bool same(const KvRead& a, const KvRead& b) {
  return a.layer == b.layer && a.heads == b.heads && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim;
}

class Recogniser {
 public:
  explicit Recogniser(Graph graph) : graph_(std::move(graph)), readers_(graph_.values.size()) {
    definers_.assign(graph_.values.size(), nullptr);
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      for (const ValueId id : reads(graph_.ops[i])) readers_[static_cast<size_t>(id)].push_back(i);
      for (const ValueId id : defines(graph_.ops[i]))
        definers_[static_cast<size_t>(id)] = &graph_.ops[i];
    }
  }

  Graph run() && {
    std::vector<Op> ops;
    std::vector<bool> replaced(graph_.ops.size(), false);
    std::vector<std::optional<Attention>> found(graph_.ops.size());
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (!std::holds_alternative<Scores>(graph_.ops[i])) continue;
      Chain chain;
      if (!follow(i, chain)) continue;
      for (const size_t op : chain.ops) replaced[op] = true;
      found[chain.ops.back()] = chain.attention;
    }
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (found[i]) {
        ops.emplace_back(*found[i]);
      } else if (!replaced[i]) {
        ops.push_back(std::move(graph_.ops[i]));
      }
    }
    graph_.ops = std::move(ops);
    return std::move(graph_);
  }

 private:
  struct Chain {
    Attention attention{};
    std::vector<size_t> ops;
    bool causal = false;
    bool normalised = false;
  };

  // The one operation that reads a value; none when there are more.
  std::optional<size_t> reader(ValueId id) const {
    const std::vector<size_t>& all = readers_[static_cast<size_t>(id)];
    return all.size() == 1 ? std::optional(all.front()) : std::nullopt;
  }

  bool follow(size_t start, Chain& chain) const {
    const auto& scores = std::get<Scores>(graph_.ops[start]);
    if (reader(scores.q) != start || !find_rope(scores, start, chain.attention)) return false;
    chain.attention.q = scores.q;
    chain.attention.kv = scores.keys;
    chain.attention.scale = scores.scale;
    chain.ops = {start};
    ValueId at = scores.out;
    while (true) {
      const std::optional<size_t> next = reader(at);
      if (!next) return false;
      const Op& op = graph_.ops[*next];
      chain.ops.push_back(*next);
      if (const auto* values = std::get_if<WeighValues>(&op)) return end(*values, chain);
      const bool taken = std::visit([&](const auto& o) { return take(o, chain); }, op);
      if (!taken) return false;
      at = defines(op).front();
    }
  }

  // The cap comes before the masks: it would make a number of minus infinity.
  static bool take(const Softcap& op, Chain& chain) {
    if (chain.causal || chain.attention.window > 0 || chain.normalised) return false;
    if (chain.attention.softcap > 0) return false;
    chain.attention.softcap = op.cap;
    return true;
  }
  static bool take(const Mask& op, Chain& chain) {
    if (chain.normalised) return false;
    if (op.kind == MaskKind::causal) {
      chain.causal = true;
    } else {
      const int64_t other = chain.attention.window;
      chain.attention.window = other > 0 ? std::min(other, op.window) : op.window;
    }
    return true;
  }
  static bool take(const Softmax& op, Chain& chain) {
    if (chain.normalised) return false;
    chain.normalised = true;
    chain.attention.sinks = op.sinks;
    return true;
  }
  template <typename Other>
  static bool take(const Other&, Chain&) {
    return false;
  }

  static bool end(const WeighValues& op, Chain& chain) {
    if (!chain.normalised || !same(op.values, chain.attention.kv)) return false;
    if (!chain.causal && chain.attention.window > 0) return false;
    chain.attention.mask =
        chain.causal ? kernels::AttentionMask::causal : kernels::AttentionMask::all;
    chain.attention.out = op.out;
    return true;
  }

  // The layer's keys are stored once, before they are read, and rotated as the queries are.
  bool find_rope(const Scores& scores, size_t at, Attention& out) const {
    const StoreKv* stored = nullptr;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const auto* store = std::get_if<StoreKv>(&graph_.ops[i]);
      if (store == nullptr || store->layer != scores.keys.layer) continue;
      if (stored != nullptr || i > at) return false;
      stored = store;
    }
    if (stored == nullptr || stored->kv_heads != scores.keys.kv_heads ||
        stored->head_dim != scores.keys.head_dim)
      return false;
    out.rope = table_of(scores.q);
    return table_of(stored->k) == out.rope;
  }

  int32_t table_of(ValueId id) const {
    const Op* op = definers_[static_cast<size_t>(id)];
    const auto* rope = op != nullptr ? std::get_if<Rope>(op) : nullptr;
    return rope != nullptr ? rope->table : kNoTable;
  }

  Graph graph_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<const Op*> definers_;
};

}  // namespace

Graph recognise_attention(Graph graph) {
  return Recogniser(std::move(graph)).run();
}

}  // namespace optima::graph
