// Special tokens of the families are rows: a name, or a name with a running number.
#include "tokenizer/hf/tiktoken.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/text.h"
#include "tokenizer/hf/base64.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/hf/rank_bpe.h"

namespace optima::tokenizer {
namespace {

constexpr size_t kTokensMax = 1 << 22;

constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama4Pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// `count` tokens name<first>|>, name<first + 1>|>, ...; count 0 = the one token that `name` is.
struct SpecialRow {
  std::string_view name;
  int first = 0, count = 0;
};

constexpr SpecialRow kLlama3Specials[] = {{"<|begin_of_text|>"},
                                          {"<|end_of_text|>"},
                                          {"<|reserved_special_token_", 0, 2},
                                          {"<|finetune_right_pad_id|>"},
                                          {"<|step_id|>"},
                                          {"<|start_header_id|>"},
                                          {"<|end_header_id|>"},
                                          {"<|eom_id|>"},
                                          {"<|eot_id|>"},
                                          {"<|python_tag|>"},
                                          {"<|image|>"},
                                          {"<|reserved_special_token_", 2, 244}};

constexpr SpecialRow kLlama4Specials[] = {{"<|begin_of_text|>"},
                                          {"<|end_of_text|>"},
                                          {"<|fim_prefix|>"},
                                          {"<|fim_middle|>"},
                                          {"<|fim_suffix|>"},
                                          {"<|header_start|>"},
                                          {"<|header_end|>"},
                                          {"<|eom|>"},
                                          {"<|eot|>"},
                                          {"<|step|>"},
                                          {"<|text_post_train_reserved_special_token_", 0, 6},
                                          {"<|python_start|>"},
                                          {"<|python_end|>"},
                                          {"<|finetune_right_pad|>"},
                                          {"<|text_post_train_reserved_special_token_", 8, 61},
                                          {"<|image_start|>"},
                                          {"<|image_end|>"},
                                          {"<|vision_reserved_special_token_", 0, 2},
                                          {"<|tile_x_separator|>"},
                                          {"<|tile_y_separator|>"},
                                          {"<|vision_reserved_special_token_", 2, 4},
                                          {"<|image|>"},
                                          {"<|vision_reserved_special_token_", 6, 1},
                                          {"<|patch|>"},
                                          {"<|vision_reserved_special_token_", 7, 1041},
                                          {"<|reasoning_reserved_special_token_", 0, 8},
                                          {"<|reasoning_thinking_start|>"},
                                          {"<|reasoning_thinking_end|>"},
                                          {"<|reserved_special_token_", 0, 899}};

constexpr SpecialRow kQwenSpecials[] = {
    {"<|endoftext|>"}, {"<|im_start|>"}, {"<|im_end|>"}, {"<|extra_", 0, 205}};

constexpr SpecialRow kQwen35Specials[] = {{"<|endoftext|>"},
                                          {"<|im_start|>"},
                                          {"<|im_end|>"},
                                          {"<|object_ref_start|>"},
                                          {"<|object_ref_end|>"},
                                          {"<|box_start|>"},
                                          {"<|box_end|>"},
                                          {"<|quad_start|>"},
                                          {"<|quad_end|>"},
                                          {"<|vision_start|>"},
                                          {"<|vision_end|>"},
                                          {"<|vision_pad|>"},
                                          {"<|image_pad|>"},
                                          {"<|video_pad|>"},
                                          {"<tool_call>"},
                                          {"</tool_call>"},
                                          {"<|fim_prefix|>"},
                                          {"<|fim_middle|>"},
                                          {"<|fim_suffix|>"},
                                          {"<|fim_pad|>"},
                                          {"<|repo_name|>"},
                                          {"<|file_sep|>"},
                                          {"<tool_response>"},
                                          {"</tool_response>"},
                                          {"<think>"},
                                          {"</think>"},
                                          {"<|audio_start|>"},
                                          {"<|audio_end|>"},
                                          {"<tts_pad>"},
                                          {"<tts_text_bos>"},
                                          {"<tts_text_eod>"},
                                          {"<tts_text_bos_single>"},
                                          {"<|audio_pad|>"}};

struct Family {
  std::string_view name, pattern;
  std::span<const SpecialRow> specials;
  std::string_view bos, eos;
  bool nfc;
};
constexpr Family kFamilies[] = {
    {"llama3", kLlama3Pattern, kLlama3Specials, "<|begin_of_text|>", "<|end_of_text|>", false},
    {"llama4", kLlama4Pattern, kLlama4Specials, "<|begin_of_text|>", "<|end_of_text|>", false},
    {"qwen", kQwenPattern, kQwenSpecials, "", "<|endoftext|>", true},
    {"qwen3.5", kQwen35Pattern, kQwen35Specials, "", "<|endoftext|>", true},
};

std::vector<TiktokenSpecial> number_specials(std::span<const SpecialRow> rows, int32_t id) {
  std::vector<TiktokenSpecial> specials;
  for (const SpecialRow& row : rows) {
    if (row.count == 0) specials.push_back({std::string(row.name), id++});
    for (int i = 0; i < row.count; ++i) {
      specials.push_back({text(row.name, row.first + i, "|>"), id++});
    }
  }
  return specials;
}

// The tokens by rank; ranks must be 0, 1, 2, ... in any order.
Result<std::vector<std::string>> read_ranks(std::string_view file) {
  std::vector<std::string> tokens;
  std::vector<uint8_t> known;
  size_t line_number = 0;
  while (!file.empty()) {
    ++line_number;
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const std::string_view digits = space == std::string_view::npos ? "" : line.substr(space + 1);
    size_t rank = kTokensMax;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    std::optional<std::string> token =
        hf::decode_base64(line.substr(0, std::min(space, line.size())));
    if (!token || token->empty() || error != std::errc() || stop != digits.data() + digits.size() ||
        rank >= kTokensMax || (rank < known.size() && known[rank] != 0)) {
      return Status(Code::format, text("ranks: line ", line_number, " is no new token and rank"));
    }
    if (rank >= tokens.size()) {
      tokens.resize(rank + 1);
      known.resize(rank + 1);
    }
    tokens[rank] = std::move(*token);
    known[rank] = 1;
  }
  for (size_t rank = 0; rank < known.size(); ++rank) {
    if (known[rank] == 0) return Status(Code::format, text("ranks: rank ", rank, " is missing"));
  }
  return tokens;
}

struct Parts {
  std::vector<std::string> tokens;  // by rank
  int32_t first_id = 0;             // of the token of rank 0
};

Result<std::unique_ptr<Tokenizer>> assemble(const Parts& parts, const TiktokenSpec& spec,
                                            const HfTokenizerConfig& config) {
  hf::Pipeline pipeline;
  if (spec.nfc) pipeline.normalizer = hf::create_nfc();
  OPTIMA_ASSIGN(pipeline.pre_tokenizer, hf::split_isolated(spec.pattern, hf::Dialect::rust));
  OPTIMA_ASSIGN(pipeline.model, hf::create_rank_bpe(parts.tokens, parts.first_id));
  pipeline.decoder = hf::create_concatenation();
  std::vector<hf::AddedToken> added;
  for (const TiktokenSpecial& special : spec.specials) {
    const bool is_taken = special.id >= parts.first_id &&
                          special.id < parts.first_id + static_cast<int32_t>(parts.tokens.size());
    if (special.text.empty() || special.id < 0 || special.id > static_cast<int32_t>(kTokensMax) ||
        is_taken) {
      return Status(Code::format, text("special token '", special.text, "' has id ", special.id));
    }
    added.push_back({.content = special.text, .decoded = "", .id = special.id, .special = 1});
  }
  OPTIMA_ASSIGN(pipeline.added, hf::AddedTokens::of(std::move(added)));
  return hf::HfTokenizer::create(std::move(pipeline), config);
}

// Files from before the key have the specials of the first release.
constexpr std::string_view kTekkenSpecials[] = {"<unk>",
                                                "<s>",
                                                "</s>",
                                                "[INST]",
                                                "[/INST]",
                                                "[AVAILABLE_TOOLS]",
                                                "[/AVAILABLE_TOOLS]",
                                                "[TOOL_RESULTS]",
                                                "[/TOOL_RESULTS]",
                                                "[TOOL_CALLS]",
                                                "[IMG]",
                                                "<pad>",
                                                "[IMG_BREAK]",
                                                "[IMG_END]",
                                                "[PREFIX]",
                                                "[MIDDLE]",
                                                "[SUFFIX]",
                                                "[SYSTEM_PROMPT]",
                                                "[/SYSTEM_PROMPT]",
                                                "[TOOL_CONTENT]"};

Result<std::vector<TiktokenSpecial>> tekken_specials(const hf::Component& root, int64_t reserved) {
  std::vector<std::string_view> names(std::begin(kTekkenSpecials), std::end(kTekkenSpecials));
  if (root.find("special_tokens") != nullptr) {
    names.clear();
    std::unordered_set<std::string_view> seen;
    OPTIMA_ASSIGN(const json::Array* rows, root.array("special_tokens"));
    for (size_t i = 0; i < rows->size(); ++i) {
      OPTIMA_ASSIGN(const hf::Component row,
                    hf::Component::of((*rows)[i], text("special_tokens[", i, "]")));
      OPTIMA_ASSIGN(const std::string_view name, row.string("token_str"));
      if (!seen.insert(name).second) return row.wrong("token_str", "new token");
      names.push_back(name);
      if (static_cast<int64_t>(names.size()) > reserved)
        return Status(
            Code::format,
            text("tekken: ", rows->size(), " special tokens, ", reserved, " are reserved"),
            {static_cast<int64_t>(rows->size()), -1, reserved});
    }
  }
  std::vector<TiktokenSpecial> specials;
  for (const std::string_view name : names) {
    if (static_cast<int64_t>(specials.size()) == reserved) break;
    specials.push_back({std::string(name), static_cast<int32_t>(specials.size())});
  }
  return specials;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tiktoken(std::string_view ranks, const TiktokenSpec& spec,
                                                 const HfTokenizerConfig& config) {
  Parts parts;
  OPTIMA_ASSIGN(parts.tokens, read_ranks(ranks));
  return assemble(parts, spec, config);
}

Result<std::unique_ptr<Tokenizer>> load_tiktoken(std::string_view ranks, std::string_view family,
                                                 std::span<const TiktokenSpecial> specials,
                                                 HfTokenizerConfig config) {
  for (const Family& known : kFamilies) {
    if (known.name != family) continue;
    Parts parts;
    OPTIMA_ASSIGN(parts.tokens, read_ranks(ranks));
    std::vector<TiktokenSpecial> numbered;
    if (specials.empty()) {
      numbered = number_specials(known.specials, static_cast<int32_t>(parts.tokens.size()));
      specials = numbered;
    }
    if (config.bos_token.empty()) config.bos_token = known.bos;
    if (config.eos_token.empty()) config.eos_token = known.eos;
    if (config.add_bos < 0 && !known.bos.empty()) config.add_bos = 1;
    return assemble(parts, {.pattern = known.pattern, .specials = specials, .nfc = known.nfc},
                    config);
  }
  return Status(Code::unsupported, text("tiktoken family '", family,
                                        "' is not known; known are llama3, llama4, qwen, qwen3.5"));
}

bool is_rank_file(std::string_view bytes) {
  constexpr size_t kLineMax = 4096;
  std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), kLineMax));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size()) return false;
  const std::string_view digits = line.substr(space + 1);
  return digits.find_first_not_of("0123456789") == std::string_view::npos &&
         hf::decode_base64(line.substr(0, space)).has_value();
}

