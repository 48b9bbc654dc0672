// Variants of the KV store, best first.
#include "kernels/kv_store/kv_store.h"

namespace optima::kernels {

void kv_store_ref(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);
namespace avx2 {
void kv_store(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);
}
namespace neon {
void kv_store(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);
}

Variants<KvStoreFn> kv_store_variants() {
  static constexpr auto kRows = rows_here<KvStoreFn>({
      {"kv_store_avx2", kIsaAvx2, avx2::kv_store},
      {"kv_store_neon", kIsaNeon, neon::kv_store},
      {"kv_store_ref", kIsaNone, kv_store_ref},
  });
  return kRows.variants();
}

}  // namespace optima::kernels
