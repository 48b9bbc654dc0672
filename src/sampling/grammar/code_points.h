// Sets of Unicode code points as sorted, disjoint ranges. Surrogates are no members: they cannot be
// written in UTF-8.
#pragma once

#include <cstdint>
#include <vector>

namespace optima::sampling::grammar {

struct CodePointRange {
  uint32_t low, high;  // both included
  bool operator==(const CodePointRange&) const = default;
};

constexpr uint32_t kCodePointMax = 0x10FFFF;

class CodePointSet {
 public:
  CodePointSet() = default;
  // In any order, overlapping or not.
  explicit CodePointSet(std::vector<CodePointRange> ranges);
  static CodePointSet of(uint32_t code_point) { return CodePointSet({{code_point, code_point}}); }
  static CodePointSet all() { return CodePointSet({{0, kCodePointMax}}); }

  const std::vector<CodePointRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t code_point) const;
  CodePointSet complement() const;
  CodePointSet united(const CodePointSet& other) const;
  CodePointSet intersected(const CodePointSet& other) const;
  bool operator==(const CodePointSet&) const = default;

 private:
  std::vector<CodePointRange> ranges_;
};

}  // namespace optima::sampling::grammar
