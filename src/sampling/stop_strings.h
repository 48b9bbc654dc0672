// Finds stop strings in streamed text, also across token borders: text that could be the start of
// a stop string is held back until it is decided. The stop string that is complete first wins; of
// those complete at the same byte, the longest. How the text was cut into pieces makes no
// difference. Pieces of whole code points and stop strings in UTF-8 give back whole code points.
#pragma once

#include <cstddef>

#include <string>
#include <string_view>
#include <vector>

namespace optima::sampling {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);  // empty strings are ignored

  struct Result {
    std::string text;  // safe to show now
    int matched = -1;  // index of the stop string found (its text is not shown), or -1
  };
  // After a match the object is as new; the rest of `text` is dropped.
  Result push(std::string_view text);
  std::string finish();  // what was held back, at the end without a match

 private:
  struct Automaton {
    int index = 0;
    std::string stop;
    std::vector<size_t> borders;  // [i] = longest proper end of stop[0..i] that also begins it
    size_t matched = 0;
    size_t advance(size_t state, char byte) const;
  };
  void clear();

  std::vector<Automaton> automata_;
  std::string held_;
};

}  // namespace optima::sampling
