// See batch.h.
#include "engine/batch.h"

#include <algorithm>

namespace optima::engine {
namespace {

// KV that attention reads for tokens [first, first + tokens): a page once per chunk.
int64_t kv_bytes_read(const KvLayout& layout, int64_t first, int64_t tokens) {
  int64_t bytes = 0;
  for (size_t layer = 0; layer < layout.places.size(); ++layer) {
    const int64_t window = layout.groups[static_cast<size_t>(layout.places[layer].group)].window;
    const int64_t before = window > 0 ? std::min(first, window - 1) : first;
    bytes += (before + tokens) * layout.bytes_per_position[layer];
  }
  return bytes;
}

}  // namespace

void PackedBatch::clear() {
  sequences_.clear();
  scored_.clear();
  token_ids_.clear();
  positions_.clear();
  page_lists_.clear();
  runs_.clear();
}

void PackedBatch::add(RequestImpl& request, int64_t tokens) {
  const SessionImpl& session = *request.session();
  const int64_t first = session.table_.length();
  const auto row_begin = static_cast<int64_t>(token_ids_.size());
  const auto drafts = static_cast<int64_t>(request.drafts().size());
  runs_.push_back({row_begin, tokens + drafts, first, session.context_tokens(), {}});
  const auto* own = session.tokens_.data() + first;
  token_ids_.insert(token_ids_.end(), own, own + tokens);
  token_ids_.insert(token_ids_.end(), request.drafts().begin(), request.drafts().end());
  for (int64_t i = 0; i < tokens + drafts; ++i)
    positions_.push_back(static_cast<int32_t>(first + i));
  for (size_t group = 0; group < session.runner().layout.groups.size(); ++group)
    page_lists_.push_back(session.table_.pages(group).data());
  const size_t scored_begin = scored_.size();
  request.collect_scored_rows(static_cast<int32_t>(row_begin), tokens + drafts, scored_);
  sequences_.push_back({&request,
                        tokens + drafts,
                        drafts,
                        scored_begin,
                        scored_.size(),
                        kv_bytes_read(session.runner().layout, first, tokens + drafts),
                        {}});
}

graph::Batch PackedBatch::view() {
  output_rows_.clear();
  for (const ScoredRow& row : scored_) output_rows_.push_back(row.batch_row);
  const size_t groups = runs_.empty() ? 0 : page_lists_.size() / runs_.size();
  for (size_t s = 0; s < runs_.size(); ++s)
    runs_[s].pages = std::span(page_lists_).subspan(s * groups, groups);
  return {token_ids_, positions_, runs_, output_rows_};
}

}  // namespace optima::engine
