// Ranges of code points as sequences of byte ranges. A range is cut where its ends would make the
// digits of a sequence depend on each other: at the borders of lengths, then wherever a lower digit
// does not run over its full range. The same cut serves UTF-8 (digits of 6 bits) and \uXXXX (digits
// of 4 bits). Sequences that lead to the same state share their ends.
#include <algorithm>

#include "base/utf8.h"
#include "sampling/grammar/text_automaton.h"

namespace optima::sampling::grammar {
namespace {

// Pieces of [low, high] in each of which all `digits` lower digits are either equal at both ends or
// run from 0 to their maximum below a digit that varies.
template <typename Piece>
void cut(uint32_t low, uint32_t high, uint32_t digits, uint32_t bits, const Piece& piece) {
  for (uint32_t i = 1; i <= digits; ++i) {
    const uint32_t mask = (1u << (i * bits)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) {
      cut(low, low | mask, digits, bits, piece);
      return cut((low | mask) + 1, high, digits, bits, piece);
    }
    if ((high & mask) != mask) {
      cut(low, (high & ~mask) - 1, digits, bits, piece);
      return cut(high & ~mask, high, digits, bits, piece);
    }
  }
  piece(low, high);
}

}  // namespace

void TextWriter::split_utf8(uint32_t low, uint32_t high, std::vector<Sequence>& out) {
  constexpr uint32_t kHighest[] = {0x7F, 0x7FF, 0xFFFF, kCodePointMax};
  constexpr uint8_t kLead[] = {0x00, 0xC0, 0xE0, 0xF0};
  uint32_t first = 0;
  for (uint32_t more = 0; more < 4; ++more) {
    const uint32_t from = std::max(low, first), to = std::min(high, kHighest[more]);
    first = kHighest[more] + 1;
    if (from > to) continue;
    cut(from, to, more, 6, [&](uint32_t a, uint32_t b) {
      Sequence sequence;
      for (uint32_t i = 0; i <= more; ++i) {
        const uint32_t shift = 6 * (more - i);
        const uint32_t mask = i == 0 ? ~0u : 0x3Fu;
        const uint8_t mark = i == 0 ? kLead[more] : uint8_t{0x80};
        sequence.push_back({{static_cast<uint8_t>((a >> shift & mask) | mark),
                             static_cast<uint8_t>((b >> shift & mask) | mark)}});
      }
      out.push_back(std::move(sequence));
    });
  }
}

// Four hexadecimal digits, of either case.
TextWriter::Sequence TextWriter::hex_digits(uint32_t low, uint32_t high) {
  Sequence sequence;
  for (int shift = 12; shift >= 0; shift -= 4) {
    const uint32_t a = low >> shift & 15, b = high >> shift & 15;
    Choice choice;
    if (a < 10)
      choice.push_back(
          {static_cast<uint8_t>('0' + a), static_cast<uint8_t>('0' + std::min(b, 9u))});
    if (b >= 10) {
      const uint32_t from = std::max(a, 10u) - 10, to = b - 10;
      choice.push_back({static_cast<uint8_t>('A' + from), static_cast<uint8_t>('A' + to)});
      choice.push_back({static_cast<uint8_t>('a' + from), static_cast<uint8_t>('a' + to)});
    }
    sequence.push_back(std::move(choice));
  }
  return sequence;
}

void TextWriter::split_hex(uint32_t low, uint32_t high, std::vector<Sequence>& out) {
  cut(low, high, 3, 4, [&](uint32_t a, uint32_t b) { out.push_back(hex_digits(a, b)); });
}

StateId TextWriter::suffix(const Sequence& sequence, size_t at, StateId to) {
  if (at == sequence.size()) return to;
  std::string key = std::to_string(to);
  for (size_t i = at; i < sequence.size(); ++i) {
    key += ';';
    for (const ByteRange range : sequence[i]) {
      key += static_cast<char>(range.low);
      key += static_cast<char>(range.high);
    }
  }
  const auto known = suffixes_.find(key);
  if (known != suffixes_.end()) return known->second;
  const StateId state = builder_.state();
  suffixes_.emplace(std::move(key), state);
  const StateId next = suffix(sequence, at + 1, to);
  for (const ByteRange range : sequence[at]) builder_.bytes(state, range.low, range.high, next);
  return state;
}

void TextWriter::sequence(StateId from, const Sequence& sequence, StateId to) {
  const StateId next = suffix(sequence, 1, to);
  for (const ByteRange range : sequence[0]) builder_.bytes(from, range.low, range.high, next);
}

void TextWriter::utf8(StateId from, const CodePointSet& set, StateId to) {
  std::vector<Sequence> sequences;
  for (const CodePointRange range : set.ranges()) split_utf8(range.low, range.high, sequences);
  for (const Sequence& one : sequences) sequence(from, one, to);
}

// Two \uXXXX: the high half carries 10 bits, the low half 10 bits.
void TextWriter::pairs(StateId from, CodePointRange range, StateId to) {
  cut(range.low - 0x10000, range.high - 0x10000, 1, 10, [&](uint32_t a, uint32_t b) {
    std::vector<Sequence> highs, lows;
    split_hex(0xD800 + (a >> 10), 0xD800 + (b >> 10), highs);
    split_hex(0xDC00 + (a & 0x3FF), 0xDC00 + (b & 0x3FF), lows);
    for (const Sequence& high : highs) {
      for (const Sequence& low : lows) {
        Sequence both = high;
        both.push_back({{'\\', '\\'}});
        both.push_back({{'u', 'u'}});
        both.insert(both.end(), low.begin(), low.end());
        sequence(from, both, to);
      }
    }
  });
}

void TextWriter::json_escapes(StateId from, const CodePointSet& set, StateId to) {
  constexpr std::pair<char, uint32_t> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},
                                                  {'b', 0x08}, {'f', 0x0C},  {'n', 0x0A},
                                                  {'r', 0x0D}, {'t', 0x09}};
  const StateId escape = builder_.state(), hex = builder_.state();
  builder_.bytes(from, '\\', '\\', escape);
  builder_.bytes(escape, 'u', 'u', hex);
  for (const auto& [letter, point] : kShort)
    if (set.contains(point))
      builder_.bytes(escape, static_cast<uint8_t>(letter), static_cast<uint8_t>(letter), to);
  std::vector<Sequence> sequences;
  for (const CodePointRange range : set.ranges()) {
    if (range.low <= 0xFFFF) split_hex(range.low, std::min(range.high, 0xFFFFu), sequences);
    if (range.high > 0xFFFF) pairs(hex, {std::max(range.low, 0x10000u), range.high}, to);
  }
  for (const Sequence& one : sequences) sequence(hex, one, to);
}

