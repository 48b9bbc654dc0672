// Of all neighbours whose bytes together are a token the one of the lowest rank merges first, of
// equal ranks the leftmost. Which two tokens make a third is looked up once, when the vocabulary
// is read: both halves of every token in every way.
#include "tokenizer/hf/rank_bpe.h"

#include <array>

#include "base/text.h"

namespace optima::tokenizer::hf {
namespace {

class RankBpe final : public Model {
 public:
  RankBpe(Vocabulary vocabulary, int32_t count) : Model(std::move(vocabulary), count) {}

  Status prepare() {
    for (size_t byte = 0; byte < 256; ++byte) {
      const char text_of_byte = static_cast<char>(byte);
      bytes_[byte] = vocabulary_.find({&text_of_byte, 1});
      if (bytes_[byte] < 0) {
        return Status(Code::format, text("ranks: byte ", byte, " is no token of ", token_count_));
      }
    }
    // Every cut of every token is looked up, which costs the square of its length.
    constexpr size_t kWorkMax = size_t{1} << 30;
    size_t work = 0;
    std::vector<MergeTable::Merge> merges;
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      const std::string_view token = vocabulary_.text(id);
      if (token.empty()) continue;
      if (vocabulary_.find(token) != id) {
        return Status(Code::format, text("ranks: tokens ", vocabulary_.find(token), " and ", id,
                                         " are the same bytes"));
      }
      if (token.size() > kWorkMax / token.size() ||
          (work += token.size() * token.size()) > kWorkMax)
        return Status(Code::format, text("ranks: tokens up to ", id, ", of ", token.size(),
                                         " bytes, are together too long to be merged"));
      for (size_t cut = 1; cut < token.size(); ++cut) {
        const int32_t left = vocabulary_.find(token.substr(0, cut));
        if (left < 0) continue;
        const int32_t right = vocabulary_.find(token.substr(cut));
        if (right >= 0) merges.push_back({left, right, id, id});
      }
    }
    merges_ = MergeTable::create(merges);
    return {};
  }

  Status encode(std::string_view piece, ModelScratch& scratch,
                std::vector<int32_t>& ids) const override {
    if (const int32_t id = vocabulary_.find(piece); id >= 0) {
      ids.push_back(id);
      return {};
    }
    const size_t first = ids.size();
    for (const char byte : piece) ids.push_back(bytes_[static_cast<uint8_t>(byte)]);
    merges_.merge(ids, first, scratch.merges);
    return {};
  }

 private:
  MergeTable merges_;
  std::array<int32_t, 256> bytes_{};
};

}  // namespace

Result<std::unique_ptr<Model>> create_rank_bpe(const std::vector<std::string>& tokens,
                                               int32_t first_id) {
  std::vector<std::string_view> views(static_cast<size_t>(first_id));
  views.insert(views.end(), tokens.begin(), tokens.end());
  auto made = std::make_unique<RankBpe>(Vocabulary(views), static_cast<int32_t>(tokens.size()));
  OPTIMA_TRY(made->prepare());
  return std::unique_ptr<Model>(std::move(made));
}

}  // namespace optima::tokenizer::hf
