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

int run_program(int argc, char** argv) {
  CLI::App program("Runs large language models from GGUF files on this machine.", "optima");
  program.set_version_flag("--version", std::string("optima ") + optima_version());
  program.require_subcommand(1);
  cli::add_run(program);
  cli::add_chat(program);
  cli::add_tokenize(program);
  cli::add_detokenize(program);
  cli::add_template(program);
  cli::add_inspect(program);
  cli::add_perplexity(program);
  cli::add_bench(program);
  cli::add_probe(program);
  try {
    program.parse(argc, argv);  // runs the sub-command
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    return fail(std::string(error.what()) + " (see optima --help)", cli::kExitUsage);
  } catch (const cli::Failure& error) {
    return fail(error.what(), error.exit_status());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", cli::kExitFailure);
  } catch (const std::exception& error) {
    return fail(error.what(), cli::kExitFailure);
  }
}