Result<std::unique_ptr<Tokenizer>> load_tekken(std::string_view tekken_json,
                                               HfTokenizerConfig own) {
  Result<json::Value> parsed = json::parse(tekken_json);
  if (!parsed.ok()) return Status(Code::format, text("tekken: ", parsed.status().message()));
  OPTIMA_ASSIGN(const hf::Component root, hf::Component::of(*parsed, "tekken"));
  OPTIMA_ASSIGN(const hf::Component config, root.object("config"));
  OPTIMA_ASSIGN(const std::string_view pattern, config.string("pattern"));
  OPTIMA_ASSIGN(const int64_t size, config.integer("default_vocab_size"));
  OPTIMA_ASSIGN(const int64_t reserved, config.integer("default_num_special_tokens"));
  OPTIMA_ASSIGN(const json::Array* vocab, root.array("vocab"));
  if (reserved < 3 || size < reserved || size - reserved > static_cast<int64_t>(vocab->size()) ||
      size > static_cast<int64_t>(kTokensMax)) {
    return Status(Code::format, text("tekken: ", size, " tokens with ", reserved,
                                     " special ones of ", vocab->size()));
  }
  Parts parts;
  parts.first_id = static_cast<int32_t>(reserved);
  for (size_t i = 0; i < static_cast<size_t>(size - reserved); ++i) {
    OPTIMA_ASSIGN(const hf::Component row, hf::Component::of((*vocab)[i], text("vocab[", i, "]")));
    OPTIMA_ASSIGN(const int64_t rank, row.integer("rank"));
    OPTIMA_ASSIGN(const std::string_view encoded, row.string("token_bytes"));
    std::optional<std::string> token = hf::decode_base64(encoded);
    if (!token || token->empty() || rank != static_cast<int64_t>(i))
      return row.wrong("token_bytes", "token in order");
    parts.tokens.push_back(std::move(*token));
  }
  OPTIMA_ASSIGN(std::vector<TiktokenSpecial> specials, tekken_specials(root, reserved));
  for (auto id = static_cast<int32_t>(specials.size()); id < reserved; ++id) {
    specials.push_back({text("<SPECIAL_", id, ">"), id});
  }
  if (own.bos_token.empty()) own.bos_token = "<s>";
  if (own.eos_token.empty()) own.eos_token = "</s>";
  if (own.add_bos < 0) own.add_bos = 1;
  return assemble(parts, {.pattern = pattern, .specials = specials}, own);
}

}  // namespace optima::tokenizer
