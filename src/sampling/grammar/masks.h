// Which tokens may follow a set of stacks. Kept for each set; and for each top of a stack alone,
// whatever lies below: the free text of a string is the same in every property.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "sampling/grammar/stacks.h"
#include "sampling/grammar/token_table.h"

namespace optima::sampling::grammar {

class Masks {
 public:
  Masks(Stacks& stacks, const TokenTable& tokens, const Limits& limits)
      : stacks_(stacks), tokens_(tokens), limits_(limits) {}

  // `set` is one that a step or start() gave. Fails when a limit is reached on the way.
  Result<std::shared_ptr<const TokenMask>> of(SetId set);
  int64_t memory_bytes() const { return memory_; }

 private:
  // What is known of a top without what lies below.
  struct Local {
    TokenMask mask;                // tokens read whole before the top returns
    std::vector<uint32_t> leaves;  // nodes of the trie at which it may have returned
  };

  TokenMask empty_mask() const {
    return {std::vector<uint64_t>((static_cast<size_t>(tokens_.size()) + 63) / 64)};
  }
  void walk(uint32_t root, SetId set, TokenMask& mask, std::vector<uint32_t>* leaves);
  const Local& local(SetId top);
  void add_entry(const Entry& entry, TokenMask& mask, int64_t& exact_up_to);
  bool reads(SetId set, int32_t token);

  Stacks& stacks_;
  const TokenTable& tokens_;
  const Limits limits_;
  std::unordered_map<SetId, Local> locals_;
  std::unordered_map<SetId, std::shared_ptr<const TokenMask>> masks_;
  std::vector<SetId> path_;
  int64_t memory_ = 0;
};

}  // namespace optima::sampling::grammar
