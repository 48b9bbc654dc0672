// Automata over code points: what a pattern, a format or a set of names says about a text. They are
// combined as such, and turned into a network over bytes at the end, as plain UTF-8 or as the
// inside of a JSON string, in which every character may also be written as an escape.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sampling/grammar/code_points.h"
#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

constexpr int64_t kAutomatonStatesMax = 20000;
constexpr int64_t kAutomatonEdgesMax = 400000;

// Non-deterministic, without empty moves; state 0 is the start.
struct TextAutomaton {
  struct Edge {
    CodePointSet set;
    uint32_t target;
  };
  struct State {
    std::vector<Edge> edges;
    bool final = false;
  };
  std::vector<State> states;

  bool matches(std::string_view text) const;  // false for text that is no UTF-8
};

TextAutomaton any_text();
TextAutomaton literal_text(std::string_view text);  // UTF-8
// All texts that are none of these.
TextAutomaton other_than(const std::vector<std::string>& texts);
Result<TextAutomaton> intersection(const TextAutomaton& a, const TextAutomaton& b);
Result<TextAutomaton> complement(const TextAutomaton& automaton);
// Those of its texts that have min to max code points.
Result<TextAutomaton> of_length(const TextAutomaton& automaton, int64_t min, int64_t max);
bool is_empty(const TextAutomaton& automaton);

enum class TextEncoding : uint8_t {
  utf8,
  json,        // every character may be an escape
  json_plain,  // printable ASCII only where it must or often is: quotation mark, backslash, slash
};

// Writes code points as bytes into a network.
class TextWriter {
 public:
  TextWriter(Builder& builder, TextEncoding encoding) : builder_(builder), encoding_(encoding) {}

  void set(StateId from, const CodePointSet& set, StateId to);
  void literal(StateId from, std::string_view text, StateId to);
  void automaton(StateId from, const TextAutomaton& automaton, StateId to);

 private:
  struct ByteRange {
    uint8_t low, high;
  };
  using Choice = std::vector<ByteRange>;  // of one byte
  using Sequence = std::vector<Choice>;

  void sequence(StateId from, const Sequence& sequence, StateId to);
  StateId suffix(const Sequence& sequence, size_t at, StateId to);
  void utf8(StateId from, const CodePointSet& set, StateId to);
  void json_escapes(StateId from, const CodePointSet& set, StateId to);
  void pairs(StateId from, CodePointRange range, StateId to);
  static Sequence hex_digits(uint32_t low, uint32_t high);
  static void split_hex(uint32_t low, uint32_t high, std::vector<Sequence>& out);
  static void split_utf8(uint32_t low, uint32_t high, std::vector<Sequence>& out);

  Builder& builder_;
  const TextEncoding encoding_;
  std::map<std::string, StateId> suffixes_;  // by target and bytes that are left
};

}  // namespace optima::sampling::grammar
