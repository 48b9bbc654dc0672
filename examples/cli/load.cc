// One thread submits what is due and polls; times are those at which an event came out of the poll,
// which is what a host can see.
#include "load.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

// What happens to one request.
struct Running {
  const LoadRequest* asked = nullptr;
  Request request;
  RequestTimes times;
};

class Loop {
 public:
  Loop(const LoadedModel& loaded, const LoadArgs& args, std::vector<LoadRequest> requests)
      : loaded_(loaded), args_(args), requests_(std::move(requests)) {
    std::stable_sort(requests_.begin(), requests_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.round, a.arrival_s) < std::pair(b.round, b.arrival_s);
    });
    running_.resize(requests_.size());
    for (size_t i = 0; i < requests_.size(); ++i) queue_of_[requests_[i].session].push_back(i);
  }

  LoadReport run() {
    for (const auto& [session, queue] : queue_of_) {
      SessionArgs args = args_.session;
      args.context_tokens = 1;
      for (const size_t i : queue)
        args.context_tokens +=
            static_cast<int64_t>(requests_[i].prompt.size()) + requests_[i].output_tokens;
      sessions_.emplace(session, make_session(loaded_, args));
      next_[session] = 0;
    }
    const optima_metrics before = metrics_of(loaded_);
    start_ = Clock::now();
    while (done_ < requests_.size()) {
      if (requests_[done_].round > round_) {  // sorted: those before are the done ones
        round_ = requests_[done_].round;
        round_start_s_ = now_s();
      }
      submit_due();
      poll();
    }
    LoadReport out = report();
    const optima_metrics after = metrics_of(loaded_);
    out.kv_pages_held = after.kv_pages_held;
    out.batches = static_cast<int64_t>(after.batches - before.batches);
    out.turn_s = after.turn_seconds - before.turn_seconds;
    out.compute_s = after.compute_seconds - before.compute_seconds;
    return out;
  }

 private:
  static optima_metrics metrics_of(const LoadedModel& loaded) {
    auto metrics = sized<optima_metrics>();
    optima_error* error = nullptr;
    check(optima_metrics_query(loaded.engine.get(), &metrics, &error), error);
    return metrics;
  }

  double now_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // When a request of this round is due; those of later rounds are not yet.
  std::optional<double> due_s(size_t index) const {
    if (requests_[index].round > round_) return std::nullopt;
    return round_start_s_ + requests_[index].arrival_s;
  }

  // A session runs one request at a time: the next one waits for the one before.
  void submit_due() {
    for (const auto& [session, queue] : queue_of_) {
      const size_t at = next_[session];
      if (at >= queue.size() || busy_[session]) continue;
      const std::optional<double> due = due_s(queue[at]);
      if (!due || *due > now_s()) continue;
      submit(queue[at]);
      busy_[session] = true;
      ++next_[session];
    }
  }

  void submit(size_t index) {
    const LoadRequest& asked = requests_[index];
    Running& running = running_[index];
    running.asked = &asked;
    // A request that had to wait for its session arrived when it was due.
    running.times = {*due_s(index), {}, !asked.prompt.empty(), asked.session};
    auto desc = sized<optima_request_desc>();
    desc.draft_tokens = args_.draft_tokens;
    const int32_t none = 0;
    desc.prompt_ids = asked.prompt.empty() ? &none : asked.prompt.data();
    desc.prompt_id_count = asked.prompt.size();
    desc.max_tokens = asked.output_tokens;
    desc.flags = OPTIMA_REQUEST_IGNORE_EOS | OPTIMA_REQUEST_APPEND;
    desc.user = &running;
    running.request = make<Request>(optima_submit, sessions_.at(asked.session).get(), &desc);
  }

  // Until the next arrival at most.
  int32_t wait_ms() const {
    double wait_s = 1.0;
    for (const auto& [session, queue] : queue_of_) {
      const size_t at = next_.at(session);
      const auto busy = busy_.find(session);
      if (at >= queue.size() || (busy != busy_.end() && busy->second)) continue;
      if (const auto due = due_s(queue[at])) wait_s = std::min(wait_s, *due - now_s());
    }
    return static_cast<int32_t>(std::max(0.0, wait_s) * 1000) + 1;
  }

  void poll() {
    optima_event events[64];
    size_t count = 0;
    optima_error* error = nullptr;
    check(optima_poll(loaded_.engine.get(), events, std::size(events), sizeof events[0], wait_ms(),
                      &count, &error),
          error);
    const double time = now_s();
    for (size_t i = 0; i < count; ++i) {
      auto& running = *static_cast<Running*>(events[i].user);
      if (events[i].type == OPTIMA_EVENT_TOKEN) running.times.token_s.push_back(time);
      if (events[i].type == OPTIMA_EVENT_DONE) {
        busy_[running.asked->session] = false;
        ++done_;
      }
      optima_event_release(&events[i]);
    }
    if (count == 0 &&
        std::none_of(busy_.begin(), busy_.end(), [](const auto& entry) { return entry.second; })) {
      // Nothing runs: poll() does not wait then.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  LoadReport report() {
    LoadReport out;
    out.requests = static_cast<int64_t>(requests_.size());
    out.sessions = static_cast<int64_t>(queue_of_.size());
    out.seconds = now_s();
    for (const Running& running : running_) {
      const auto result = make<Result>(optima_request_result, running.request.get());
      const optima_counters counters = counters_of(result.get());
      const auto own = static_cast<int64_t>(running.asked->prompt.size());
      out.prompt_tokens += own;
      // What the session itself held is no hit.
      out.cached_tokens +=
          std::max<int64_t>(0, counters.cached_tokens - (counters.prompt_tokens - own));
      out.output_tokens += counters.output_tokens;
      out.draft_tokens += counters.draft_tokens;
      out.draft_tokens_accepted += counters.draft_tokens_accepted;
      out.times.push_back(running.times);
    }
    return out;
  }

  const LoadedModel& loaded_;
  LoadArgs args_;
  std::vector<LoadRequest> requests_;
  std::vector<Running> running_;
  std::map<int64_t, std::vector<size_t>> queue_of_;  // session -> its requests, in order
  std::map<int64_t, Session> sessions_;
  std::map<int64_t, size_t> next_;
  std::map<int64_t, bool> busy_;
  Clock::time_point start_;
  int64_t round_ = 0;
  double round_start_s_ = 0;
  size_t done_ = 0;
};

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == ',') {
      out.emplace_back();
    } else if (c != '\r') {
      out.back() += c;
    }
  }
  return out;
}

