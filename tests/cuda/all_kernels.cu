// Every kernel for the types that a backend keeps activations in, for nvcc alone. And one that says
// every word of ce.h, so that its nvcc half is compiled too where no kernel uses a word yet.
#include "kernels/attention/decode_attention.cuh"
#include "kernels/elementwise/activation.cuh"
#include "kernels/embed/embed.cuh"
#include "kernels/kv_store/kv_store.cuh"
#include "kernels/layer_norm/layer_norm.cuh"
#include "kernels/rms_norm/rms_norm.cuh"
#include "kernels/rope/rope.cuh"

namespace optima::kernels::cuda {

template ce::Status rms_norm(const RmsNormArgs<ce::Half>&, ce::Stream);
template ce::Status rms_norm(const RmsNormArgs<ce::Bf16>&, ce::Stream);
template ce::Status layer_norm(const LayerNormArgs<ce::Half>&, ce::Stream);
template ce::Status layer_norm(const LayerNormArgs<ce::Bf16>&, ce::Stream);
template ce::Status rope(const RopeArgs<ce::Half>&, RopePairs, ce::Stream);
template ce::Status rope(const RopeArgs<ce::Bf16>&, RopePairs, ce::Stream);
template ce::Status act(const ActArgs<ce::Half>&, Act, ce::Stream);
template ce::Status act(const ActArgs<ce::Bf16>&, Act, ce::Stream);
template ce::Status gated_act(const GatedActArgs<ce::Half>&, ce::Stream);
template ce::Status gated_act(const GatedActArgs<ce::Bf16>&, ce::Stream);
template ce::Status embed(const EmbedArgs<ce::Half>&, WeightType, ce::Stream);
template ce::Status embed(const EmbedArgs<ce::Bf16>&, WeightType, ce::Stream);
template ce::Status kv_store(const KvStoreArgs<ce::Half>&, KvType, ce::Stream);
template ce::Status kv_store(const KvStoreArgs<ce::Bf16>&, KvType, ce::Stream);
// Of activations it reads the queries alone, once: one type stands for both.
template ce::Status decode_attention(const DecodeArgs<ce::Half>&, KvType, ce::Stream);

struct EveryWord {
  unsigned* words;  // [threads]
  float* floats;
  int* ints;
};

CE_DEVICE void matrix_words(const EveryWord& to, const ce::Half* tile) {
  unsigned a4[4];
  unsigned a2[2];
  unsigned b1[1];
  float c[4] = {};
  int sums[4] = {};
  ce::ldmatrix(a4, tile);
  ce::ldmatrix(a2, tile);
  ce::ldmatrix(b1, tile);
  ce::mma_f16(c, a4, a2);
  ce::mma_f16(c, a2, b1);
  ce::mma_bf16(c, a4, a2);
  ce::mma_bf16(c, a2, b1);
  ce::mma_s8(sums, a4, a2);
  ce::ldmatrix_transposed(a4, tile);
  ce::ldmatrix_transposed(a2, tile);
  ce::ldmatrix_transposed(b1, tile);
  to.words[0] = a4[0] + a4[3] + a2[0] + b1[0];
  to.floats[0] = c[0] + c[3];
  to.ints[0] = sums[0] + sums[3];
}

CE_GLOBAL(128) every_word_kernel(EveryWord to) {
  CE_SHARED(tile, ce::Half, [128 * 8]);
  CE_DYN_SMEM(dynamic);
  const int lane = ce::lane();
  for (int stage = 0; stage < 2; ++stage) {
    ce::copy_async16(tile + 8 * ce::thread_x(), to.floats + 4 * ce::thread_x(), 16 - stage);
    ce::copy_commit();
  }
  ce::copy_wait<1>();
  ce::copy_wait<0>();
  ce::sync();
  matrix_words(to, tile + 8 * lane);
  const unsigned vote = ce::ballot(ce::kFullMask, lane > 3);
  if (ce::any(ce::kFullMask, vote > 5) && ce::all(ce::kFullMask, vote > 6)) ce::pause();
  float value = ce::shfl(ce::kFullMask, to.floats[lane], 3);
  value += ce::shfl_up(ce::kFullMask, value, 1) + ce::shfl_down(ce::kFullMask, value, 1);
  ce::syncwarp(ce::kFullMask);
  dynamic[ce::thread_x()] = static_cast<unsigned char>(vote);
  const auto pack = ce::load_once<float, 4>(to.floats + 4 * lane);
  ce::atomic_add(to.floats, value + pack.v[3]);
  ce::atomic_add(to.ints, ce::dp4a(to.ints[1], to.ints[2], dynamic[lane]));
  ce::atomic_max(to.ints + 1, 3);
  if (ce::atomic_compare_exchange(to.words, 3u, 4u) == 3u) ce::atomic_exchange(to.words, 5u);
  to.words[1] = ce::atomic_load(to.words);
}

ce::Status every_word(const EveryWord& to, ce::Stream stream) {
  return ce::launch(every_word_kernel, {"every_word", {1}, 128, 64 * 1024, stream}, to);
}

}  // namespace optima::kernels::cuda
