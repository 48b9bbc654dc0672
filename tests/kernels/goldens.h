// Reads tests/goldens/kernels.txt: lines "name count values...".
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace optima::kernels {

class Goldens {
 public:
  Goldens() {
    std::ifstream file(OPTIMA_SOURCE_DIR "/tests/goldens/kernels.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      size_t count = 0;
      words >> name >> count;
      std::vector<double>& values = arrays_[name];
      for (std::string word; words >> word;) values.push_back(std::stod(word));
      EXPECT_EQ(values.size(), count) << name;
    }
  }

  bool has(const std::string& name) const { return arrays_.count(name) != 0; }
  const std::vector<double>& doubles(const std::string& name) const {
    static const std::vector<double> none;
    const auto found = arrays_.find(name);
    EXPECT_NE(found, arrays_.end()) << name;
    return found == arrays_.end() ? none : found->second;
  }
  std::vector<float> floats(const std::string& name) const {
    return {doubles(name).begin(), doubles(name).end()};
  }

 private:
  std::map<std::string, std::vector<double>> arrays_;
};

// Within `relative` of each expected value, or `absolute` where that is small.
inline void expect_close(const std::vector<float>& got, const std::vector<double>& want,
                         double relative, double absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], std::abs(want[i]) * relative + absolute) << "value " << i;
  }
}

}  // namespace optima::kernels
