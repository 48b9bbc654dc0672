// The kernels a CPU runner uses: one function per operation, chosen once.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/isa.h"
#include "kernels/kv_store/kv_store.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/matmul/matmul.h"
#include "kernels/moe_route/moe_route.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/vocabulary/vocabulary.h"

namespace optima::backend::cpu {

struct KernelTable {
  kernels::RmsNormFn rms_norm;
  kernels::LayerNormFn layer_norm;
  kernels::RopeFn rope;
  kernels::AddFn add;
  kernels::MulFn mul;
  kernels::AddBiasFn add_bias;
  kernels::GatedActFn gated_act;
  kernels::ActFn act;
  kernels::SoftcapFn softcap;
  kernels::MoeRouteFn moe_route;
  kernels::ScaleFn scale;
  kernels::ArgmaxFn argmax;
  kernels::VocabularyKernel vocabulary;
  kernels::KvStoreFn kv_store;
  kernels::QuantiseRowsFn quantise_rows;
  kernels::MatmulKernel matmul;
  kernels::RowSums row_sums;
  kernels::AttentionKernel attention;
  const kernels::AttentionSplitKernel* attention_split;  // null: few tokens run like many
};

// The fastest rows that the CPU has (KV of any type, int8 activations).
KernelTable fast_kernels();
// The same, but no result depends on what is computed beside it.
KernelTable deterministic_kernels();
// Plain loops (f32 KV, fp32 activations).
KernelTable reference_kernels();

}  // namespace optima::backend::cpu
