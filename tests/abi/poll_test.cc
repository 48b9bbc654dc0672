// optima_submit, optima_poll, optima_step and optima_request: several requests at once, events that
// own their bytes, cancel and destroy at any time.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "fixture.h"

namespace optima_test {
namespace {

Request submit(const Session& session, const optima_request_desc& desc) {
  optima_request* request = nullptr;
  must([&](optima_error** err) { return optima_submit(session.get(), &desc, &request, err); });
  return Request(request);
}

Engine host_driven() {
  auto options = sized<optima_engine_options>();
  options.drive = OPTIMA_DRIVE_HOST;
  return make_engine(options);
}

// Everything that was polled, by request id.
struct Inbox {
  std::map<uint64_t, std::vector<int32_t>> tokens;
  std::map<uint64_t, optima_finish> finished;
  std::map<uint64_t, void*> users;
  std::map<uint64_t, std::string> text;

  size_t take(const Engine& engine, int32_t timeout_ms, size_t capacity = 4) {
    std::vector<optima_event> events(capacity);
    size_t count = 0;
    must([&](optima_error** err) {
      return optima_poll(engine.get(), events.data(), capacity, sizeof events[0], timeout_ms,
                         &count, err);
    });
    for (size_t i = 0; i < count; ++i) {
      optima_event& event = events[i];
      EXPECT_NE(event.request_id, 0u);
      users[event.request_id] = event.user;
      if (event.type == OPTIMA_EVENT_TOKEN) tokens[event.request_id].push_back(event.token);
      if (event.type == OPTIMA_EVENT_DONE) finished[event.request_id] = event.finish;
      text[event.request_id].append(event.text, static_cast<size_t>(event.text_bytes));
      optima_event_release(&event);
      EXPECT_EQ(event.text, nullptr);
      optima_event_release(&event);  // Again: nothing.
    }
    return count;
  }
};

class PollTest : public TinyTest {
 protected:
  nlohmann::json golden_ = tiny_golden();
  std::string prompt_ = golden_["prompt"];
  std::vector<int32_t> wanted_ = golden_["continuation_ids"];

