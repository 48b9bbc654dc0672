// Variants of the KV store, best first.
#include "kernels/kv_store/kv_store.h"

namespace optima::kernels {

void kv_store_ref(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);
#if defined(__x86_64__)
namespace avx2 {
void kv_store(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);
}
#endif

Variants<KvStoreFn> kv_store_variants() {
  static constexpr Variant<KvStoreFn> kRows[] = {
#if defined(__x86_64__)
    {"kv_store_avx2", kIsaAvx2, avx2::kv_store},
#endif
    {"kv_store_ref", kIsaNone, kv_store_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
