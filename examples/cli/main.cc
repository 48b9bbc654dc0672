// The program `optima`. Answers go to stdout, progress to stderr when that is a terminal; an error
// is one line on stderr and a non-zero exit status: 1 when something failed, 2 for wrong options.
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>

#include "cli_util.h"
#include "commands.h"

namespace {

int fail(std::string message, int exit_status) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "optima: %s\n", message.c_str());
  return exit_status;
}

void run_program(int argc, char** argv) {
  cli::Program program("optima", "Runs large language models from GGUF files on this machine.",
                       std::string("optima ") + optima_version());
  cli::add_run(program);
  cli::add_chat(program);
  cli::add_embed(program);
  cli::add_tokenize(program);
  cli::add_detokenize(program);
  cli::add_template(program);
  cli::add_inspect(program);
  cli::add_perplexity(program);
  cli::add_bench(program);
  cli::add_probe(program);
  program.run(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run_program(argc, argv);
    return 0;
  } catch (const cli::Failure& error) {
    return fail(error.what(), error.exit_status());
  } catch (const std::bad_alloc&) {
    return fail("out of memory", cli::kExitFailure);
  } catch (const std::exception& error) {
    return fail(error.what(), cli::kExitFailure);
  }
}