  optima_request_desc desc(int64_t max_tokens) {
    auto out = ask(prompt_.c_str(), max_tokens);
    out.flags = OPTIMA_REQUEST_IGNORE_EOS;
    return out;
  }
  optima_request_desc golden_desc() { return desc(static_cast<int64_t>(wanted_.size())); }
};

TEST_F(PollTest, ManyRequestsAtOnce) {
  constexpr size_t kCount = 5;
  std::vector<Session> sessions;
  std::vector<Request> requests;
  int released[kCount] = {};
  for (size_t i = 0; i < kCount; ++i) {
    sessions.push_back(make_session(model_));
    auto d = golden_desc();
    d.user = &released[i];
    d.release = count_release;
    requests.push_back(submit(sessions.back(), d));
  }
  Inbox inbox;
  while (inbox.finished.size() < kCount) ASSERT_GT(inbox.take(engine_, 10'000), 0u);
  for (size_t i = 0; i < kCount; ++i) {
    const uint64_t id = optima_request_id(requests[i].get());
    EXPECT_EQ(inbox.tokens[id], wanted_);
    EXPECT_EQ(inbox.users[id], &released[i]);
    EXPECT_EQ(inbox.finished[id], OPTIMA_FINISH_LENGTH);
    EXPECT_EQ(released[i], 1) << "after the done event was released";
    EXPECT_EQ(optima_request_done(requests[i].get()), 1);
    optima_result* raw = nullptr;
    ASSERT_EQ(optima_request_result(requests[i].get(), &raw, nullptr), OPTIMA_OK);
    const Result result(raw);
    EXPECT_EQ(token_ids(result), wanted_);
    EXPECT_EQ(inbox.text[id], optima_result_text(raw, nullptr));
  }
  EXPECT_EQ(inbox.take(engine_, -1), 0u) << "nothing runs: no wait";
}

TEST_F(PollTest, OneRequestASessionAndNoCallback) {
  auto d = desc(0);
  const Request first = submit(session_, d);
  optima_request* second = nullptr;
  EXPECT_EQ(optima_submit(session_.get(), &d, &second, nullptr), OPTIMA_E_BUSY);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(optima_request_cancel(first.get()), OPTIMA_OK);
  d.on_event = [](void*, const optima_event*) -> int32_t { return 0; };
  int released = 0;
  d.user = &released;
  d.release = count_release;
  const Session other = make_session(model_);
  EXPECT_EQ(optima_submit(other.get(), &d, &second, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(released, 1);
}

TEST_F(PollTest, CancelEndsWithADoneEvent) {
  const Request request = submit(session_, desc(0));
  int32_t done = 1;
  ASSERT_EQ(optima_request_wait(request.get(), 0, &done, nullptr), OPTIMA_OK);
  EXPECT_EQ(optima_request_cancel(request.get()), OPTIMA_OK);
  ASSERT_EQ(optima_request_wait(request.get(), -1, &done, nullptr), OPTIMA_OK);
  EXPECT_EQ(done, 1);
  Inbox inbox;
  while (inbox.finished.empty()) ASSERT_GT(inbox.take(engine_, 10'000), 0u);
  EXPECT_EQ(inbox.finished.begin()->second, OPTIMA_FINISH_CANCELLED);
  EXPECT_EQ(optima_session_reset(session_.get(), nullptr), OPTIMA_OK) << "the session is free";
}

TEST_F(PollTest, ResultBeforeTheEndIsAStateError) {
  const Engine engine = host_driven();
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  const Request request = submit(session, desc(2));
  optima_result* result = nullptr;
  EXPECT_EQ(optima_request_result(request.get(), &result, nullptr), OPTIMA_E_STATE);
  EXPECT_EQ(result, nullptr);
}

TEST_F(PollTest, HostTurnsTheEngine) {
  const Engine engine = host_driven();
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  const Request request = submit(session, golden_desc());
  Inbox inbox;
  EXPECT_EQ(inbox.take(engine, 0), 0u);
  int turns = 0;
  for (int32_t worked = 1; worked != 0; ++turns) {
    must([&](optima_error** err) { return optima_step(engine.get(), &worked, err); });
    while (inbox.take(engine, 0) > 0) {
    }
  }
  EXPECT_GE(turns, static_cast<int>(wanted_.size()));
  EXPECT_EQ(inbox.tokens[optima_request_id(request.get())], wanted_);
  EXPECT_EQ(inbox.finished.size(), 1u);
  // The blocking call turns it by itself.
  const Session second = make_session(model);
  EXPECT_EQ(token_ids(generate(second, golden_desc())), wanted_);
  // Another drive refuses.
  EXPECT_EQ(optima_step(engine_.get(), nullptr, nullptr), OPTIMA_E_STATE);
}

// A descriptor of the host's, closed at the end.
class WakeupFd {
 public:
  explicit WakeupFd(const Engine& engine) {
    must([&](optima_error** err) { return optima_engine_wakeup_fd(engine.get(), &fd_, err); });
  }
  ~WakeupFd() { close(fd_); }
  bool readable(int timeout_ms) const {
    pollfd entry{fd_, POLLIN, 0};
    return poll(&entry, 1, timeout_ms) == 1 && (entry.revents & POLLIN) != 0;
  }
  int fd() const { return fd_; }

 private:
  int32_t fd_ = -1;
};

TEST_F(PollTest, TheDescriptorIsReadableExactlyWhileThereAreEvents) {
  const Engine engine = host_driven();
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  const WakeupFd early(engine);
  EXPECT_FALSE(early.readable(0));
  const Request request = submit(session, desc(3));
  EXPECT_FALSE(early.readable(0)) << "nothing has happened yet";
  Inbox inbox;
  int readable = 0;
  for (int32_t worked = 1; worked != 0;) {
    must([&](optima_error** err) { return optima_step(engine.get(), &worked, err); });
    if (!early.readable(0)) continue;
    ++readable;
    const WakeupFd late(engine);
    EXPECT_TRUE(late.readable(0)) << "made while there are events";
    EXPECT_NE(late.fd(), early.fd());
    size_t waiting = 0;
    while (early.readable(0)) waiting += inbox.take(engine, 0, 1);
    EXPECT_GT(waiting, 0u);
    EXPECT_EQ(inbox.take(engine, 0), 0u) << "not readable: nothing is there";
    EXPECT_FALSE(late.readable(0));
  }
  EXPECT_EQ(readable, 3) << "once a step, not more often";
  EXPECT_EQ(inbox.finished.size(), 1u);
  EXPECT_NE(fcntl(early.fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(optima_engine_wakeup_fd(engine.get(), nullptr, nullptr), OPTIMA_E_ARG);
}

// As a host with an event loop of its own does it: asleep until there is something to take.
TEST_F(PollTest, TheDescriptorWakesAnEventLoop) {
  const WakeupFd wakeup(engine_);
  std::vector<Session> sessions;
  std::vector<Request> requests;
  for (int i = 0; i < 4; ++i) {
    sessions.push_back(make_session(model_));
    requests.push_back(submit(sessions.back(), golden_desc()));
  }
  Inbox inbox;
  int idle = 0;
  while (inbox.finished.size() < requests.size()) {
    ASSERT_TRUE(wakeup.readable(10'000));
    idle += inbox.take(engine_, 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(idle, 0) << "woken for nothing";
  EXPECT_FALSE(wakeup.readable(0));
  for (const Request& request : requests)
    EXPECT_EQ(inbox.tokens[optima_request_id(request.get())], wanted_);
}

TEST_F(PollTest, TheDescriptorOutlivesTheEngine) {
  const WakeupFd wakeup(engine_);
  bool woken = false;
  std::thread loop([&] { woken = wakeup.readable(10'000); });
  session_.reset();
  model_.reset();
  engine_.reset();
  loop.join();
  EXPECT_TRUE(woken) << "a loop that waits learns that there is nothing to wait for";
  EXPECT_TRUE(wakeup.readable(0));
}

TEST_F(PollTest, EventsOfOtherSizes) {
  struct Newer {
    optima_event event;
    unsigned char tail[40];
  };
  const Request request = submit(session_, desc(1));
  int32_t done = 0;
  ASSERT_EQ(optima_request_wait(request.get(), -1, &done, nullptr), OPTIMA_OK);
  std::vector<Newer> events(3);
  std::memset(static_cast<void*>(events.data()), 0xee, sizeof(Newer) * events.size());
  size_t count = 0;
  must([&](optima_error** err) {
    return optima_poll(engine_.get(), &events[0].event, events.size(), sizeof(Newer), 1000, &count,
                       err);
  });
  ASSERT_GT(count, 0u);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(events[i].event.struct_size, sizeof(Newer));
    EXPECT_EQ(events[i].tail[39], 0);
    optima_event_release(&events[i].event);
  }
  auto one = sized<optima_event>();
  for (const size_t size : {size_t{0}, sizeof one - 8, SIZE_MAX}) {
    EXPECT_EQ(optima_poll(engine_.get(), &one, 1, size, 0, &count, nullptr), OPTIMA_E_ARG);
  }
  EXPECT_EQ(optima_poll(engine_.get(), nullptr, 1, sizeof one, 0, &count, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(optima_poll(engine_.get(), &one, 1, sizeof one, 0, nullptr, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(optima_poll(engine_.get(), nullptr, 0, sizeof one, 0, &count, nullptr), OPTIMA_OK);
}

TEST_F(PollTest, EventsOutliveEverything) {
  optima_event event = sized<optima_event>();
  int released = 0;
  {
    auto d = desc(0);
    d.user = &released;
    d.release = count_release;
    const Request request = submit(session_, d);
    size_t count = 0;
    do {
      optima_event_release(&event);
      must([&](optima_error** err) {
        return optima_poll(engine_.get(), &event, 1, sizeof event, 10'000, &count, err);
      });
      ASSERT_EQ(count, 1u);
    } while (event.type != OPTIMA_EVENT_TOKEN);
  }
  session_.reset();
  model_.reset();
  engine_.reset();
  EXPECT_EQ(event.token, wanted_[0]);
  EXPECT_EQ(event.text[event.text_bytes], '\0');
  EXPECT_EQ(event.user, &released);
  EXPECT_EQ(released, 0) << "the event may still be read";
  optima_event_release(&event);
  EXPECT_EQ(released, 1);
}

TEST_F(PollTest, UnpolledEventsAreDroppedWithTheEngine) {
  int released = 0;
  auto d = desc(3);
  d.user = &released;
  d.release = count_release;
  Request request = submit(session_, d);
  int32_t done = 0;
  ASSERT_EQ(optima_request_wait(request.get(), -1, &done, nullptr), OPTIMA_OK);
  EXPECT_EQ(released, 0);
  engine_.reset();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(optima_request_done(request.get()), 1);
  EXPECT_EQ(optima_submit(session_.get(), &d, nullptr, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(released, 2);
  optima_request* refused = nullptr;
  EXPECT_EQ(optima_submit(session_.get(), &d, &refused, nullptr), OPTIMA_E_STATE);
  EXPECT_EQ(released, 3);
}

TEST_F(PollTest, DestroyInEveryOrderWhileRunning) {
  int order[] = {0, 1, 2, 3};
  do {
    Engine engine = make_engine();
    Model model = open_tiny(engine);
    Session session = make_session(model);
    Request request = submit(session, desc(0));
    for (const int what : order) {
      if (what == 0) engine.reset();
      if (what == 1) model.reset();
      if (what == 2) session.reset();
      if (what == 3) request.reset();
    }
  } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST_F(PollTest, SessionsOnManyThreads) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<std::vector<int32_t>> outputs(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &outputs] {
      const Session session = make_session(model_);
      for (int i = 0; i < 3; ++i) {
        must([&](optima_error** err) { return optima_session_reset(session.get(), err); });
        outputs[static_cast<size_t>(t)] = token_ids(generate(session, golden_desc()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& output : outputs) EXPECT_EQ(output, wanted_);
}

TEST(QueueTest, AFullQueueIsBusyWithNumbers) {
  auto options = sized<optima_engine_options>();
  options.drive = OPTIMA_DRIVE_HOST;
  options.queue_max = 1;
  const Engine engine = make_engine(options);
  const Model model = open_tiny(engine);
  const Session first = make_session(model), second = make_session(model);
  const auto desc = ask("a", 1);
  const Request waiting = submit(first, desc);
  optima_request* none = nullptr;
  const Outcome refused = outcome_of(
      [&](optima_error** err) { return optima_submit(second.get(), &desc, &none, err); });
  EXPECT_EQ(refused.status, OPTIMA_E_BUSY);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(optima_error_wanted(refused.error.get()), 2);
  EXPECT_EQ(optima_error_available(refused.error.get()), 0);
  EXPECT_EQ(optima_error_limit(refused.error.get()), 1);
  EXPECT_NE(refused.message().find("1 requests wait, the limit is 1"), std::string::npos);
  int32_t worked = 0;
  must([&](optima_error** err) { return optima_step(engine.get(), &worked, err); });
  const Request accepted = submit(second, desc);
}

TEST(QueueTest, PrioritiesAreChecked) {
  const Engine engine = make_engine();
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  auto desc = ask("a", 1);
  desc.priority = -100;
  generate(session, desc);
  desc.priority = 101;
  EXPECT_EQ(optima_generate(session.get(), &desc, nullptr, nullptr), OPTIMA_E_ARG);
}

}  // namespace
}  // namespace optima_test