// Seconds of "12.5", or of a date and time "2023-11-16 18:15:46.6805900" within its month.
double seconds_of(const std::string& cell) {
  int day = 0, hour = 0, minute = 0;
  double second = 0;
  if (std::sscanf(cell.c_str(), "%*d-%*d-%d %d:%d:%lf", &day, &hour, &minute, &second) == 4)
    return ((day * 24.0 + hour) * 60.0 + minute) * 60.0 + second;
  return std::stod(cell);
}

struct Columns {
  size_t arrival, prompt, output;
  std::optional<size_t> session;
};

Columns columns_of(const std::string& path, const std::vector<std::string>& names) {
  const auto column = [&](const char* name) -> std::optional<size_t> {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return std::nullopt;
    return static_cast<size_t>(at - names.begin());
  };
  const char* const forms[][3] = {{"arrival_s", "prompt_tokens", "output_tokens"},
                                  {"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
                                  {"Timestamp", "Request tokens", "Response tokens"}};
  for (const auto& form : forms) {
    const auto arrival = column(form[0]), prompt = column(form[1]), output = column(form[2]);
    if (arrival && prompt && output) return {*arrival, *prompt, *output, column("session")};
  }
  throw Failure(path + ": the first line names the columns of no known trace");
}

double decode_tokens_per_s(const std::vector<RequestTimes>& requests) {
  std::vector<std::pair<double, double>> decoding;
  size_t tokens = 0;
  for (const RequestTimes& times : requests) {
    if (times.token_s.empty()) continue;
    decoding.emplace_back(times.has_prompt ? times.token_s.front() : times.submitted_s,
                          times.token_s.back());
    tokens += times.token_s.size() - (times.has_prompt ? 1 : 0);
  }
  std::sort(decoding.begin(), decoding.end());
  double seconds = 0, end = 0;
  for (const auto& [from, to] : decoding) {
    seconds += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

std::vector<int32_t> spread_ids(int64_t count, int64_t stream, int64_t vocabulary) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<int32_t>((i * 7919 + 13 + stream * 101) % vocabulary));
  return out;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

LoadReport run_load(const LoadedModel& loaded, const LoadArgs& args,
                    std::vector<LoadRequest> requests) {
  return Loop(loaded, args, std::move(requests)).run();
}

std::vector<LoadRequest> simultaneous(const LoadShape& shape, int64_t vocabulary) {
  std::vector<LoadRequest> out;
  for (int64_t s = 0; s < shape.sessions; ++s) {
    LoadRequest request{0, s, spread_ids(shape.shared, 0, vocabulary), 1, 0};
    const std::vector<int32_t> own = spread_ids(shape.prompt, s + 1, vocabulary);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    out.push_back(std::move(request));
    if (shape.tokens > 0) out.push_back({0, s, {}, shape.tokens, 1});
  }
  return out;
}

std::vector<LoadRequest> read_trace(const std::string& path, int64_t vocabulary) {
  const std::string all = read_file(path);
  std::vector<LoadRequest> out;
  std::optional<Columns> columns;
  double first = 0;
  for (size_t begin = 0, line = 1; begin < all.size(); ++line) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const std::vector<std::string> row = cells(all.substr(begin, end - begin));
    begin = end + 1;
    if (row.size() == 1 && row[0].empty()) continue;
    if (!columns) {
      columns = columns_of(path, row);
      continue;
    }
    try {
      LoadRequest request;
      const double arrival = seconds_of(row.at(columns->arrival));
      if (out.empty()) first = arrival;
      request.arrival_s = arrival - first;
      request.session =
          columns->session ? std::stoll(row.at(*columns->session)) : static_cast<int64_t>(line);
      request.prompt = spread_ids(std::max<int64_t>(1, std::stoll(row.at(columns->prompt))),
                                  static_cast<int64_t>(line), vocabulary);
      request.output_tokens = std::max<int64_t>(1, std::stoll(row.at(columns->output)));
      out.push_back(std::move(request));
    } catch (const std::logic_error&) {  // no number, or too few cells
      throw Failure(path + ": line " + std::to_string(line) + " is no request");
    }
  }
  if (out.empty()) throw Failure(path + ": no requests");
  return out;
}

Json load_json(const LoadReport& report) {
  Json out = {{"sessions", report.sessions},
              {"requests", report.requests},
              {"seconds", report.seconds},
              {"prompt_tokens", report.prompt_tokens},
              {"cached_tokens", report.cached_tokens},
              {"hit_rate", ratio(static_cast<double>(report.cached_tokens),
                                 static_cast<double>(report.prompt_tokens))},
              {"output_tokens", report.output_tokens},
              {"total_decode_tokens_per_s", decode_tokens_per_s(report.times)},
              {"output_tokens_per_s", static_cast<double>(report.output_tokens) / report.seconds},
              {"draft_tokens", report.draft_tokens},
              {"draft_tokens_accepted", report.draft_tokens_accepted},
              {"kv_pages_held", report.kv_pages_held},
              {"batches", report.batches},
              {"outside_compute_share", ratio(report.turn_s - report.compute_s, report.turn_s)}};
  std::vector<double> ttft_ms, inter_token_ms;
  for (const RequestTimes& times : report.times) {
    if (times.has_prompt && !times.token_s.empty())
      ttft_ms.push_back((times.token_s.front() - times.submitted_s) * 1e3);
    for (size_t i = 1; i < times.token_s.size(); ++i)
      inter_token_ms.push_back((times.token_s[i] - times.token_s[i - 1]) * 1e3);
  }
  const std::pair<const char*, const std::vector<double>*> times[] = {
      {"ttft_ms", &ttft_ms}, {"inter_token_ms", &inter_token_ms}};
  for (const auto& [name, values] : times)
    for (const auto& [suffix, share] : {std::pair{"_p50", 0.5}, {"_p95", 0.95}, {"_p99", 0.99}})
      out[std::string(name) + suffix] = percentile(*values, share);
  return out;
}

}  // namespace cli
