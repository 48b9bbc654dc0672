// Finds stop strings in streamed text, also across token borders: text that could be the start of
// a stop string is held back until it is decided.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace optima::sampling {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);  // empty strings are ignored

  struct Result {
    std::string text;      // safe to show now
    int matched = -1;      // index of the stop string found (its text is not shown), or -1
  };
  Result push(std::string_view text);
  std::string finish();    // what was held back, at the end without a match

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace optima::sampling
