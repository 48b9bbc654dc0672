// Stop strings over streamed text. One automaton per stop string (Knuth, Morris, Pratt 1977) reads
// the text byte by byte and knows the length of the longest end of the text that begins the stop
// string; the longest of these over all stop strings is what has to be held back. Linear in the
// text whatever it is, and independent of how the text was cut into pieces.
#include "sampling/stop_strings.h"

#include <algorithm>

namespace optima::sampling {

StopStrings::StopStrings(std::vector<std::string> stops) {
  for (size_t index = 0; index < stops.size(); ++index) {
    if (stops[index].empty()) continue;
    Automaton automaton;
    automaton.index = static_cast<int>(index);
    automaton.stop = std::move(stops[index]);
    automaton.borders.assign(automaton.stop.size(), 0);
    for (size_t i = 1; i < automaton.stop.size(); ++i)
      automaton.borders[i] = automaton.advance(automaton.borders[i - 1], automaton.stop[i]);
    automata_.push_back(std::move(automaton));
  }
}

// The state after `byte`: how much of the stop string the text ends with now.
size_t StopStrings::Automaton::advance(size_t state, char byte) const {
  while (state > 0 && stop[state] != byte) state = borders[state - 1];
  return stop[state] == byte ? state + 1 : 0;
}

StopStrings::Result StopStrings::push(std::string_view text) {
  Result result;
  for (const char byte : text) {
    held_.push_back(byte);
    const Automaton* found = nullptr;
    size_t pending = 0;
    for (Automaton& automaton : automata_) {
      automaton.matched = automaton.advance(automaton.matched, byte);
      pending = std::max(pending, automaton.matched);
      if (automaton.matched == automaton.stop.size() &&
          (found == nullptr || automaton.stop.size() > found->stop.size()))
        found = &automaton;
    }
    if (found != nullptr) {
      result.matched = found->index;
      result.text.append(held_, 0, held_.size() - found->stop.size());
      clear();
      return result;
    }
    const size_t safe = held_.size() - pending;
    result.text.append(held_, 0, safe);
    held_.erase(0, safe);
  }
  return result;
}

std::string StopStrings::finish() {
  std::string rest = std::move(held_);
  clear();
  return rest;
}

void StopStrings::clear() {
  held_.clear();
  for (Automaton& automaton : automata_) automaton.matched = 0;
}

}  // namespace optima::sampling
