// What the sub-commands share: owned handles of the C ABI, errors as one line, input and output
// byte for byte, progress for people, and the options that every command has.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "optima/optima.h"
#include "options.h"

namespace cli {

using Json = nlohmann::ordered_json;

// Ends the program: one line on stderr and this exit status.
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& message, int exit_status = kExitFailure)
      : std::runtime_error(message), exit_status_(exit_status) {}
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

template <auto kDestroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const {
    kDestroy(handle);
  }
};
using Engine = std::unique_ptr<optima_engine, Destroyer<optima_engine_destroy>>;
using Model = std::unique_ptr<optima_model, Destroyer<optima_model_destroy>>;
using Session = std::unique_ptr<optima_session, Destroyer<optima_session_destroy>>;
using Request = std::unique_ptr<optima_request, Destroyer<optima_request_destroy>>;
using Result = std::unique_ptr<optima_result, Destroyer<optima_result_destroy>>;
using Buffer = std::unique_ptr<optima_buffer, Destroyer<optima_buffer_destroy>>;
using Cancel = std::unique_ptr<optima_cancel, Destroyer<optima_cancel_destroy>>;
using Error = std::unique_ptr<optima_error, Destroyer<optima_error_destroy>>;

// Takes the error; throws Failure with its message unless the status is a success. A reference, so
// that check(call(&error), error) sees what the call wrote.
void check(optima_status status, optima_error*& error);

// A struct of the ABI, zeroed but for its size.
template <class T>
T sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

// Calls fn(arguments..., &out, &error) and returns the handle.
template <class Handle, class Fn, class... Arguments>
Handle make(Fn fn, Arguments... arguments) {
  typename Handle::pointer out = nullptr;
  optima_error* error = nullptr;
  check(fn(arguments..., &out, &error), error);
  return Handle(out);
}

// Bytes of a file, or of stdin for "-".
std::string read_file(const std::string& path);
// `text` when the option was given, else stdin.
std::string given_or_stdin(const std::optional<std::string>& text);
void write_out(std::string_view bytes);
// One line, also for text that is not valid UTF-8.
void write_json(const Json& value);

// One line on stderr that is written over; silent unless stderr is a terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& line);
  void clear();

 private:
  bool terminal_;
  size_t width_ = 0;
};

class Stopwatch {
 public:
  double ms() const {
    const auto spent = std::chrono::steady_clock::now() - start_;
    return std::chrono::duration<double, std::milli>(spent).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The options that every command with a model has.
struct ModelArgs {
  std::string path;
  std::string weights = "as-is";
  std::string repack = "when-free";
  int32_t threads = 0;
  std::string draft_path;  // of a draft model; empty = none
};
void add_model_options(Command& command, ModelArgs& args);
// --draft-model and --draft-tokens.
void add_draft_options(Command& command, ModelArgs& args, int64_t& draft_tokens);
void add_threads_option(Command& command, int32_t& threads);

struct LoadedModel {
  Engine engine;
  Model model;  // declared after the engine: destroyed before it
  Model draft;
  optima_model_info info{};
  double load_ms = 0;
};
// Opens the file, with progress.
LoadedModel open_model(const ModelArgs& args, optima_content content);
Engine make_engine(int threads);

struct SessionArgs {
  int64_t context_tokens = 0;
  bool reference = false;
  bool deterministic = false;
  std::string kv_type = "f16";
};
void add_context_option(Command& command, SessionArgs& args);
// Throws where options exclude each other.
optima_path path_of(const SessionArgs& args);
const char* path_name(const SessionArgs& args);
optima_kv_type kv_type_of(const SessionArgs& args);
void add_kv_type_option(Command& command, SessionArgs& args);
// --reference, --deterministic and --kv-type.
void add_path_options(Command& command, SessionArgs& args);
Session make_session(const LoadedModel& loaded, const SessionArgs& args);

std::vector<int32_t> tokenize(const optima_model* model, std::string_view text, uint32_t flags);
std::string detokenize(const optima_model* model, const std::vector<int32_t>& ids, uint32_t flags);
optima_counters counters_of(const optima_result* result);

// The middle value, the mean of the middle two; 0 for no values.
double median(std::vector<double> values);

}  // namespace cli
