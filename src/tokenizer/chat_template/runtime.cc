// Bounds on what one rendering may use. The clock is asked once per kCheckInterval units of work,
// where copying or scanning text counts by its length, so no run of cheap-looking operations
// escapes the time limit.
#include "tokenizer/chat_template/runtime.h"

#include <algorithm>

namespace optima::tokenizer::jinja {
namespace {

constexpr int64_t kCheckInterval = 1024;
constexpr int64_t kHeapBytesBase = 16 << 20;  // objects of a small rendering, whatever its output

}  // namespace

std::string place_in(std::string_view source, size_t at) {
  const std::string_view before = source.substr(0, std::min(at, source.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return text("line ", line, ", column ", before.size() - start + 1);
}

Runtime::Runtime(std::string_view source, const ChatTemplateLimits& limits, int64_t now_unix_s)
    : heap(kHeapBytesBase + 4 * std::clamp<int64_t>(limits.output_bytes_max, 0, INT64_MAX / 8)),
      source_(source),
      limits_(limits),
      now_unix_s_(now_unix_s) {
  limits_.depth_max = std::clamp(limits.depth_max, 1, kDepthMax);
  constexpr int64_t kTimeMax = 1'000'000'000;
  const int64_t time_ms = std::clamp<int64_t>(limits.time_ms_max, 0, kTimeMax);
  deadline_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(time_ms);
}

Status Runtime::fail(std::string_view what) const {
  return fail(what, {});
}

Status Runtime::fail(std::string_view what, ErrorNumbers numbers) const {
  return {Code::invalid_argument, text("template: ", place_in(source_, at), ": ", what), numbers};
}

Status Runtime::check() {
  next_check_ = work_ + kCheckInterval;
  if (heap.bytes() > heap.bytes_max()) {
    return fail(text("more than ", heap.bytes_max(), " bytes of values at once"),
                {.wanted = heap.bytes(), .limit = heap.bytes_max()});
  }
  if (std::chrono::steady_clock::now() >= deadline_) {
    return fail(text("longer than the limit of ", limits_.time_ms_max, " ms"),
                {.limit = limits_.time_ms_max});
  }
  return {};
}

Status Runtime::count_iteration() {
  if (++iterations_ > limits_.iterations_max) {
    return fail(text("more than ", limits_.iterations_max, " loop turns"),
                {.wanted = iterations_, .limit = limits_.iterations_max});
  }
  return tick();
}

Status Runtime::allow_text(int64_t bytes) {
  if (bytes > limits_.output_bytes_max || bytes > heap.bytes_max() - heap.bytes()) {
    const int64_t limit = std::min(limits_.output_bytes_max, heap.bytes_max() - heap.bytes());
    return fail(text("a text of ", bytes, " bytes; the limit is ", limit),
                {.wanted = bytes, .limit = limit});
  }
  return {};
}

Status Runtime::allow_items(int64_t count, int64_t bytes_each) {
  const int64_t limit = items_max(bytes_each);
  if (count > limit) {
    return fail(text("a list of ", count, " items; the limit is ", limit),
                {.wanted = count, .limit = limit});
  }
  return tick(count);
}

Result<Value> Runtime::string(std::string text) {
  OPTIMA_TRY(allow_text(static_cast<int64_t>(text.size())));
  OPTIMA_TRY(tick_bytes(text.size()));
  return heap.string(std::move(text));
}

Result<Value> Runtime::sequence(Flavor flavor, std::vector<Value> items) {
  OPTIMA_TRY(tick(static_cast<int64_t>(items.size() / 8)));
  return heap.sequence(flavor, std::move(items));
}

Result<std::vector<Value>> bind(const Runtime& runtime, std::string_view what,
                                const Arguments& arguments,
                                std::initializer_list<std::string_view> names, size_t required) {
  std::vector<Value> bound(names.size(), Value::missing());
  if (arguments.positional.size() > names.size()) {
    return runtime.fail(text("'", what, "' takes at most ", names.size(), " arguments, got ",
                             arguments.positional.size()));
  }
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto place = std::find(names.begin(), names.end(), name);
    if (place == names.end()) {
      return runtime.fail(text("'", what, "' has no argument '", name, "'"));
    }
    Value& slot = bound[static_cast<size_t>(place - names.begin())];
    if (!slot.is(Kind::missing)) {
      return runtime.fail(text("'", what, "' got argument '", name, "' twice"));
    }
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound[i].is(Kind::missing)) {
      return runtime.fail(text("'", what, "' needs argument '", names.begin()[i], "'"));
    }
  }
  return bound;
}

}  // namespace optima::tokenizer::jinja
