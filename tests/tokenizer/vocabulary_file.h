// Reads the vocabularies and the cases that tests/goldens/make_tokenizer.py writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace optima::tokenizer {

// Integers are LEB128 (signed ones zigzag), strings a length and bytes.
class FileReader {
 public:
  explicit FileReader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number();
  int64_t signed_number();
  float real();
  std::string_view string();
  bool at_end() const { return at_ >= bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

// A vocabulary that owns what its spec() views.
class VocabularyFile {
 public:
  // False when the bytes do not hold a whole vocabulary.
  bool read(FileReader& reader);
  VocabularySpec spec() const;

 private:
  std::string model_, pre_, charsmap_;
  std::vector<int64_t> settings_;  // bos eos eot unknown pad add_bos add_eos add_space_prefix
  bool remove_extra_whitespaces_ = false;
  UserDefined user_defined_ = UserDefined::cut;
  std::vector<std::string> tokens_;
  std::vector<std::string> merges_;
  std::vector<std::string_view> token_views_, merge_views_;
  std::vector<int64_t> kinds_;
  std::vector<double> scores_;
};

struct GoldenCase {
  Special special;
  SpecialText special_text;
  uint64_t string;  // index into the list of strings
  std::vector<int32_t> ids;
};
std::vector<GoldenCase> read_cases(FileReader& reader);

std::optional<std::string> read_file(const std::string& path);

}  // namespace optima::tokenizer
