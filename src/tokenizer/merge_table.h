// The merges of a byte-level BPE vocabulary and the merging of one piece.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/vocabulary.h"

namespace optima::tokenizer {

class MergeTable {
 public:
  // Each merge is "left right"; earlier ones win. A merge that names a token which the vocabulary
  // lacks is a format error.
  static Result<MergeTable> create(std::span<const std::string_view> merges,
                                   const Vocabulary& vocabulary);

  struct Pair {
    std::string_view left, right;
  };
  // As tokenizer.json has them: of two equal pairs the later one counts, and the right part's first
  // `prefix_bytes` bytes (the mark of a subword that goes on) are not in the merged token.
  static Result<MergeTable> create(std::span<const Pair> merges, size_t prefix_bytes,
                                   const Vocabulary& vocabulary);

  struct Merge {
    int32_t left = -1, right = -1;
    int32_t rank = 0;
    int32_t merged = 0;
  };
  // Of merges that are ids already; of two equal pairs the first counts. Several pairs may have one
  // rank: then the leftmost goes first.
  static MergeTable create(std::span<const Merge> merges);

  // Memory of merge(), kept between the pieces of one text.
  struct Scratch {
    struct Symbol {
      int32_t id;
      int32_t previous, next;  // -1 = none
      int32_t length;          // starting symbols it covers; 0 = merged into its left neighbour
    };
    struct Candidate {
      int32_t rank;
      int32_t left;    // symbol
      int32_t length;  // of both symbols together; differs = the candidate is stale
      int32_t merged;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  // Replaces ids[first, end) by what merging makes of them: always the merge of the lowest rank,
  // of equal ranks the leftmost. O(n log n).
  void merge(std::vector<int32_t>& ids, size_t first, Scratch& scratch) const;

 private:
  size_t slot_of(int32_t left, int32_t right) const;
  enum class Equal : uint8_t { first_counts, last_counts };
  void insert(const Merge& merge, Equal equal);
  // Appends the pair that begins at `left` to the heap's memory if it is a merge.
  bool append_candidate(int32_t left, Scratch& scratch) const;

  std::vector<Merge> slots_;  // open addressing; left -1 = free
};

}  // namespace optima::tokenizer
