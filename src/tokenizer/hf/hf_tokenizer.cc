// The order of things is that of the tokenizers library: tokens that are looked for in the text as
// it is; what lies between is normalised; tokens that are looked for in the normalised text; what
// lies between is cut into pieces, each piece the model's own business.
#include "tokenizer/hf/hf_tokenizer.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizer/generation_ends.h"

namespace optima::tokenizer::hf {

struct HfTokenizer::Scratch {
  ModelScratch model;
};

Result<std::unique_ptr<Tokenizer>> HfTokenizer::create(Pipeline pipeline,
                                                       const HfTokenizerConfig& config) {
  std::unique_ptr<HfTokenizer> made(new HfTokenizer(std::move(pipeline)));
  made->read_kinds();
  OPTIMA_TRY(made->read_config(config));
  return std::unique_ptr<Tokenizer>(std::move(made));
}

void HfTokenizer::read_kinds() {
  const Model& model = *pipeline_.model;
  const int32_t count = std::max(model.vocabulary().size(), pipeline_.added.id_max() + 1);
  kinds_.assign(static_cast<size_t>(count), TokenKind::unused);
  for (int32_t id = 0; id < model.vocabulary().size(); ++id) {
    if (!model.vocabulary().text(id).empty()) kinds_[static_cast<size_t>(id)] = TokenKind::normal;
  }
  for (int byte = 0; byte < 256 && model.bytes() == Model::Bytes::fall_back; ++byte) {
    const int32_t id = model.byte_id(static_cast<uint8_t>(byte));
    if (id >= 0) kinds_[static_cast<size_t>(id)] = TokenKind::byte;
  }
  if (model.unknown() >= 0) kinds_[static_cast<size_t>(model.unknown())] = TokenKind::unknown;
  for (const auto& [id, token] : pipeline_.added.by_id()) {
    TokenKind& kind = kinds_[static_cast<size_t>(id)];
    if (pipeline_.added.is_special(token.content)) {
      kind = TokenKind::control;
    } else if (kind != TokenKind::unknown) {
      kind = TokenKind::user_defined;
    }
  }
}

Result<int32_t> HfTokenizer::named_id(std::string_view name, std::string_view token,
                                      int32_t id) const {
  if (id < -1 || id >= size()) {
    return Status(Code::format,
                  text("tokenizer: ", name, " id ", id, " is outside the vocabulary of ", size()),
                  {.wanted = id, .limit = size()});
  }
  if (id >= 0 || token.empty()) return id;
  const int32_t found = find(token);
  if (found >= 0) return found;
  return Status(Code::format,
                text("tokenizer: ", name, " '", token, "' is no token of the vocabulary"));
}

Status HfTokenizer::read_config(const HfTokenizerConfig& config) {
  OPTIMA_ASSIGN(bos_, named_id("bos_token", config.bos_token, config.bos));
  OPTIMA_ASSIGN(eos_, named_id("eos_token", config.eos_token, config.eos));
  ends_generation_.assign(kinds_.size(), 0);
  if (eos_ >= 0) ends_generation_[static_cast<size_t>(eos_)] = 1;
  for (const int32_t id : config.end_ids) {
    OPTIMA_ASSIGN(const int32_t known, named_id("end of generation", "", id));
    if (known >= 0) ends_generation_[static_cast<size_t>(known)] = 1;
  }
  mark_known_ends(*this, ends_generation_);

  std::vector<int32_t>&before = pipeline_.frame.before, &after = pipeline_.frame.after;
  for (const std::vector<int32_t>* side : {&before, &after}) {
    for (const int32_t id : *side) {
      if (id >= size()) {
        return Status(Code::format, text("tokenizer: the post-processor adds id ", id,
                                         ", outside the vocabulary of ", size()));
      }
    }
  }
  if ((config.add_bos == 1 && bos_ < 0) || (config.add_eos == 1 && eos_ < 0)) {
    return Status(Code::format, text("tokenizer: ", bos_ < 0 ? "BOS" : "EOS",
                                     " is to be added but no such token is named"));
  }
  const auto has = [](const std::vector<int32_t>& side, int32_t id) {
    return id >= 0 && std::find(side.begin(), side.end(), id) != side.end();
  };
  if (config.add_bos == 0) std::erase(before, bos_);
  if (config.add_eos == 0) std::erase(after, eos_);
  if (config.add_bos == 1 && !has(before, bos_)) before.insert(before.begin(), bos_);
  if (config.add_eos == 1 && !has(after, eos_)) after.push_back(eos_);
  adds_bos_ = has(before, bos_);
  adds_eos_ = has(after, eos_);
  return {};
}

Result<std::vector<int32_t>> HfTokenizer::encode(std::string_view input, Special special,
                                                 SpecialText special_text) const {
  // Positions inside the algorithms are 32-bit; the steps can make a text some times longer.
  constexpr size_t kTextBytesMax = INT32_MAX / 8;
  if (input.size() > kTextBytesMax) {
    return Status(Code::invalid_argument,
                  text("text of ", input.size(), " bytes; at most ", kTextBytesMax, " at once"),
                  {.wanted = static_cast<int64_t>(input.size()),
                   .limit = static_cast<int64_t>(kTextBytesMax)});
  }
  std::vector<int32_t> ids;
  Scratch scratch;
  if (special == Special::add) ids = pipeline_.frame.before;
  for (const AddedTokens::Stretch& stretch :
       pipeline_.added.split(input, AddedTokens::Stage::raw, special_text)) {
    if (stretch.id >= 0) {
      ids.push_back(stretch.id);
      continue;
    }
    NormalizedText part{std::string(input.substr(stretch.begin, stretch.end - stretch.begin)),
                        stretch.begin == 0 ? Start::text : Start::inside};
    OPTIMA_TRY(encode_raw(std::move(part), special_text, scratch, ids));
  }
  if (special == Special::add) {
    ids.insert(ids.end(), pipeline_.frame.after.begin(), pipeline_.frame.after.end());
  }
  return ids;
}

Status HfTokenizer::encode_raw(NormalizedText part, SpecialText special_text, Scratch& scratch,
                               std::vector<int32_t>& ids) const {
  if (pipeline_.normalizer != nullptr) OPTIMA_TRY(pipeline_.normalizer->apply(part));
  for (const AddedTokens::Stretch& stretch :
       pipeline_.added.split(part.bytes, AddedTokens::Stage::normalized, special_text)) {
    if (stretch.id >= 0) {
      ids.push_back(stretch.id);
      continue;
    }
    Pieces pieces;
    pieces.text = part.bytes.substr(stretch.begin, stretch.end - stretch.begin);
    pieces.pieces.push_back(
        {0, pieces.text.size(), stretch.begin == 0 ? part.start : Start::inside});
    OPTIMA_TRY(encode_piece(std::move(pieces), scratch, ids));
  }
  return {};
}

Status HfTokenizer::encode_piece(Pieces pieces, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (pipeline_.pre_tokenizer != nullptr) OPTIMA_TRY(pipeline_.pre_tokenizer->apply(pieces));
  for (const Piece& piece : pieces.pieces) {
    OPTIMA_TRY(pipeline_.model->encode(pieces.view(piece), scratch.model, ids));
  }
  return {};
}

std::optional<std::string> HfTokenizer::token_to_decode(int32_t id,
                                                        SpecialText special_text) const {
  const AddedToken* added = pipeline_.added.find(id);
  if (added != nullptr && special_text == SpecialText::literal &&
      pipeline_.added.is_special(added->content)) {
    return std::nullopt;
  }
  const std::string_view token =
      added != nullptr ? std::string_view(added->decoded) : token_text(id);
  return token.empty() ? std::nullopt : std::optional<std::string>(token);
}

Status HfTokenizer::append_piece(int32_t id, SpecialText special_text, std::string& out) const {
  OPTIMA_TRY(check_id(id));
  std::optional<std::string> token = token_to_decode(id, special_text);
  if (!token) return {};
  std::vector<std::string> tokens(1, std::move(*token));
  OPTIMA_TRY(pipeline_.decoder->apply(tokens, Extent::middle));
  for (const std::string& piece : tokens) out.append(piece);
  return {};
}

Result<std::string> HfTokenizer::decode(std::span<const int32_t> ids,
                                        SpecialText special_text) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    OPTIMA_TRY(check_id(id));
    if (std::optional<std::string> token = token_to_decode(id, special_text)) {
      tokens.push_back(std::move(*token));
    }
  }
  OPTIMA_TRY(pipeline_.decoder->apply(tokens, Extent::whole));
  std::string out;
  for (const std::string& token : tokens) out.append(token);
  return out;
}

std::string_view HfTokenizer::token_text(int32_t id) const {
  if (const AddedToken* token = pipeline_.added.find(id)) return token->content;
  const Vocabulary& vocabulary = pipeline_.model->vocabulary();
  return id >= 0 && id < vocabulary.size() ? vocabulary.text(id) : std::string_view();
}

int32_t HfTokenizer::find(std::string_view token) const {
  const int32_t added = pipeline_.added.find(token);
  return added >= 0 ? added : pipeline_.model->vocabulary().find(token);
}

Status HfTokenizer::check_id(int32_t id) const {
  if (id >= 0 && id < size()) return {};
  return {Code::invalid_argument,
          text("token id ", id, " is outside the vocabulary of ", size()),
          {.wanted = id, .limit = size()}};
}

}  // namespace optima::tokenizer::hf
