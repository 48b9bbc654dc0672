// One row a family, one row a name. The patterns are those of the models' own tokenizer
// definitions; they were written for engines where a failed alternative costs little, and so they
// do in PCRE2: no pattern nests one unbounded repeat in another.
#include "tokenizer/pretokenizer_families.h"

namespace optima::tokenizer {
namespace {

constexpr std::string_view kEachNumber = R"(\p{N})";
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr PretokenizerFamily kGpt2{.patterns = {kGpt2Words}};
constexpr PretokenizerFamily kDigitsThenGpt2{.patterns = {kEachNumber, kGpt2Words}};
constexpr PretokenizerFamily kDigitsThenGpt2Nfc{.patterns = {kEachNumber, kGpt2Words},
                                                .normalization = Normalization::nfc};

// What GGUF means by "default": the splits of the first files that named no pre-tokeniser.
constexpr PretokenizerFamily kDefault{
    .patterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)", "[0-9][0-9][0-9]"}};

constexpr PretokenizerFamily kLlama3{
    .patterns = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                 R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    .whole_word = WholeWord::take,
    .bos_default = BosDefault::add};

constexpr PretokenizerFamily kQwen2{
    .patterns = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                 R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    .normalization = Normalization::nfc};

constexpr PretokenizerFamily kQwen35{
    .patterns = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
                 R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    .normalization = Normalization::nfc};

constexpr PretokenizerFamily kTekken{
    .patterns = {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                 R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                 R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    .whole_word = WholeWord::take,
    .bos_default = BosDefault::add};

constexpr PretokenizerFamily kO200k{
    .patterns = {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                 R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
                 R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                 R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
                 R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    .whole_word = WholeWord::take};

struct NamedFamily {
  std::string_view name;
  const PretokenizerFamily* family;
};
constexpr NamedFamily kNames[] = {
    {"default", &kDefault},
    {"gpt-2", &kGpt2},
    {"phi-2", &kGpt2},
    {"smollm", &kDigitsThenGpt2},
    {"starcoder", &kDigitsThenGpt2},
    {"refact", &kDigitsThenGpt2},
    {"command-r", &kDigitsThenGpt2Nfc},
    {"llama-bpe", &kLlama3},
    {"llama3", &kLlama3},
    {"llama-v3", &kLlama3},
    {"qwen2", &kQwen2},
    {"deepseek-r1-qwen", &kQwen2},
    {"qwen35", &kQwen35},
    {"tekken", &kTekken},
    {"gpt-4o", &kO200k},
    {"llama4", &kO200k},
};

}  // namespace

const PretokenizerFamily* find_pretokenizer_family(std::string_view name) {
  if (name.empty()) return &kDefault;
  for (const NamedFamily& row : kNames) {
    if (row.name == name) return row.family;
  }
  return nullptr;
}

std::string pretokenizer_names() {
  std::string names;
  for (const NamedFamily& row : kNames) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace optima::tokenizer
