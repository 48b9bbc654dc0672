// Files name one token as eos and often forget the one that ends a turn.
#include "tokenizer/generation_ends.h"

#include <string_view>

namespace optima::tokenizer {
namespace {

// Tokens by which models end their turn, whatever the file says about eos. In some vocabularies
// "</s>" and the like are ordinary mark-up, so that only tokens marked as control count there.
struct EndName {
  std::string_view text;
  bool control_only;
};
constexpr EndName kEndNames[] = {
    {"<|im_end|>", false},
    {"<|eot_id|>", false},
    {"<|eom_id|>", false},
    {"<|eot|>", false},
    {"<|eom|>", false},
    {"<|end|>", false},
    {"<|return|>", false},
    {"<|call|>", false},
    {"<end_of_turn>", false},
    {"<end_of_utterance>", false},
    {"<|end_of_text|>", false},
    {"<|endoftext|>", false},
    {"<|end_of_turn|>", false},
    {"<|END_OF_TURN_TOKEN|>", false},
    {"<\xEF\xBD\x9C"
     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
     false},
    {"<EOT>", true},
    {"</s>", true},
    {"<eos>", true},
};

}  // namespace

void mark_known_ends(const Tokenizer& tokenizer, std::vector<uint8_t>& ends) {
  for (const EndName& name : kEndNames) {
    const int32_t id = tokenizer.find(name.text);
    if (id < 0) continue;
    const TokenKind kind = tokenizer.kind(id);
    const bool named_by_file = kind == TokenKind::control;
    const bool named_by_us = !name.control_only && kind == TokenKind::user_defined;
    if (named_by_file || named_by_us) ends[static_cast<size_t>(id)] = 1;
  }
}

}  // namespace optima::tokenizer
