// Attention as its formula says, one query row at a time: logits, largest logit, weights, sum.
// Everything is in double and the logits are computed twice instead of being kept, so that scratch
// does not grow with the context.
#include <math.h>

#include "kernels/attention/attention.h"
#include "kernels/half.h"

namespace optima::kernels {
namespace {

constexpr double kMinusInfinity = -static_cast<double>(INFINITY);

// One query head of one token against the positions [begin, end) of its kv head.
struct RowView {
  const AttentionArgs& args;
  const float* q;
  int64_t kv_head;
  int64_t begin;
  int64_t end;
  double sink;  // -inf where there is none
};

struct SoftmaxSums {
  double max;
  double sum;  // Σ exp(logit - max), the sink's share included
};

double widen(float value) {
  return static_cast<double>(value);
}
double widen(uint16_t bits) {
  return static_cast<double>(half_to_float(bits));
}

double widen(Bf16 value) {
  return static_cast<double>(bf16_to_float(value.bits));
}
double widen(int8_t value) {
  return static_cast<double>(value);
}

// Element `i` of K or V, multiplied by scale `scale` of those that follow it in q8_0.
template <typename Element>
double element(const Element* half, int64_t head_dim, int64_t i, int64_t scale) {
  const double value = widen(half[i]);
  if (sizeof(Element) > 1) return value;
  const auto* scales = reinterpret_cast<const uint16_t*>(half + kPageTokens * head_dim);
  return value * widen(scales[scale]);
}

template <typename Element>
const Element* key_slot(const RowView& row, int64_t page) {
  const int64_t offset = row.args.slot_offset + row.kv_head * row.args.slot_stride;
  return reinterpret_cast<const Element*>(row.args.pages[page] + offset);
}
template <typename Element>
double key(const Element* k, int64_t head_dim, int64_t d, int64_t t) {
  return element(k, head_dim, d * kPageTokens + t, d / kKvBlockDims * kPageTokens + t);
}
template <typename Element>
double value(const Element* v, int64_t head_dim, int64_t t, int64_t d) {
  return element(v, head_dim, t * head_dim + d, t * kv_blocks(head_dim) + d / kKvBlockDims);
}

// Logits of all 16 tokens of a page, whether the row may see them or not.
template <typename Element>
void page_logits(const RowView& row, int64_t page, double* logits) {
  const Element* k = key_slot<Element>(row, page);
  for (int64_t t = 0; t < kPageTokens; ++t) logits[t] = 0;
  const int64_t head_dim = row.args.head_dim;
  for (int64_t d = 0; d < head_dim; ++d) {
    const double q = static_cast<double>(row.q[d]);
    for (int64_t t = 0; t < kPageTokens; ++t) logits[t] += q * key(k, head_dim, d, t);
  }
  const double softcap = static_cast<double>(row.args.softcap);
  for (int64_t t = 0; t < kPageTokens; ++t) {
    logits[t] *= static_cast<double>(row.args.scale);
    if (softcap > 0) logits[t] = softcap * tanh(logits[t] / softcap);
  }
}

int64_t at_least(int64_t a, int64_t b) {
  return a > b ? a : b;
}
int64_t at_most(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Fills acc [head_dim] with Σ exp(logit - max) · V. A row that sees nothing leaves zeros; NaN
// logits leave NaN.
template <typename Element>
SoftmaxSums attend(const RowView& row, double* acc) {
  const int64_t head_dim = row.args.head_dim;
  for (int64_t d = 0; d < head_dim; ++d) acc[d] = 0;
  SoftmaxSums sums = {row.sink, row.sink == kMinusInfinity ? 0.0 : 1.0};
  if (row.begin >= row.end) return sums;
  const int64_t first_page = row.begin / kPageTokens;
  const int64_t last_page = (row.end - 1) / kPageTokens;
  double logits[kPageTokens];
  for (int64_t page = first_page; page <= last_page; ++page) {
    page_logits<Element>(row, page, logits);
    const int64_t base = page * kPageTokens;
    for (int64_t t = at_least(row.begin - base, 0); t < at_most(row.end - base, 16); ++t) {
      if (logits[t] > sums.max || isnan(logits[t])) sums.max = logits[t];
    }
  }
  if (row.sink != kMinusInfinity) sums.sum = exp(row.sink - sums.max);
  for (int64_t page = first_page; page <= last_page; ++page) {
    page_logits<Element>(row, page, logits);
    const unsigned char* slot = key_slot<unsigned char>(row, page);
    const auto* v =
        reinterpret_cast<const Element*>(slot + kv_half_bytes(row.args.kv_type, head_dim));
    const int64_t base = page * kPageTokens;
    for (int64_t t = at_least(row.begin - base, 0); t < at_most(row.end - base, 16); ++t) {
      // exp(-inf - -inf) would be NaN: a masked logit weighs nothing, whatever the largest is.
      if (logits[t] == kMinusInfinity) continue;
      const double weight = exp(logits[t] - sums.max);
      sums.sum += weight;
      for (int64_t d = 0; d < head_dim; ++d) acc[d] += weight * value(v, head_dim, t, d);
    }
  }
  return sums;
}

SoftmaxSums attend_any(const RowView& row, double* acc) {
  switch (row.args.kv_type) {
    case KvType::f32:
      return attend<float>(row, acc);
    case KvType::f16:
      break;
    case KvType::bf16:
      return attend<Bf16>(row, acc);
    case KvType::q8_0:
      return attend<int8_t>(row, acc);
  }
  return attend<uint16_t>(row, acc);
}

RowView row_view(const AttentionArgs& args, int64_t token, int64_t head) {
  const int64_t position = args.first_position + token;
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const bool causal = args.mask == AttentionMask::causal;
  const int64_t end = causal ? position + 1 : args.first_position + args.tokens;
  const int64_t begin = causal && args.window > 0 ? at_least(position - args.window + 1, 0) : 0;
  const double sink =
      args.sinks == nullptr ? kMinusInfinity : static_cast<double>(args.sinks[head]);
  return {args, args.q + token * args.q_stride + head * args.head_dim, kv_head, begin, end, sink};
}

void run_row(const AttentionArgs& args, int64_t token, int64_t head, double* acc) {
  const SoftmaxSums sums = attend_any(row_view(args, token, head), acc);
  float* out = args.out + token * args.out_stride + head * args.head_dim;
  for (int64_t d = 0; d < args.head_dim; ++d) {
    out[d] = sums.sum == 0 ? 0.0f : static_cast<float>(acc[d] / sums.sum);
  }
}

size_t scratch_bytes(int64_t /*heads*/, int64_t /*kv_heads*/, int64_t head_dim) {
  return static_cast<size_t>(head_dim) * sizeof(double);
}

void run_items(const AttentionArgs& args, int64_t begin, int64_t end, void* scratch) {
  double* acc = static_cast<double*>(scratch);
  const int64_t group = args.heads / args.kv_heads;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t kv_head = item % args.kv_heads;
    const int64_t first = item / args.kv_heads * kQueryBlock;
    for (int64_t token = first; token < at_most(first + kQueryBlock, args.tokens); ++token) {
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        run_row(args, token, head, acc);
      }
    }
  }
}

}  // namespace

const AttentionKernel kAttentionReference = {run_items, scratch_bytes};

}  // namespace optima::kernels
