// KV pages seen from outside (optima_unstable.h): what they are held for, and what is known of
// them.

#include <algorithm>

#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/structs.h"

using namespace optima::abi;
using optima::Code;
using optima::Status;

namespace {

constexpr size_t kKvEventsMax = 256;  // taken at a time

optima_kv_event describe(const optima::kv::KvEvent& of) {
  optima_kv_event event{};
  event.type = static_cast<optima_kv_event_type>(of.type);
  event.hash = of.hash;
  event.parent = of.parent;
  std::copy(of.tokens.begin(), of.tokens.end(), event.tokens);
  event.group = of.group;
  return event;
}

}  // namespace

optima_status optima_kv_audit(optima_engine* engine, optima_kv_audit_report* out,
                              optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(engine));
    OPTIMA_TRY(check_out("out", out));
    const optima::kv::AuditReport found = box->engine->audit_kv();
    optima_kv_audit_report report{};
    report.pages_total = found.pages_total;
    report.pages_free = found.pages_free;
    report.pages_open = found.pages_open;
    report.pages_sealed = found.pages_sealed;
    report.pages_cached = found.pages_cached;
    report.references = found.references;
    report.leaked = found.leaked;
    report.mis_retained = found.mis_retained;
    report.miscounted = found.miscounted;
    report.inconsistent = found.inconsistent;
    write_struct(out, report);
    return {};
  });
}

optima_status optima_kv_events_poll(optima_engine* engine, optima_kv_event* events, size_t capacity,
                                    size_t event_size, size_t* count, uint64_t* lost,
                                    optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (count != nullptr) *count = 0;
    if (lost != nullptr) *lost = 0;
    OPTIMA_ASSIGN(const auto box, enter(engine));
    if (count == nullptr) return Status(Code::invalid_argument, "count: NULL");
    OPTIMA_TRY(check_array("events", events, capacity, sizeof(optima_kv_event)));
    const auto size = static_cast<uint32_t>(std::min<size_t>(event_size, UINT32_MAX));
    OPTIMA_TRY(check_size("event_size", size, kSizeMin<optima_kv_event>));
    std::vector<optima::kv::KvEvent> taken(std::min(capacity, kKvEventsMax));
    while (*count < capacity) {
      const size_t room = std::min(taken.size(), capacity - *count);
      OPTIMA_ASSIGN(const auto got, box->engine->take_kv_events(std::span(taken).first(room)));
      if (lost != nullptr) *lost += got.lost;
      for (size_t i = 0; i < got.count; ++i) {
        auto* out = reinterpret_cast<unsigned char*>(events) + (*count)++ * size;
        write_struct(reinterpret_cast<optima_kv_event*>(out), size, describe(taken[i]));
      }
      if (got.count < room) break;
    }
    return {};
  });
}