void TextWriter::set(StateId from, const CodePointSet& set, StateId to) {
  if (set.empty()) return;
  if (encoding_ == TextEncoding::utf8) return utf8(from, set, to);
  const CodePointSet needs_escape({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  utf8(from, set.intersected(needs_escape.complement()), to);
  if (encoding_ == TextEncoding::json) return json_escapes(from, set, to);
  const CodePointSet plain({{0x20, 0x21}, {0x23, 0x2E}, {0x30, 0x5B}, {0x5D, 0x7E}});
  const CodePointSet others = set.intersected(plain.complement());
  if (!others.empty()) json_escapes(from, others, to);
}

void TextWriter::literal(StateId from, std::string_view text, StateId to) {
  for (size_t at = 0; at < text.size() && !builder_.full();) {
    const CodePoint point = decode_utf8(text, at);
    at += std::max(point.byte_count, 1u);
    const StateId next = builder_.state();
    set(from, CodePointSet::of(point.value), next);
    from = next;
  }
  builder_.skip(from, to);
}

void TextWriter::automaton(StateId from, const TextAutomaton& automaton, StateId to) {
  std::vector<StateId> states;
  for (size_t i = 0; i < automaton.states.size() && !builder_.full(); ++i)
    states.push_back(builder_.state());
  if (builder_.full()) return;
  builder_.skip(from, states[0]);
  for (size_t i = 0; i < states.size() && !builder_.full(); ++i) {
    for (const TextAutomaton::Edge& edge : automaton.states[i].edges)
      set(states[i], edge.set, states[edge.target]);
    if (automaton.states[i].final) builder_.skip(states[i], to);
  }
}

}  // namespace optima::sampling::grammar
