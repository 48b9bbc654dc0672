// The tree becomes an automaton with empty moves (Thompson 1968), counted repetitions spelled out.
// Then the empty moves are removed: a state of the result is a place after a character, together
// with whether anything has been read (^ holds no more) and whether the end has been asked for
// (nothing can be read any more).
#include "sampling/grammar/regex.h"

#include <algorithm>

#include "base/text.h"
#include "sampling/grammar/regex_tree.h"

namespace optima::sampling::grammar {
namespace {

struct Move {
  enum class When : uint8_t { always, nothing_read, at_end };
  uint32_t target;
  When when;
};

struct Place {
  std::vector<Move> moves;
  std::vector<TextAutomaton::Edge> edges;  // at most one
};

class Thompson {
 public:
  Status status() const {
    if (!overflow_) return {};
    return {Code::unsupported,
            text("a pattern needs more than ", kAutomatonStatesMax, " states"),
            {-1, -1, kAutomatonStatesMax}};
  }
  uint32_t place() {
    if (static_cast<int64_t>(places.size()) >= kAutomatonStatesMax) {
      overflow_ = true;
      return 0;
    }
    places.emplace_back();
    return static_cast<uint32_t>(places.size() - 1);
  }
  void move(uint32_t from, uint32_t to, Move::When when = Move::When::always) {
    places[from].moves.push_back({to, when});
  }

  void add(const RegexNode& node, uint32_t from, uint32_t to) {
    if (overflow_) return;
    switch (node.kind) {
      case RegexNode::Kind::text_start:
        return move(from, to, Move::When::nothing_read);
      case RegexNode::Kind::text_end:
        return move(from, to, Move::When::at_end);
      case RegexNode::Kind::set: {
        const uint32_t read = place();
        move(from, read);
        places[read].edges.push_back({node.set, to});
        return;
      }
      case RegexNode::Kind::choice:
        for (const RegexNode& part : node.parts) add(part, from, to);
        return;
      case RegexNode::Kind::sequence:
        for (const RegexNode& part : node.parts) {
          const uint32_t next = place();
          add(part, from, next);
          from = next;
        }
        return move(from, to);
      case RegexNode::Kind::repeat:
        return repeat(node, from, to);
    }
  }

  std::vector<Place> places;

 private:
  void repeat(const RegexNode& node, uint32_t from, uint32_t to) {
    const RegexNode& body = node.parts.front();
    for (int64_t i = 0; i < node.min && !overflow_; ++i) {
      const uint32_t next = place();
      add(body, from, next);
      from = next;
    }
    if (node.max == kUnlimited) {
      const uint32_t loop = place();
      move(from, loop);
      add(body, loop, loop);
      return move(loop, to);
    }
    for (int64_t i = node.min; i < node.max && !overflow_; ++i) {
      const uint32_t next = place();
      move(from, to);
      add(body, from, next);
      from = next;
    }
    move(from, to);
  }

  bool overflow_ = false;
};

constexpr uint32_t kRead = 1, kEnded = 2;
constexpr int64_t kVisitsMax = 10'000'000;

// Removes the empty moves. A place with its two flags is place * 4 + flags.
class Compactor {
 public:
  Compactor(const Thompson& source, uint32_t end)
      : source_(source), end_(end), seen_(source.places.size() * 4), number_(seen_.size(), -1) {}

  Result<TextAutomaton> run(uint32_t start) {
    number_of(start * 4);
    for (size_t i = 0; i < order_.size(); ++i) {
      close(order_[i]);
      visits_ += static_cast<int64_t>(closure_.size());
      if (visits_ > kVisitsMax)
        return Status(Code::unsupported,
                      text("a pattern needs more than ", kVisitsMax, " empty moves"),
                      {-1, -1, kVisitsMax});
      for (const uint32_t point : closure_) {
        seen_[point] = 0;
        if (point / 4 == end_) result_.states[i].final = true;
        if ((point & kEnded) != 0) continue;
        for (const TextAutomaton::Edge& edge : source_.places[point / 4].edges) {
          if (++edges_ > kAutomatonEdgesMax)
            return Status(Code::unsupported,
                          text("a pattern needs more than ", kAutomatonEdgesMax, " edges"),
                          {-1, -1, kAutomatonEdgesMax});
          if (edge.set.empty()) continue;
          const uint32_t target = number_of(edge.target * 4 + kRead);
          result_.states[i].edges.push_back({edge.set, target});
        }
      }
    }
    return std::move(result_);
  }

 private:
  uint32_t number_of(uint32_t point) {
    if (number_[point] < 0) {
      number_[point] = static_cast<int32_t>(order_.size());
      order_.push_back(point);
      result_.states.emplace_back();
    }
    return static_cast<uint32_t>(number_[point]);
  }

  void close(uint32_t start) {
    closure_.assign(1, start);
    seen_[start] = 1;
    for (size_t i = 0; i < closure_.size(); ++i) {
      const uint32_t flags = closure_[i] & 3;
      for (const Move& move : source_.places[closure_[i] / 4].moves) {
        if (move.when == Move::When::nothing_read && (flags & kRead) != 0) continue;
        const uint32_t ended = move.when == Move::When::at_end ? kEnded : 0;
        const uint32_t point = move.target * 4 + (flags | ended);
        if (seen_[point]) continue;
        seen_[point] = 1;
        closure_.push_back(point);
      }
    }
  }

  const Thompson& source_;
  const uint32_t end_;
  std::vector<uint8_t> seen_;
  std::vector<int32_t> number_;
  std::vector<uint32_t> order_, closure_;
  TextAutomaton result_;
  int64_t edges_ = 0, visits_ = 0;
};

}  // namespace

Result<TextAutomaton> regex_automaton(std::string_view pattern, RegexMatch match,
                                      const Limits& limits) {
  OPTIMA_ASSIGN(const RegexNode tree, parse_regex(pattern, limits.nesting));
  Thompson thompson;
  const uint32_t start = thompson.place(), end = thompson.place();
  if (match == RegexMatch::anywhere) {
    const RegexNode any{RegexNode::Kind::set, {}, CodePointSet::all(), 0, 0};
    const uint32_t first = thompson.place(), last = thompson.place();
    thompson.add(any, start, start);
    thompson.move(start, first);
    thompson.add(tree, first, last);
    thompson.move(last, end);
    thompson.add(any, end, end);
  } else {
    thompson.add(tree, start, end);
  }
  OPTIMA_TRY(thompson.status());
  return Compactor(thompson, end).run(start);
}

Result<StateId> compile_regex(std::string_view pattern, Builder& builder) {
  OPTIMA_ASSIGN(const TextAutomaton automaton,
                regex_automaton(pattern, RegexMatch::whole, builder.limits()));
  const StateId start = builder.state(), end = builder.final_state();
  TextWriter(builder, TextEncoding::utf8).automaton(start, automaton, end);
  return start;
}

}  // namespace optima::sampling::grammar
