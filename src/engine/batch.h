// Schedule -> flat batch: token ids, positions and page lists of the sequences that run in one
// turn, and the rows to score. Buffers are kept between turns, so that decoding allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request_impl.h"
#include "graph/batch.h"
#include "scheduler/scheduler.h"

namespace optima::engine {

struct PackedSequence {
  RequestImpl* request = nullptr;
  int64_t tokens = 0;
  int64_t drafts = 0;                       // of them, guesses
  size_t scored_begin = 0, scored_end = 0;  // into PackedBatch::scored
  int64_t kv_bytes_read = 0;                // by attention, over all layers
  Status failure;  // of this request alone: its grammar, its hook, its logits
};

class PackedBatch {
 public:
  // Adds the next `tokens` tokens of the request's session and its drafts; the pages of all must be
  // reserved.
  void add(RequestImpl& request, int64_t tokens);
  void clear();
  bool empty() const { return sequences_.empty(); }

  const std::vector<PackedSequence>& sequences() const { return sequences_; }
  std::vector<PackedSequence>& sequences() { return sequences_; }
  const std::vector<ScoredRow>& scored() const { return scored_; }
  // Valid until the next add() or clear().
  graph::Batch view();

 private:
  std::vector<PackedSequence> sequences_;
  std::vector<ScoredRow> scored_;
  std::vector<int32_t> token_ids_, positions_, output_rows_;
  std::vector<unsigned char* const*> page_lists_;  // [sequence][group]
  std::vector<graph::SequenceRun> runs_;
};

}  // namespace optima::engine
