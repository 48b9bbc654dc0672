// The reader's side of the format; the writer is tests/goldens/make_tokenizer.py.
#include "tests/tokenizer/vocabulary_file.h"

#include <bit>
#include <fstream>
#include <iterator>

namespace optima::tokenizer {

uint64_t FileReader::number() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ >= bytes_.size()) break;
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  return 0;
}

int64_t FileReader::signed_number() {
  const uint64_t value = number();
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

float FileReader::real() {
  return std::bit_cast<float>(static_cast<uint32_t>(number()));
}

std::string_view FileReader::string() {
  const uint64_t bytes = number();
  if (bytes > bytes_.size() - at_) {
    ok_ = false;
    return {};
  }
  at_ += bytes;
  return bytes_.substr(at_ - bytes, bytes);
}

bool VocabularyFile::read(FileReader& reader) {
  const std::string_view version = reader.string();
  const bool second = version == "optima vocabulary 2";
  if (version != "optima vocabulary 1" && !second) return false;
  model_ = reader.string();
  pre_ = reader.string();
  for (int i = 0; i < 8; ++i) settings_.push_back(reader.signed_number());
  remove_extra_whitespaces_ = reader.number() != 0;
  if (second) {
    charsmap_ = reader.string();
    user_defined_ = reader.number() != 0 ? UserDefined::inside : UserDefined::cut;
  }
  const uint64_t tokens = reader.number();
  for (uint64_t i = 0; i < tokens && reader.ok(); ++i) tokens_.emplace_back(reader.string());
  if (reader.number() != 0) {
    for (uint64_t i = 0; i < tokens; ++i) kinds_.push_back(static_cast<int64_t>(reader.number()));
  }
  if (reader.number() != 0) {
    for (uint64_t i = 0; i < tokens; ++i) scores_.push_back(static_cast<double>(reader.real()));
  }
  const uint64_t merges = reader.number();
  for (uint64_t i = 0; i < merges && reader.ok(); ++i) {
    const uint64_t left = reader.number(), right = reader.number();
    if (left >= tokens || right >= tokens) return false;
    merges_.push_back(tokens_[left] + " " + tokens_[right]);
  }
  token_views_.assign(tokens_.begin(), tokens_.end());
  merge_views_.assign(merges_.begin(), merges_.end());
  return reader.ok();
}

VocabularySpec VocabularyFile::spec() const {
  const auto setting = [&](size_t i) { return static_cast<int32_t>(settings_[i]); };
  return {.model = model_,
          .pre = pre_,
          .tokens = token_views_,
          .scores = scores_,
          .kinds = kinds_,
          .merges = merge_views_,
          .bos = setting(0),
          .eos = setting(1),
          .eot = setting(2),
          .unknown = setting(3),
          .pad = setting(4),
          .add_bos = setting(5),
          .add_eos = setting(6),
          .add_space_prefix = setting(7),
          .remove_extra_whitespaces = remove_extra_whitespaces_,
          .charsmap = charsmap_,
          .user_defined = user_defined_};
}

std::vector<GoldenCase> read_cases(FileReader& reader) {
  std::vector<GoldenCase> cases;
  const uint64_t count = reader.number();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    const uint64_t flags = reader.number();
    GoldenCase item{.special = (flags & 1) != 0 ? Special::add : Special::omit,
                    .special_text = (flags & 2) != 0 ? SpecialText::parse : SpecialText::literal,
                    .string = reader.number(),
                    .ids = {}};
    const uint64_t ids = reader.number();
    for (uint64_t k = 0; k < ids && reader.ok(); ++k) {
      item.ids.push_back(static_cast<int32_t>(reader.number()));
    }
    cases.push_back(std::move(item));
  }
  if (!reader.ok()) cases.clear();
  return cases;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace optima::tokenizer
