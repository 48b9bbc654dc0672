// optima_cancel: a latch. Triggering is one atomic store on memory that the handle keeps alive, so
// that a signal handler may do it.

#include "abi/guard.h"
#include "abi/handle.h"

using namespace optima::abi;

optima_status optima_cancel_create(optima_cancel** out, optima_error** err) noexcept {
  return guard(err, [&]() -> optima::Status {
    if (out == nullptr) return optima::Status(optima::Code::invalid_argument, "out: NULL");
    *out = nullptr;
    *out = new optima_cancel(std::make_shared<optima::engine::CancelFlag>());
    return {};
  });
}

optima_status optima_cancel_trigger(const optima_cancel* cancel) noexcept {
  return guard(Fallback<optima_status>{OPTIMA_E_INTERNAL}, [&]() -> optima_status {
    if (!live(cancel)) return OPTIMA_E_ARG;
    cancel->flag->trigger();
    return OPTIMA_OK;
  });
}

int32_t optima_cancel_triggered(const optima_cancel* cancel) noexcept {
  return guard(Fallback<int32_t>{0},
               [&]() -> int32_t { return live(cancel) && cancel->flag->triggered() ? 1 : 0; });
}

void optima_cancel_destroy(optima_cancel* cancel) noexcept {
  guard([&] {
    if (live(cancel) && cancel->magic.exchange(0) == optima_cancel::kMagic) delete cancel;
  });
}
