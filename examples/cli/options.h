// The command line, behind an interface of our own: CLI11 is a large header, and only options.cc
// has to read it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cli {

struct Range {
  double least, most;
};
constexpr Range kNotNegative{0, 1e12};
constexpr Range kShare{0, 1};

// One sub-command: what its options are called, where their values go and what it does. The
// references must live as long as the program's parsing.
class Command {
 public:
  explicit Command(void* app) : app_(app) {}

  void required(const std::string& name, std::string& value, const std::string& help);
  void text(const std::string& name, std::string& value, const std::string& help);
  void text(const std::string& name, std::optional<std::string>& value, const std::string& help);
  // One value each time that the option is given; `list`: also several after one another.
  void texts(const std::string& name, std::vector<std::string>& values, const std::string& help);
  void list(const std::string& name, std::vector<std::string>& values, const std::string& help);
  void ids(const std::string& name, std::optional<std::vector<int32_t>>& values,
           const std::string& help);
  void number(const std::string& name, int64_t& value, Range range, const std::string& help);
  void number(const std::string& name, int32_t& value, Range range, const std::string& help);
  void number(const std::string& name, uint64_t& value, Range range, const std::string& help);
  void number(const std::string& name, float& value, Range range, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  void action(std::function<void()> run);

 private:
  void* app_;  // a CLI::App
};

class Program {
 public:
  Program(const std::string& name, const std::string& about, const std::string& version);
  ~Program();
  Command command(const std::string& name, const std::string& about);
  // Runs the sub-command that is named. Throws Failure for wrong options; --help and --version
  // print and succeed.
  void run(int argc, char** argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cli
