// One function a sub-command: adds it, its options and what it does to the program.
#pragma once

#include "options.h"

namespace cli {

void add_run(Program& program);
void add_chat(Program& program);
void add_embed(Program& program);
void add_tokenize(Program& program);
void add_detokenize(Program& program);
void add_template(Program& program);
void add_inspect(Program& program);
void add_perplexity(Program& program);
void add_bench(Program& program);
void add_probe(Program& program);

}  // namespace cli
