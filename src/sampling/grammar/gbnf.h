// GBNF, the grammar language of llama.cpp:
//   name ::= alternative | alternative        one rule a line; a line goes on after | and in ( )
//   "text"  [a-zA-Z]  [^a-z]  .  name  ( )    * + ? {m} {m,} {m,n}         # comment
// with the escapes \n \r \t \\ \" \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH. The text of an answer is that
// of the rule `root`. Text is UTF-8; a class stands for one code point.
#pragma once

#include <string_view>

#include "base/status.h"
#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

Result<StateId> compile_gbnf(std::string_view text, Builder& builder);

}  // namespace optima::sampling::grammar
