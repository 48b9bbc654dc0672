// Compiles a grammar from arbitrary bytes, and, when it compiles, walks along its masks: whatever a
// mask allows must be accepted, and a state that cannot go on must say so. OPTIMA_FUZZ_<kind> tells
// the front end.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/grammar/grammar.h"

namespace {

using namespace optima::sampling;

#if defined(OPTIMA_FUZZ_gbnf)
constexpr GrammarKind kKind = GrammarKind::gbnf;
#elif defined(OPTIMA_FUZZ_regex)
constexpr GrammarKind kKind = GrammarKind::regex;
#else
constexpr GrammarKind kKind = GrammarKind::json_schema;
#endif

constexpr int kSteps = 12;

std::shared_ptr<const TokenTable> make_table() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* text : {"\":", "aa", "true", "{\"", "},", "123", "\\u00", "    ", "\xc3\xa9"})
    bytes.emplace_back(text);
  std::vector<TokenUse> uses(bytes.size(), TokenUse::text);
  bytes.emplace_back();
  uses.push_back(TokenUse::end);
  const std::vector<std::string_view> views(bytes.begin(), bytes.end());
  return TokenTable::create(views, uses).take();
}

void walk(const std::shared_ptr<const Grammar>& grammar, uint64_t seed) {
  GrammarState state(grammar);
  for (int step = 0; step < kSteps && !state.is_finished(); ++step) {
    optima::Result<std::shared_ptr<const TokenMask>> mask = state.mask();
    if (!mask.ok()) return;
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < grammar->tokens().size(); ++token)
      if ((*mask)->allows(token)) allowed.push_back(token);
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const optima::Status status = state.accept(allowed[(seed >> 33) % allowed.size()]);
    // A limit may be met on the way; a refusal of what was allowed may not.
    if (status.code() == optima::Code::invalid_argument) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const TokenTable> table = make_table();
  optima::sampling::grammar::Limits limits;
  limits.states = 1 << 14;
  limits.work = 1 << 12;
  limits.mask_work = 1 << 18;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto grammar = Grammar::compile({kKind, text}, table, limits);
  if (grammar.ok()) walk(*grammar, size * 31 + (size > 0 ? data[size / 2] : 0u));
  return 0;
}
