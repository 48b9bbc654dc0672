// A sequence's tokens and KV as a stream of bytes, to be continued later or elsewhere.
//
// The stream, little-endian: magic "OPTIMAKV", version, then sections of {kind, bytes, payload,
// XXH3-64 of all three}: one `identity`, one `tokens`, one `pages` for each KV group, one `end`.
// Nothing in it is believed before its checksum has been compared, and no size before it equals
// what the reader expects; the checksum finds damage, not malice: a stream is as trustworthy as the
// place that it comes from, and what is read is never shared with other sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kv/page_table.h"

namespace optima::kv {

inline constexpr uint32_t kSnapshotVersion = 1;

// What the KV belongs to: equal, or it cannot be used.
struct SnapshotIdentity {
  uint64_t model = 0;  // fingerprint of the weights
  uint32_t kv_type = 0;
  uint64_t rotation = 0;  // of what the rotary frequencies depend on beside the model; 0 = nothing
};

// Exactly `bytes` bytes; false = I/O error.
using SnapshotWrite = std::function<bool(const void* from, int64_t bytes)>;
using SnapshotRead = std::function<bool(void* into, int64_t bytes)>;

// Zeroes the positions [from, kPageTokens) of a copy of a group's page: a page may still hold what
// was there before its tokens, perhaps of somebody else.
using ClearPositions = std::function<void(size_t group, int64_t from, unsigned char* page)>;

// Bytes of the stream that write_snapshot() makes.
int64_t snapshot_bytes(const PageTable& table, int64_t tokens);

// `tokens`: those of the sequence, at least table.length() of them. Fails with `io`.
Status write_snapshot(const SnapshotIdentity& identity, std::span<const int32_t> tokens,
                      const PageTable& table, const ClearPositions& clear,
                      const SnapshotWrite& write);

struct SnapshotLimits {
  int64_t tokens_max = 0;  // context_full beyond
  int32_t vocabulary = 0;  // ids are below it
};

// Fills an empty table and returns the tokens. Errors: `io`; `format` for what is no snapshot or is
// damaged; `version` for another version, and for another model or KV type with both values;
// `context_full`; `oom_host`. The table is then empty. `table_mutex` (may be null) is held while
// the table changes, not while the reader reads.
Result<std::vector<int32_t>> read_snapshot(const SnapshotIdentity& identity,
                                           const SnapshotLimits& limits, PageTable& table,
                                           const SnapshotRead& read,
                                           std::mutex* table_mutex = nullptr);

}  // namespace optima::kv
