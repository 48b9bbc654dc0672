// BERT: GGUF writes U+2581 before a token that begins a word and nothing before one that goes on;
// it is "##" again here. Gemma 4: BPE with byte tokens over a text whose spaces are U+2581.
#include "tokenizer/hf/gguf_pipelines.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizer/hf/hf_tokenizer.h"

namespace optima::tokenizer::hf {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

TokenKind kind_of(const VocabularySpec& spec, size_t id) {
  return spec.kinds.empty() ? TokenKind::normal : static_cast<TokenKind>(spec.kinds[id]);
}

int32_t named(const VocabularySpec& spec, int32_t id, std::string_view name) {
  if (id >= 0) return id;
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), name);
  return found == spec.tokens.end() ? -1 : static_cast<int32_t>(found - spec.tokens.begin());
}

Status check_kinds(const VocabularySpec& spec) {
  if (spec.kinds.empty() || spec.kinds.size() == spec.tokens.size()) return {};
  return {
      Code::format,
      text("vocabulary: ", spec.kinds.size(), " token types for ", spec.tokens.size(), " tokens"),
      {.wanted = static_cast<int64_t>(spec.tokens.size()),
       .available = static_cast<int64_t>(spec.kinds.size())}};
}

bool is_space_run(std::string_view token) {
  while (!token.empty()) {
    const size_t bytes = token.starts_with(' ')          ? 1
                         : token.starts_with(kSpaceMark) ? kSpaceMark.size()
                                                         : 0;
    if (bytes == 0) return false;
    token.remove_prefix(bytes);
  }
  return true;
}

Result<AddedTokens> added_of(const VocabularySpec& spec) {
  std::vector<AddedToken> added;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const TokenKind kind = kind_of(spec, id);
    const bool special = kind == TokenKind::control || kind == TokenKind::unknown;
    if (!special && kind != TokenKind::user_defined) continue;
    // Runs of spaces are made by merges, in the text where spaces are U+2581 already.
    if (spec.tokens[id].empty() || is_space_run(spec.tokens[id])) continue;
    added.push_back({.content = std::string(spec.tokens[id]),
                     .decoded = "",
                     .id = static_cast<int32_t>(id),
                     .special = static_cast<uint8_t>(special ? 1 : 0)});
  }
  return AddedTokens::of(std::move(added));
}

Result<std::unique_ptr<Normalizer>> normalizer_of(std::string_view description) {
  OPTIMA_ASSIGN(const json::Value value, json::parse(description));
  OPTIMA_ASSIGN(const Component component, Component::of(value, "normalizer"));
  return Normalizer::create(component);
}

Result<std::unique_ptr<Decoder>> decoder_of(std::string_view description) {
  OPTIMA_ASSIGN(const json::Value value, json::parse(description));
  return Decoder::create(&value);
}

