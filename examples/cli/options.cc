// See options.h.
#include "options.h"

#include <CLI/CLI.hpp>

#include "cli_util.h"

namespace cli {
namespace {

CLI::App& of(void* app) {
  return *static_cast<CLI::App*>(app);
}

template <class Number>
void add_number(CLI::App& app, const std::string& name, Number& value, Range range,
                const std::string& help) {
  app.add_option(name, value, help)->check(CLI::Range(range.least, range.most));
}

}  // namespace

void Command::required(const std::string& name, std::string& value, const std::string& help) {
  of(app_).add_option(name, value, help)->required();
}

void Command::text(const std::string& name, std::string& value, const std::string& help) {
  of(app_).add_option(name, value, help);
}

void Command::text(const std::string& name, std::optional<std::string>& value,
                   const std::string& help) {
  of(app_).add_option(name, value, help);
}

void Command::texts(const std::string& name, std::vector<std::string>& values,
                    const std::string& help) {
  of(app_).add_option(name, values, help)->allow_extra_args(false);
}

void Command::list(const std::string& name, std::vector<std::string>& values,
                   const std::string& help) {
  of(app_).add_option(name, values, help);
}

void Command::ids(const std::string& name, std::optional<std::vector<int32_t>>& values,
                  const std::string& help) {
  of(app_).add_option(name, values, help)->delimiter(',');
}

void Command::number(const std::string& name, int64_t& value, Range range,
                     const std::string& help) {
  add_number(of(app_), name, value, range, help);
}

void Command::number(const std::string& name, int32_t& value, Range range,
                     const std::string& help) {
  add_number(of(app_), name, value, range, help);
}

void Command::number(const std::string& name, uint64_t& value, Range range,
                     const std::string& help) {
  add_number(of(app_), name, value, range, help);
}

void Command::number(const std::string& name, float& value, Range range, const std::string& help) {
  add_number(of(app_), name, value, range, help);
}

void Command::flag(const std::string& name, bool& value, const std::string& help) {
  of(app_).add_flag(name, value, help);
}

void Command::action(std::function<void()> run) {
  of(app_).callback(std::move(run));
}

struct Program::Impl {
  CLI::App app;
};

Program::Program(const std::string& name, const std::string& about, const std::string& version)
    : impl_(new Impl{CLI::App(about, name)}) {
  impl_->app.set_version_flag("--version", version);
  impl_->app.require_subcommand(1);
}

Program::~Program() = default;

Command Program::command(const std::string& name, const std::string& about) {
  return Command(impl_->app.add_subcommand(name, about));
}

void Program::run(int argc, char** argv) {
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      throw Failure(std::string(error.what()) + " (see optima --help)", kExitUsage);
    }
    impl_->app.exit(error);  // prints what --help and --version ask for
  }
}

}  // namespace cli
