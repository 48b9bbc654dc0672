// Thousands of damaged copies of the small golden files. Whatever comes in, opening must return:
// with a status that has a message, or with a model all of whose parts can be read. Run under the
// asan preset it also shows that nothing outside the bytes is touched and nothing leaks.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/gguf_bytes.h"

namespace optima::model::test {
namespace {

constexpr int kMutations = 24000;

// Deterministic numbers (SplitMix64), so that a failing case can be run again by its number.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(next() % bound); }

 private:
  uint64_t state_;
};

// Half of the places are in the first 256 bytes, where the counts and lengths are.
size_t place(Random& random, const std::string& bytes) {
  return random.below(random.next() % 2 == 0 ? std::min<size_t>(bytes.size(), 256) : bytes.size());
}

void flip(Random& random, std::string& bytes) {
  if (bytes.empty()) return;
  char& byte = bytes[place(random, bytes)];
  byte = static_cast<char>(random.next() % 2 == 0 ? byte ^ (1 << random.below(8)) : random.next());
}

// Counts, lengths and offsets that a writer with bad intent would choose.
void set_word(Random& random, std::string& bytes) {
  constexpr uint64_t kWords[] = {0,
                                 1,
                                 2,
                                 7,
                                 31,
                                 1000,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 1ull << 60,
                                 0x7fffffffffffffff,
                                 1ull << 63,
                                 ~uint64_t{0}};
  const size_t width = random.next() % 2 == 0 ? 4 : 8;
  if (bytes.size() < width) return;
  const uint64_t word = kWords[random.below(std::size(kWords))];
  std::memcpy(bytes.data() + std::min(place(random, bytes), bytes.size() - width), &word, width);
}

void splice(Random& random, std::string& bytes, const std::string& other) {
  const size_t from = place(random, other);
  const size_t length = random.below(std::min<size_t>(other.size() - from, 200)) + 1;
  const size_t at = place(random, bytes);
  const size_t replaced = random.next() % 2 == 0 ? length : random.below(64);
  bytes.replace(at, std::min(replaced, bytes.size() - at), other, from, length);
}

std::string mutate(Random& random, const std::vector<std::string>& files) {
  std::string bytes = files[random.below(files.size())];
  const size_t changes = 1 + random.below(4);
  for (size_t i = 0; i < changes; ++i) {
    switch (random.below(5)) {
      case 0:
      case 1:
        flip(random, bytes);
        break;
      case 2:
        set_word(random, bytes);
        break;
      case 3:
        splice(random, bytes, files[random.below(files.size())]);
        break;
      default:
        if (i == 0) bytes.resize(place(random, bytes));
    }
  }
  return bytes;
}

// Touches every byte that an opened model promises.
uint64_t read_all(const ModelFile& gguf) {
  uint64_t sum = 0;
  for (const auto& [key, value] : gguf.metadata().entries())
    sum += key.size() + to_string(value, 1000).size();
  for (const Tensor& tensor : gguf.tensors()) {
    sum += tensor.name.size();
    for (int64_t i = 0; i < tensor.bytes; ++i) sum += static_cast<uint64_t>(tensor.data[i]);
  }
  return sum;
}

TEST(GgufCorruption, EveryDamagedFileGivesAStatusOrAReadableModel) {
  std::vector<std::string> files;
  for (const char* name : {"metadata.gguf", "tensors.gguf", "alignment64.gguf", "version2.gguf",
                           "split-00001-of-00002.gguf", "split-00002-of-00002.gguf"}) {
    files.push_back(read_file(golden_path(name)));
    ASSERT_FALSE(files.back().empty()) << name;
  }
  int opened = 0;
  uint64_t sum = 0;
  for (int i = 0; i < kMutations; ++i) {
    Random random(static_cast<uint64_t>(i));
    const MemoryModel model(mutate(random, files));
    if (model.gguf.ok()) {
      ++opened;
      sum += read_all(**model.gguf);
    } else {
      ASSERT_FALSE(model.gguf.status().message().empty()) << "mutation " << i;
      ASSERT_NE(model.gguf.status().code(), Code::ok) << "mutation " << i;
    }
  }
  // Damage to names, values and weights leaves a readable file; most other damage does not.
  EXPECT_GT(opened, kMutations / 20);
  EXPECT_LT(opened, kMutations * 9 / 10);
  EXPECT_GT(sum, 0u);
}

}  // namespace
}  // namespace optima::model::test
