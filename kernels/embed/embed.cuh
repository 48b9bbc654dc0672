// Rows of the embedding table, dequantised and scaled: out[token] = table[ids[token]] * scale.
//
// The table stays as the file has it. An id outside of it makes its row NaN; no memory outside of
// the table is read.
#pragma once

#include "kernels/cuda/ce.h"
#include "kernels/quant/element.cuh"

namespace optima::kernels::cuda {

template <typename T>
struct EmbedArgs {
  const void* table;  // [vocabulary, width] of a weight type, rows back to back
  int64_t row_bytes;
  int vocabulary;
  const int32_t* ids;  // [tokens]
  T* out;              // [tokens, width], row stride out_stride values
  int64_t out_stride;
  int64_t tokens;
  int width;
  float scale;
};

inline constexpr int kEmbedThreads = 256;

template <typename T, WeightType kType>
CE_GLOBAL(kEmbedThreads)
embed_kernel(EmbedArgs<T> args) {
  const int64_t token = ce::block_x();
  const int id = args.ids[token];
  const bool known = id >= 0 && id < args.vocabulary;
  const char* row = static_cast<const char*>(args.table) + (known ? id : 0) * args.row_bytes;
  T* out = args.out + token * args.out_stride;
  const int step = ce::grid_y() * kEmbedThreads;
  for (int i = ce::block_y() * kEmbedThreads + ce::thread_x(); i < args.width; i += step) {
    out[i] = ce::from_float<T>(known ? row_element<kType>(row, i) * args.scale : NAN);
  }
}

template <typename T, WeightType kType>
ce::Status launch_embed(EmbedArgs<T> args, ce::Stream stream) {
  if (args.tokens == 0) return {};
  args.row_bytes = static_cast<int64_t>(args.width / kBlockValues<kType>) * kBlockBytes<kType>;
  // Four values a thread.
  const int blocks = (args.width + 4 * kEmbedThreads - 1) / (4 * kEmbedThreads);
  const ce::Dim grid = {static_cast<int>(args.tokens), blocks};
  return ce::launch(embed_kernel<T, kType>, {"embed", grid, kEmbedThreads, 0, stream}, args);
}

// row_bytes is set here. The width is a multiple of the type's block.
template <typename T>
ce::Status embed(const EmbedArgs<T>& args, WeightType type, ce::Stream stream) {
  switch (type) {
    case WeightType::f32:
      break;
    case WeightType::f16:
      return launch_embed<T, WeightType::f16>(args, stream);
    case WeightType::bf16:
      return launch_embed<T, WeightType::bf16>(args, stream);
    case WeightType::q4_0:
      return launch_embed<T, WeightType::q4_0>(args, stream);
    case WeightType::q4_1:
      return launch_embed<T, WeightType::q4_1>(args, stream);
    case WeightType::q5_0:
      return launch_embed<T, WeightType::q5_0>(args, stream);
    case WeightType::q5_1:
      return launch_embed<T, WeightType::q5_1>(args, stream);
    case WeightType::q8_0:
      return launch_embed<T, WeightType::q8_0>(args, stream);
    case WeightType::q2_k:
      return launch_embed<T, WeightType::q2_k>(args, stream);
    case WeightType::q3_k:
      return launch_embed<T, WeightType::q3_k>(args, stream);
    case WeightType::q4_k:
      return launch_embed<T, WeightType::q4_k>(args, stream);
    case WeightType::q5_k:
      return launch_embed<T, WeightType::q5_k>(args, stream);
    case WeightType::q6_k:
      return launch_embed<T, WeightType::q6_k>(args, stream);
    case WeightType::iq4_nl:
      return launch_embed<T, WeightType::iq4_nl>(args, stream);
    case WeightType::iq4_xs:
      return launch_embed<T, WeightType::iq4_xs>(args, stream);
    case WeightType::mxfp4:
      return launch_embed<T, WeightType::mxfp4>(args, stream);
  }
  return launch_embed<T, WeightType::f32>(args, stream);
}

}  // namespace optima::kernels::cuda
