// Unknown filters and tests are found when a template is parsed, as Jinja does: except under an
// `if`, where they are errors only once they are reached.
#pragma once

#include "tokenizer/chat_template/ast.h"

namespace optima::tokenizer::jinja {

Status check_names(const ParsedTemplate& program);

}  // namespace optima::tokenizer::jinja
