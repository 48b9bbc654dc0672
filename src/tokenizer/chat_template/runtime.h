// What every operation of a rendering shares: the heap, the limits, and the place in the source
// that messages name. Operations that may run long or make much report their cost here first.
#pragma once

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/chat_template/value.h"

namespace optima::tokenizer::jinja {

// "line 3, column 7" of a byte of the source; both count from 1, columns count bytes.
std::string place_in(std::string_view source, size_t at);

class Runtime {
 public:
  Runtime(std::string_view source, const ChatTemplateLimits& limits, int64_t now_unix_s);

  // An error at the present place.
  Status fail(std::string_view what) const;
  Status fail(std::string_view what, ErrorNumbers numbers) const;
  // The template's own error: its message as it is.
  Status raise(std::string message) const { return {Code::invalid_argument, std::move(message)}; }

  // Counts work, in steps of about one evaluated node, and checks clock and memory now and then.
  Status tick(int64_t cost = 1) {
    work_ += cost;
    return work_ >= next_check_ ? check() : Status();
  }
  Status tick_bytes(size_t bytes) { return tick(1 + static_cast<int64_t>(bytes / 64)); }
  Status count_iteration();
  // To be asked before making a text of so many bytes, or so many items, in one go.
  Status allow_text(int64_t bytes);
  Status allow_items(int64_t count, int64_t bytes_each = sizeof(Value));
  // How many items allow_items would let pass.
  int64_t items_max(int64_t bytes_each) const {
    return std::max<int64_t>(heap.bytes_max() - heap.bytes(), 0) / bytes_each;
  }

  // A string value; an error when it is too long.
  Result<Value> string(std::string text);
  Result<Value> sequence(Flavor flavor, std::vector<Value> items);

  const ChatTemplateLimits& limits() const { return limits_; }
  int64_t now_unix_s() const { return now_unix_s_; }

  Heap heap;
  uint32_t at = 0;                                // byte of the source that is being evaluated
  int32_t nodes = 0;                              // nested evaluations
  int32_t calls = 0;                              // nested calls of macros
  static constexpr int32_t kNodesPerCall = 8;     // nested nodes allowed per unit of depth_max
  static constexpr int32_t kDepthMax = 128;       // keeps the stack within half a megabyte
  static constexpr int32_t kValueDepthMax = 128;  // nesting of lists and dicts that are walked

 private:
  Status check();

  std::string_view source_;
  ChatTemplateLimits limits_;
  int64_t now_unix_s_;
  int64_t work_ = 0;
  int64_t next_check_ = 0;
  int64_t iterations_ = 0;
  std::chrono::steady_clock::time_point deadline_;
};

// Counts one level of nested evaluation while it lives.
class NestingGuard {
 public:
  explicit NestingGuard(Runtime& runtime) : runtime_(runtime) { ++runtime_.nodes; }
  ~NestingGuard() { --runtime_.nodes; }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;
  Status check() const {
    const int32_t limit = runtime_.limits().depth_max * Runtime::kNodesPerCall;
    if (runtime_.nodes <= limit) return {};
    return runtime_.fail(text("nested deeper than the limit of ", runtime_.limits().depth_max),
                         {.wanted = runtime_.nodes, .limit = limit});
  }

 private:
  Runtime& runtime_;
};

// Text under construction, bounded like every other text and counted while it grows.
class TextBuffer {
 public:
  explicit TextBuffer(Runtime& runtime) : runtime_(runtime) {}
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  ~TextBuffer() { runtime_.heap.charge(-charged_); }

  Status append(std::string_view piece) {
    OPTIMA_TRY(runtime_.allow_text(static_cast<int64_t>(text_.size() + piece.size())));
    text_.append(piece);
    charged_ += static_cast<int64_t>(piece.size());
    runtime_.heap.charge(static_cast<int64_t>(piece.size()));
    return runtime_.tick_bytes(piece.size());
  }
  std::string take() { return std::move(text_); }
  Result<Value> take_value() { return runtime_.string(std::move(text_)); }

 private:
  Runtime& runtime_;
  std::string text_;
  int64_t charged_ = 0;
};

// Arguments of a call as they were written.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
  std::vector<Value> owners = {};  // keep the names alive that come from values
};

// Assigns arguments to the parameters `names`, as Python does; those not given are Kind::missing.
// The first `required` must be given. `what` names the callee in messages.
Result<std::vector<Value>> bind(const Runtime& runtime, std::string_view what,
                                const Arguments& arguments,
                                std::initializer_list<std::string_view> names, size_t required);

}  // namespace optima::tokenizer::jinja
