// The leftmost match wins, the longest of those that begin there. A match that does not count (a
// special token taken literally, a token inside a word) still covers its text: no other token is
// looked for inside it. Tokens marked "normalized" are looked for, in their normalised form, in the
// normalised text that the others leave.
#include "tokenizer/hf/added_tokens.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizer/hf/unicode.h"

namespace optima::tokenizer::hf {
namespace {

constexpr size_t kContentBytesMax = 4096;  // bounds the work at one position of a text

// The character before `end`, or kNoCodePoint.
char32_t character_before(std::string_view text, size_t end) {
  for (size_t bytes = 1; bytes <= 4 && bytes <= end; ++bytes) {
    const Utf8Step step = utf8_step(text.substr(0, end), end - bytes);
    if (step.state == Utf8State::valid && step.bytes == bytes) return step.value;
  }
  return kNoCodePoint;
}

size_t skip_spaces_back(std::string_view text, size_t end) {
  while (end > 0) {
    const char32_t value = character_before(text, end);
    if (!is_space(value)) break;
    end -= value < 0x80 ? 1 : value < 0x800 ? 2 : 3;
  }
  return end;
}

size_t skip_spaces(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text, at);
    if (step.state != Utf8State::valid || !is_space(step.value)) break;
    at += step.bytes;
  }
  return at;
}

bool is_single_word(std::string_view text, size_t begin, size_t end) {
  const auto is_word = [](char32_t value) { return in_class(CodePointClass::word, value); };
  if (begin > 0 && is_word(character_before(text, begin))) return false;
  if (end == text.size()) return true;
  const Utf8Step next = utf8_step(text, end);
  return next.state != Utf8State::valid || !is_word(next.value);
}

Result<AddedToken> read_token(const json::Value& value, size_t index) {
  OPTIMA_ASSIGN(const Component component, Component::of(value, text("added_tokens[", index, "]")));
  AddedToken token;
  OPTIMA_ASSIGN(token.content, component.string("content"));
  if (token.content.size() > kContentBytesMax) {
    return Status(Code::unsupported,
                  text("tokenizer.json: ", component.place(), " has ", token.content.size(),
                       " bytes; at most ", kContentBytesMax));
  }
  const auto read = [&](std::string_view key, uint8_t& flag, int otherwise) -> Status {
    OPTIMA_ASSIGN(const int read_value, component.flag_or(key, otherwise));
    flag = static_cast<uint8_t>(read_value);
    return {};
  };
  OPTIMA_TRY(read("single_word", token.single_word, 0));
  OPTIMA_TRY(read("lstrip", token.lstrip, 0));
  OPTIMA_TRY(read("rstrip", token.rstrip, 0));
  OPTIMA_TRY(read("special", token.special, 0));
  OPTIMA_TRY(read("normalized", token.normalized, token.special == 0 ? 1 : 0));
  return token;
}

}  // namespace

Result<AddedTokens> AddedTokens::create(const json::Value* list, const Model& model,
                                        const Normalizer* normalizer) {
  AddedTokens made;
  if (list == nullptr || list->is_null()) return made;
  if (list->array() == nullptr) {
    return Status(Code::format, "tokenizer.json: added_tokens is no list");
  }
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < list->array()->size(); ++i) {
    OPTIMA_ASSIGN(AddedToken token, read_token((*list->array())[i], i));
    if (token.content.empty()) continue;
    if (token.special != 0) made.specials_.emplace(token.content, 1);
    tokens.push_back(std::move(token));
  }
  for (AddedToken& token : tokens) {
    NormalizedText decoded{token.content, Start::inside};
    if (token.normalized != 0 && normalizer != nullptr) OPTIMA_TRY(normalizer->apply(decoded));
    token.decoded = std::move(decoded.bytes);
    made.number(token, model);
  }
  OPTIMA_TRY(made.build_matchers(tokens));
  return made;
}

Result<AddedTokens> AddedTokens::of(std::vector<AddedToken> tokens) {
  AddedTokens made;
  for (AddedToken& token : tokens) {
    if (token.special != 0) made.specials_.emplace(token.content, 1);
    token.decoded = token.content;
    made.insert(token);
  }
  OPTIMA_TRY(made.build_matchers(tokens));
  return made;
}

void AddedTokens::insert(AddedToken token) {
  id_max_ = std::max(id_max_, token.id);
  ids_[token.content] = token.id;
  by_id_[token.id] = std::move(token);
}

void AddedTokens::number(AddedToken token, const Model& model) {
  token.id = find(token.content);
  if (token.id < 0) token.id = model.vocabulary().find(token.content);
  if (token.id < 0) token.id = std::max(id_max_ + 1, model.token_count());
  insert(std::move(token));
}

// Special tokens come first: of two tokens with one pattern the first counts.
Status AddedTokens::build_matchers(const std::vector<AddedToken>& order) {
  std::array<std::vector<std::string>, 2> patterns;
  std::unordered_map<std::string, uint8_t> seen[2], listed;
  for (const bool special : {true, false}) {
    for (const AddedToken& token : order) {
      if (is_special(token.content) != special) continue;
      // Of a special token that is listed twice the first special one is looked for.
      if (special && (token.special == 0 || !listed.emplace(token.content, 1).second)) continue;
      const int32_t id = find(token.content);
      const size_t stage = token.normalized != 0 ? 1 : 0;
      if (token.decoded.empty()) {
        return Status(Code::unsupported, text("tokenizer.json: the added token '", token.content,
                                              "' is empty when it is normalised"));
      }
      if (!seen[stage].emplace(token.decoded, 1).second) continue;
      (stage == 0 ? raw_ : normalized_).ids.push_back(id);
      patterns[stage].push_back(token.decoded);
    }
  }
  for (const size_t stage : {0, 1}) {
    Matcher& matcher = stage == 0 ? raw_ : normalized_;
    std::vector<std::string_view> views(patterns[stage].begin(), patterns[stage].end());
    matcher.trie = TokenTrie(Vocabulary(views));
    for (const std::string_view view : views) matcher.first[static_cast<uint8_t>(view[0])] = 1;
  }
  return {};
}

std::vector<AddedTokens::Stretch> AddedTokens::split(std::string_view text, Stage stage,
                                                     SpecialText special_text) const {
  const Matcher& matcher = stage == Stage::raw ? raw_ : normalized_;
  std::vector<Stretch> out;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    size_t bytes = 0;
    int32_t pattern = -1;
    if (matcher.first[static_cast<uint8_t>(text[at])] != 0) {
      matcher.trie.for_each_prefix(text.substr(at), [&](size_t length, int32_t which) {
        bytes = length;
        pattern = which;
      });
    }
    if (pattern < 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + bytes;
    at = end;
    const AddedToken& token = *find(matcher.ids[static_cast<size_t>(pattern)]);
    if (special_text == SpecialText::literal && is_special(token.content)) continue;
    if (token.single_word != 0 && !is_single_word(text, begin, end)) continue;
    if (token.lstrip != 0) begin = std::max(skip_spaces_back(text, begin), done);
    if (token.rstrip != 0) end = skip_spaces(text, end);
    if (done < begin) out.push_back({done, begin, -1});
    out.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({done, text.size(), -1});
  return out;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

int32_t AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? -1 : found->second;
}

bool AddedTokens::is_special(std::string_view content) const {
  return specials_.contains(std::string(content));
}

}  // namespace optima::tokenizer::hf