// The rule of the file; where it does not say, `otherwise` if there is such a token.
int rule(int of_file, int32_t id, int otherwise) {
  return of_file >= 0 ? of_file : id >= 0 ? otherwise : 0;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_gguf_bert(const VocabularySpec& spec) {
  OPTIMA_TRY(check_kinds(spec));
  std::vector<std::string> texts;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const std::string_view token = spec.tokens[id];
    const bool bracketed = token.starts_with('[') && token.ends_with(']') && token.size() > 1;
    if (kind_of(spec, id) == TokenKind::control || bracketed) {
      texts.emplace_back(token);
    } else if (token.starts_with(kSpaceMark) && token != kSpaceMark) {
      texts.emplace_back(token.substr(kSpaceMark.size()));
    } else {
      texts.push_back(text("##", token));
    }
  }
  const std::vector<std::string_view> tokens(texts.begin(), texts.end());
  const int32_t unknown = named(spec, spec.unknown, "[UNK]");
  if (unknown >= static_cast<int32_t>(tokens.size())) {
    return Status(Code::format,
                  text("vocabulary: unknown token id ", unknown, " of ", tokens.size()));
  }
  const bool lowercase = spec.lowercase != 0;
  const bool strip = spec.strip_accents >= 0 ? spec.strip_accents != 0 : lowercase;
  Pipeline pipeline;
  OPTIMA_ASSIGN(pipeline.normalizer,
                normalizer_of(text(R"({"type":"BertNormalizer","lowercase":)", lowercase,
                                   R"(,"strip_accents":)", strip, "}")));
  OPTIMA_ASSIGN(const json::Value splitter, json::parse(R"({"type":"BertPreTokenizer"})"));
  OPTIMA_ASSIGN(const Component component, Component::of(splitter, "pre_tokenizer"));
  OPTIMA_ASSIGN(pipeline.pre_tokenizer, PreTokenizer::create(component));
  OPTIMA_ASSIGN(pipeline.model,
                create_word_piece(tokens, unknown < 0 ? "" : tokens[static_cast<size_t>(unknown)]));
  OPTIMA_ASSIGN(pipeline.decoder, decoder_of(R"({"type":"WordPiece"})"));
  OPTIMA_ASSIGN(pipeline.added, added_of(spec));
  const int32_t begin = named(spec, spec.bos, "[CLS]"), end = named(spec, spec.eos, "[SEP]");
  return HfTokenizer::create(std::move(pipeline), {.bos = begin,
                                                   .eos = end,
                                                   .end_ids = {},
                                                   .add_bos = rule(spec.add_bos, begin, 1),
                                                   .add_eos = rule(spec.add_eos, end, 1)});
}

Result<std::unique_ptr<Tokenizer>> create_gguf_gemma4(const VocabularySpec& spec) {
  OPTIMA_TRY(check_kinds(spec));
  std::vector<std::string> runs(spec.tokens.size());  // tokens of spaces, as merges name them
  std::vector<std::string_view> tokens(spec.tokens.begin(), spec.tokens.end());
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty() || !is_space_run(tokens[id])) continue;
    for (std::string_view rest = tokens[id]; !rest.empty();) {
      rest.remove_prefix(rest.starts_with(' ') ? 1 : kSpaceMark.size());
      runs[id].append(kSpaceMark);
    }
    tokens[id] = runs[id];
  }
  std::vector<MergeTable::Pair> merges;
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    // From 1: the left part has at least one character.
    const size_t space = spec.merges[i].find(' ', 1);
    if (space == std::string_view::npos) {
      return Status(Code::format, text("merge ", i, " of ", spec.merges.size(), " ('",
                                       spec.merges[i], "') has no two parts"));
    }
    merges.push_back({spec.merges[i].substr(0, space), spec.merges[i].substr(space + 1)});
  }
  const int32_t unknown = named(spec, spec.unknown, "<unk>");
  if (unknown >= static_cast<int32_t>(tokens.size())) {
    return Status(Code::format,
                  text("vocabulary: unknown token id ", unknown, " of ", tokens.size()));
  }
  Pipeline pipeline;
  OPTIMA_ASSIGN(pipeline.normalizer,
                normalizer_of(text(R"({"type":"Replace","pattern":{"String":" "},"content":")",
                                   kSpaceMark, "\"}")));
  OPTIMA_ASSIGN(
      pipeline.model,
      create_byte_fallback_bpe(
          {.tokens = tokens,
           .merges = merges,
           .unknown = unknown < 0 ? std::string_view() : tokens[static_cast<size_t>(unknown)]}));
  OPTIMA_ASSIGN(pipeline.decoder,
                decoder_of(text(R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":)"
                                R"({"String":")",
                                kSpaceMark, R"("},"content":" "},{"type":"ByteFallback"}]})")));
  OPTIMA_ASSIGN(pipeline.added, added_of(spec));
  const int32_t end = spec.eos;
  return HfTokenizer::create(std::move(pipeline), {.bos = spec.bos,
                                                   .eos = end,
                                                   .end_ids = {&spec.eot, 1},
                                                   .add_bos = rule(spec.add_bos, spec.bos, 1),
                                                   .add_eos = rule(spec.add_eos, end, 0)});
}

}  // namespace optima::tokenizer::hf
