// One row a family, one row a name. The patterns are those of the models' own tokenizer
// definitions; they were written for engines where a failed alternative costs little, and so they
// do in PCRE2: no pattern nests one unbounded repeat in another.
#include "tokenizer/pretokenizer_families.h"

namespace optima::tokenizer {
namespace {

// The step Digits of the tokenizers library, whose table is a version newer than that of its
// regular expressions and ours: the numbers of Unicode 17 are named.
constexpr std::string_view kEachNumber = R"([\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}])";
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

// Letters that have a case, by the Unicode of the model's time.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-z)"
    R"(\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3})"
    R"(\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
    "]+";
constexpr std::string_view kDeepSeekSigns =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr std::string_view kDeepSeekCjk =
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view kEachLine = R"([\r\n])";

constexpr PretokenizerFamily kGpt2Nfc{.patterns = {kGpt2Words},
                                      .normalization = Normalization::nfc};

constexpr PretokenizerFamily kChatGlm{.patterns = kLlama3.patterns, .whole_word = WholeWord::take};

constexpr PretokenizerFamily kFalcon{
    .patterns = {kGpt2Words}, .digit_bytes = DigitBytes::apart, .punctuation = Punctuation::apart};

constexpr PretokenizerFamily kDeepSeekLlm{.patterns = {kEachLine, kDeepSeekLetters, kDeepSeekSigns,
                                                       R"(\s+$)", kDeepSeekCjk, kEachNumber}};

constexpr PretokenizerFamily kDeepSeekCoder{
    .patterns = {kEachLine, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekCjk, kEachNumber}};

constexpr PretokenizerFamily kDeepSeekV3{
    .patterns = {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
                 R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
                 R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+)"
                 R"(|\s+(?!\S)|\s+)"}};

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
    {"falcon", &kFalcon},
    {"mpt", &kGpt2Nfc},
    {"olmo", &kGpt2Nfc},
    {"chatglm-bpe", &kChatGlm},
    {"deepseek-llm", &kDeepSeekLlm},
    {"deepseek-coder", &kDeepSeekCoder},
    {"deepseek-v3", &kDeepSeekV3},
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
