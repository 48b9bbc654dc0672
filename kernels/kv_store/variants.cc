// Variants of the KV store, best first.
#include "kernels/kv_store/kv_store.h"

namespace optima::kernels {

void kv_store_ref(const KvStoreArgs& args, int64_t head_begin, int64_t head_end);

Variants<KvStoreFn> kv_store_variants() {
  static constexpr Variant<KvStoreFn> kRows[] = {
      {"kv_store_ref", kIsaNone, kv_store_ref},
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace optima::kernels
