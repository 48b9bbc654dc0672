// See grammar_cache.h.
#include "engine/grammar_cache.h"

#include <algorithm>

namespace optima::engine {
namespace {

constexpr size_t kGrammarsKept = 16;

sampling::TokenUse use_of(const tokenizer::Tokenizer& tokenizer, int32_t id) {
  if (tokenizer.ends_generation(id)) return sampling::TokenUse::end;
  const tokenizer::TokenKind kind = tokenizer.kind(id);
  const bool is_text = kind == tokenizer::TokenKind::normal ||
                       kind == tokenizer::TokenKind::user_defined ||
                       kind == tokenizer::TokenKind::byte;
  return is_text ? sampling::TokenUse::text : sampling::TokenUse::control;
}

}  // namespace

Result<std::unique_ptr<GrammarCache>> GrammarCache::create(const tokenizer::Tokenizer& tokenizer,
                                                           int32_t vocabulary) {
  std::vector<std::string> pieces(static_cast<size_t>(vocabulary));
  std::vector<sampling::TokenUse> uses(pieces.size(), sampling::TokenUse::control);
  for (int32_t id = 0; id < std::min(vocabulary, tokenizer.size()); ++id) {
    const auto at = static_cast<size_t>(id);
    uses[at] = use_of(tokenizer, id);
    OPTIMA_TRY(tokenizer.append_piece(id, tokenizer::SpecialText::literal, pieces[at]));
  }
  const std::vector<std::string_view> views(pieces.begin(), pieces.end());
  OPTIMA_ASSIGN(auto tokens, sampling::TokenTable::create(views, uses));
  return std::unique_ptr<GrammarCache>(new GrammarCache(std::move(tokens)));
}

Result<std::shared_ptr<const sampling::Grammar>> GrammarCache::get(const GrammarSpec& spec) {
  const auto same = [&](const Entry& entry) {
    return entry.spec.kind == spec.kind && entry.spec.text == spec.text;
  };
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), same);
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return found->grammar;
    }
  }
  // Two threads may compile one grammar at the same time; either result will do.
  OPTIMA_ASSIGN(auto grammar, sampling::Grammar::compile({spec.kind, spec.text}, tokens_));
  const std::lock_guard lock(mutex_);
  entries_.push_front({spec, grammar});
  if (entries_.size() > kGrammarsKept) entries_.pop_back();
  return grammar;
}

}  // namespace optima::engine
