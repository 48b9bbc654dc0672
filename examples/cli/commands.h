// One function a sub-command: adds it, its options and what it does to the program.
#pragma once

#include <CLI/CLI.hpp>

namespace cli {

void add_run(CLI::App& program);
void add_chat(CLI::App& program);
void add_tokenize(CLI::App& program);
void add_detokenize(CLI::App& program);
void add_template(CLI::App& program);
void add_inspect(CLI::App& program);
void add_perplexity(CLI::App& program);
void add_bench(CLI::App& program);
void add_probe(CLI::App& program);

}  // namespace cli
