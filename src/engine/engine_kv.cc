// What the engine tells of its KV pages. The turn is in engine.cc.
#include <algorithm>

#include "base/text.h"
#include "engine/engine_impl.h"

namespace optima::engine {

// Tokens behind a table's length whose KV is being computed, or is there and not yet published.
int64_t EngineImpl::tokens_in_flight(const kv::PageTable& table) const {
  for (const PackedSequence& sequence : batch_.sequences()) {
    const SessionImpl* session = sequence.request->session();
    if (session != nullptr && &session->table_ == &table) return sequence.tokens;
  }
  for (const auto& request : active_)
    if (&request->session()->table_ == &table) return request->chosen_with_kv();
  for (const auto& request : active_)
    if (const SessionImpl* draft = request->session()->draft();
        draft != nullptr && &draft->table_ == &table)
      return request->draft_tokens_in_flight();
  return 0;
}

// Under the hub's lock no session's table changes, and under that of the list none comes or goes:
// what the tables and then the pool say is of one moment.
kv::AuditReport EngineImpl::audit_kv() {
  kv::AuditReport report;
  {
    const std::lock_guard lock(hub_->mutex);
    const std::lock_guard list_lock(hub_->tables.mutex());
    std::vector<kv::TableView> views;
    for (const kv::PageTable* table : hub_->tables.tables())
      views.push_back(table->view(tokens_in_flight(*table)));
    report = kv::audit(pages_->view(), views);
    ++hub_->metrics.kv_audits;
    hub_->metrics.kv_audit_faults += static_cast<uint64_t>(report.faults());
  }
  if (report.faults() > 0) log(LogLevel::error, text("KV audit: ", report.text()));
  return report;
}

Result<kv::KvEventsTaken> EngineImpl::take_kv_events(std::span<kv::KvEvent> out) {
  if (options_.kv_events == 0)
    return Status(Code::invalid_state, "the engine was made without kv_events: none are recorded");
  return pages_->take_events(out);
}

}  // namespace optima::engine
