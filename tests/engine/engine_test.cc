// The engine's behaviour towards its host: sessions, limits, cancellation, rollback, deadlines,
// polling, memory limits, threads.
#include <atomic>
#include <thread>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

const TinyModel& tiny() {
  static const TinyModel model = tiny_model("llama-q8_0");
  return model;
}

std::vector<int32_t> repeat(const std::vector<int32_t>& ids, size_t count) {
  std::vector<int32_t> out;
  while (out.size() < count) out.insert(out.end(), ids.begin(), ids.end());
  out.resize(count);
  return out;
}

TEST(Engine, RefusesBadOptions) {
  const auto code = [](const EngineOptions& options) {
    return Engine::create(options).status().code();
  };
  EngineOptions options;
  options.threads = -1;
  EXPECT_EQ(code(options), Code::invalid_argument);
  options = {};
  options.priority = 20;
  EXPECT_EQ(code(options), Code::invalid_argument);
  options = {};
  options.memory_limit_bytes = -5;
  EXPECT_EQ(code(options), Code::invalid_argument);
  options = {};
  options.allocator.allocate = [](void*, size_t, size_t) -> void* { return nullptr; };
  EXPECT_EQ(code(options), Code::invalid_argument);
}

TEST(Engine, SessionReusesTheCommonPrefix) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  const auto first = must(engine->generate(session, ids_request(tiny().prompt, 4), nullptr));
  EXPECT_EQ(first->result().counters.cached_tokens, 0);
  std::vector<int32_t> longer = session->tokens();
  longer.push_back(5);
  const auto second = must(engine->generate(session, ids_request(longer, 1), nullptr));
  // The last token of the first answer was never fed, so its KV is missing.
  EXPECT_EQ(second->result().counters.cached_tokens, static_cast<int64_t>(longer.size()) - 2);
  const auto other = new_session(*engine.engine, tiny().path);
  const auto fresh = must(engine->generate(other, ids_request(longer, 1), nullptr));
  EXPECT_EQ(output_ids(fresh->result()), output_ids(second->result()));
  ASSERT_TRUE(session->truncate(0).ok());
  EXPECT_TRUE(session->tokens().empty());
}

TEST(Engine, AppendContinuesTheSession) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  RequestSpec head = ids_request({tiny().prompt.begin(), tiny().prompt.begin() + 10}, 0);
  head.prompt_only = true;
  must(engine->generate(session, head, nullptr));
  RequestSpec tail = ids_request({tiny().prompt.begin() + 10, tiny().prompt.end()}, 6);
  tail.prompt_mode = PromptMode::append;
  const auto request = must(engine->generate(session, tail, nullptr));
  EXPECT_EQ(request->result().counters.cached_tokens, 10);
  EXPECT_EQ(output_ids(request->result()),
            std::vector<int32_t>(tiny().continuation.begin(), tiny().continuation.begin() + 6));
}

TEST(Engine, ContextLimitIsExactAndNamed) {
  const Closing engine{new_engine()};
  SessionOptions options;
  options.context_tokens = 40;
  const auto session = new_session(*engine.engine, tiny().path, options);
  const auto too_long = engine->generate(session, ids_request(repeat({1, 2, 3}, 41), 1), nullptr);
  ASSERT_EQ(too_long.status().code(), Code::context_full);
  EXPECT_EQ(too_long.status().numbers().wanted, 41);
  EXPECT_EQ(too_long.status().numbers().limit, 40);
  for (const size_t length : {size_t{38}, size_t{39}, size_t{40}}) {
    const auto request =
        must(engine->generate(session, ids_request(repeat({1, 2, 3}, length), 0), nullptr));
    EXPECT_EQ(request->result().finish, FinishReason::context);
    EXPECT_EQ(request->result().tokens.size(), 40 - length);
  }
  SessionOptions beyond;
  beyond.context_tokens = 1 << 20;
  EXPECT_EQ(engine->create_session(session->model(), beyond).status().code(),
            Code::invalid_argument);
}

TEST(Engine, BadRequestsAreRefusedAndLeaveTheSessionUsable) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  const auto code = [&](const RequestSpec& spec) {
    return engine->generate(session, spec, nullptr).status().code();
  };
  EXPECT_EQ(code(ids_request({}, 1)), Code::invalid_argument);
  EXPECT_EQ(code(ids_request({-1}, 1)), Code::invalid_argument);
  EXPECT_EQ(code(ids_request({1 << 30}, 1)), Code::invalid_argument);
  EXPECT_EQ(code(ids_request({1}, -1)), Code::invalid_argument);
  RequestSpec spec = ids_request({1}, 1);
  spec.logits_positions = {0};
  EXPECT_EQ(code(spec), Code::invalid_argument);
  spec = ids_request({1}, 1);
  spec.sampling.temperature = -1;
  EXPECT_EQ(code(spec), Code::invalid_argument);
  spec = ids_request({1}, 1);
  spec.deadline_ms = -1;
  EXPECT_EQ(code(spec), Code::invalid_argument);
  const auto request = must(engine->generate(session, ids_request(tiny().prompt, 2), nullptr));
  EXPECT_EQ(request->result().tokens[0].id, tiny().continuation[0]);
}

TEST(Engine, CallbackSeesEveryTokenInOrder) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  std::vector<int32_t> seen;
  std::string text;
  int done = 0;
  const auto request =
      must(engine->generate(session, ids_request(tiny().prompt, 8), [&](const Event& event) {
        if (event.type == EventType::token) {
          EXPECT_EQ(event.index, static_cast<int64_t>(seen.size()));
          seen.push_back(event.token);
        }
        text += event.text;
        if (event.type == EventType::done) ++done;
        return Verdict::go_on;
      }));
  EXPECT_EQ(seen, output_ids(request->result()));
  EXPECT_EQ(text, request->result().text);
  EXPECT_EQ(done, 1);
}

TEST(Engine, StopKeepsAndCancelRollsBack) {
  for (const Drive drive : {Drive::library, Drive::host}) {
    EngineOptions options;
    options.drive = drive;
    const Closing engine{new_engine(options)};
    const auto session = new_session(*engine.engine, tiny().path);
    must(engine->generate(session, ids_request({1, 2, 3}, 2), nullptr));
    const std::vector<int32_t> before = session->tokens();
    const auto after_three = [](Verdict verdict) {
      return [verdict](const Event& event) {
        return event.type == EventType::token && event.index == 2 ? verdict : Verdict::go_on;
      };
    };
    const auto cancelled = must(
        engine->generate(session, ids_request(tiny().prompt, 9), after_three(Verdict::cancel)));
    EXPECT_EQ(cancelled->result().finish, FinishReason::cancelled);
    EXPECT_EQ(session->tokens(), before);
    const auto stopped =
        must(engine->generate(session, ids_request(tiny().prompt, 9), after_three(Verdict::stop)));
    EXPECT_EQ(stopped->result().finish, FinishReason::host);
    EXPECT_EQ(stopped->result().tokens.size(), 3u);
    EXPECT_EQ(session->tokens().size(), tiny().prompt.size() + 3);
    const auto again = must(engine->generate(session, ids_request(tiny().prompt, 9), nullptr));
    EXPECT_EQ(output_ids(again->result()),
              std::vector<int32_t>(tiny().continuation.begin(), tiny().continuation.begin() + 9));
  }
}

// The prefill event and the first token are published together; answering the first must not let
// the engine run past the second, or a stop there would come too late.
TEST(Engine, StopAtTheFirstTokenIsExactHoweverSlowTheHost) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  const auto request =
      must(engine->generate(session, ids_request(tiny().prompt, 9), [](const Event& event) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return event.type == EventType::token ? Verdict::stop : Verdict::go_on;
      }));
  EXPECT_EQ(request->result().finish, FinishReason::host);
  EXPECT_EQ(request->result().tokens.size(), 1u);
  EXPECT_EQ(session->tokens().size(), tiny().prompt.size() + 1);
}

TEST(Engine, CancelIsLatched) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  RequestSpec spec = ids_request(tiny().prompt, 50);
  spec.cancel = std::make_shared<CancelFlag>();
  spec.cancel->trigger();
  const auto request = must(engine->generate(session, spec, nullptr));
  EXPECT_EQ(request->result().finish, FinishReason::cancelled);
  EXPECT_TRUE(request->result().tokens.empty());
  EXPECT_EQ(
      must(engine->generate(session, ids_request(tiny().prompt, 1), nullptr))->result().finish,
      FinishReason::length);
}

TEST(Engine, CancelFromAnotherThread) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  RequestSpec spec = ids_request(repeat({1, 2, 3, 4, 5}, 100), 0);
  spec.cancel = std::make_shared<CancelFlag>();
  std::atomic<int> events{0};
  std::thread canceller([&, flag = spec.cancel] {
    while (events.load() < 3) std::this_thread::yield();
    flag->trigger();
  });
  const auto request = must(engine->generate(session, spec, [&](const Event&) {
    ++events;
    return Verdict::go_on;
  }));
  canceller.join();
  EXPECT_EQ(request->result().finish, FinishReason::cancelled);
}

TEST(Engine, DeadlineEndsARequest) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  RequestSpec spec = ids_request(tiny().prompt, 0);
  spec.deadline_ms = 1;
  const auto request = must(engine->generate(session, spec, [](const Event&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return Verdict::go_on;
  }));
  EXPECT_EQ(request->result().finish, FinishReason::deadline);
}

TEST(Engine, BusyAndReentrancy) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  const auto other = must(engine->create_session(session->model(), {}));
  bool asked = false;
  must(engine->generate(session, ids_request(tiny().prompt, 2), [&](const Event& event) {
    if (event.type != EventType::token || asked) return Verdict::go_on;
    asked = true;
    EXPECT_EQ(engine->submit(session, ids_request({1}, 1)).status().code(), Code::busy);
    EXPECT_EQ(session->truncate(0).code(), Code::busy);
    EXPECT_EQ(engine->generate(other, ids_request({1}, 1), nullptr).status().code(), Code::busy);
    EXPECT_EQ(engine->step().status().code(), Code::invalid_state);
    return Verdict::go_on;
  }));
  EXPECT_TRUE(asked);
}

TEST(Engine, PollHandsOutEventsAndReturnsWhenNothingRuns) {
  const Closing engine{new_engine()};
  EXPECT_TRUE(engine->poll(8, -1).empty());
  const auto session = new_session(*engine.engine, tiny().path);
  int cookie = 0;
  RequestSpec spec = ids_request(tiny().prompt, 6);
  spec.user = &cookie;
  const auto request = must(engine->submit(session, spec));
  std::vector<int32_t> tokens;
  bool done = false;
  while (!done) {
    for (const Event& event : engine->poll(2, -1)) {
      EXPECT_EQ(event.request->user(), &cookie);
      if (event.type == EventType::token) tokens.push_back(event.token);
      done = done || event.type == EventType::done;
    }
  }
  EXPECT_TRUE(request->done());
  EXPECT_EQ(tokens, output_ids(request->result()));
  EXPECT_TRUE(engine->poll(8, -1).empty());
}

TEST(Engine, ManySessionsOnManyThreadsEachGetTheirAnswer) {
  const Closing engine{new_engine()};
  const auto model = must(engine->load(model::PathSource{tiny().path}, {}));
  std::atomic<int> right{0};
  std::vector<std::thread> hosts;
  for (int t = 0; t < 4; ++t)
    hosts.emplace_back([&, t] {
      for (int round = 0; round < 3; ++round) {
        const auto session = must(engine->create_session(model, {}));
        const int64_t count = 4 + (t + round) % 5;
        const auto request =
            must(engine->generate(session, ids_request(tiny().prompt, count), nullptr));
        right +=
            output_ids(request->result()) ==
            std::vector<int32_t>(tiny().continuation.begin(), tiny().continuation.begin() + count);
      }
    });
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(right.load(), 12);
}

TEST(Engine, HandlesMayGoInAnyOrder) {
  std::shared_ptr<Request> request;
  {
    auto engine = new_engine();
    auto session = new_session(*engine, tiny().path);
    RequestSpec spec = ids_request(tiny().prompt, 0);
    request = must(engine->submit(session, spec));
    session->close();
    session.reset();
    engine->close();
    EXPECT_FALSE(engine->load(model::PathSource{tiny().path}, {}).ok());
  }
  EXPECT_TRUE(request->wait(-1));
  EXPECT_TRUE(request->done());
}

TEST(Engine, CloseFromInsideACallbackIsDeferred) {
  auto engine = new_engine();
  auto session = new_session(*engine, tiny().path);
  const auto request =
      must(engine->generate(session, ids_request(tiny().prompt, 0), [&](const Event& event) {
        if (event.type == EventType::token) engine->close();
        return Verdict::go_on;
      }));
  EXPECT_EQ(request->result().finish, FinishReason::cancelled);
}

TEST(Engine, StopStringsAndTokensEndTheText) {
  const Closing engine{new_engine()};
  const auto session = new_session(*engine.engine, tiny().path);
  const auto whole = must(engine->generate(session, ids_request(tiny().prompt, 12), nullptr));
  const std::string text = whole->result().text;
  size_t at = text.size() / 2;
  while ((text[at] & 0xC0) == 0x80) ++at;
  size_t end = at + 1;
  while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
  RequestSpec spec = ids_request(tiny().prompt, 12);
  spec.stop_strings = {"no such text", text.substr(at, end - at)};
  const auto stopped = must(engine->generate(session, spec, nullptr));
  EXPECT_EQ(stopped->result().finish, FinishReason::stop_string);
  EXPECT_EQ(stopped->result().stop_index, 1);
  EXPECT_EQ(stopped->result().text, text.substr(0, text.find(spec.stop_strings[1])));
  spec = ids_request(tiny().prompt, 12);
  spec.stop_tokens = {tiny().continuation[3]};
  EXPECT_EQ(must(engine->generate(session, spec, nullptr))->result().finish, FinishReason::stop);
}

TEST(Engine, SeedFixesTheAnswerWhateverElseRuns) {
  const Closing engine{new_engine()};
  const auto model = must(engine->load(model::PathSource{tiny().path}, {}));
  RequestSpec spec = ids_request(tiny().prompt, 16);
  spec.sampling.temperature = 1;
  spec.sampling.seed = 42;
  const auto alone = must(engine->create_session(model, {}));
  const auto expected = output_ids(must(engine->generate(alone, spec, nullptr))->result());
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 4; ++i) {
    sessions.push_back(must(engine->create_session(model, {})));
    spec.sampling.seed = i == 2 ? 42 : 1000 + static_cast<uint64_t>(i);
    requests.push_back(must(engine->submit(sessions.back(), spec)));
  }
  for (const auto& request : requests) EXPECT_TRUE(request->wait(-1));
  EXPECT_EQ(output_ids(requests[2]->result()), expected);
  EXPECT_NE(output_ids(requests[1]->result()), expected);
}

TEST(Engine, LogprobsAgreeWithLogits) {
  const Closing engine{new_engine()};
  SessionOptions options;
  options.path = ComputePath::reference;
  const auto session = new_session(*engine.engine, tiny().path, options);
  RequestSpec spec = ids_request(tiny().all(), 0);
  spec.prompt_only = true;
  spec.prompt_logprobs_from = 0;
  const auto request = must(engine->generate(session, spec, nullptr));
  const std::vector<float>& logprobs = request->result().prompt_logprobs;
  ASSERT_EQ(logprobs.size(), tiny().all().size());
  EXPECT_TRUE(std::isnan(logprobs[0]));
  for (size_t p = 1; p < logprobs.size(); ++p) {
    const float* row = tiny().logits.data() + (p - 1) * static_cast<size_t>(tiny().vocabulary);
    double sum = 0;
    for (int64_t i = 0; i < tiny().vocabulary; ++i) sum += std::exp(static_cast<double>(row[i]));
    const double truth = row[tiny().all()[p]] - std::log(sum);
    EXPECT_NEAR(logprobs[p], truth, 2e-3 * tiny().logits_std) << p;
  }
}

// The n-th allocation of the host's allocator fails, for every n until all succeed: each time an
// error with numbers, nothing lost, nothing leaked.
TEST(Engine, EveryFailingAllocationIsAStatus) {
  struct Host {
    int64_t calls = 0, fails_at = 0;
    std::atomic<int64_t> live{0};
  } host;
  bool all_succeeded = false;
  for (host.fails_at = 1; !all_succeeded && host.fails_at < 1000; ++host.fails_at) {
    host.calls = 0;
    EngineOptions options;
    options.allocator.user = &host;
    options.allocator.allocate = [](void* user, size_t bytes, size_t alignment) -> void* {
      Host& h = *static_cast<Host*>(user);
      if (++h.calls == h.fails_at) return nullptr;
      ++h.live;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    };
    options.allocator.release = [](void* user, void* memory, size_t) {
      --static_cast<Host*>(user)->live;
      std::free(memory);
    };
    {
      const Closing engine{new_engine(options)};
      const auto model = must(engine->load(model::PathSource{tiny().path}, {}));
      const auto session = engine->create_session(model, {});
      if (!session.ok()) {
        EXPECT_EQ(session.status().code(), Code::oom_host);
        continue;
      }
      const auto request =
          must(engine->generate(*session, ids_request(repeat(tiny().prompt, 90), 3), nullptr));
      all_succeeded = request->result().status.ok();
      if (!all_succeeded) {
        EXPECT_EQ(request->result().status.code(), Code::oom_host);
        EXPECT_EQ(request->result().finish, FinishReason::error);
      }
      host.fails_at = all_succeeded ? host.fails_at : -host.fails_at;  // the next one may have it
      const auto again = must(engine->generate(*session, ids_request(tiny().prompt, 1), nullptr));
      EXPECT_EQ(again->result().tokens.at(0).id, tiny().continuation[0]);
      host.fails_at = std::abs(host.fails_at);
    }
    EXPECT_EQ(host.live.load(), 0);
  }
  EXPECT_TRUE(all_succeeded);
  EXPECT_GT(host.fails_at, 2);
}

TEST(Engine, MemoryLimitNamesItsNumbers) {
  EngineOptions options;
  options.memory_limit_bytes = 64 << 10;
  const Closing engine{new_engine(options)};
  const auto model = must(engine->load(model::PathSource{tiny().path}, {}));
  const auto session = engine->create_session(model, {});
  ASSERT_EQ(session.status().code(), Code::oom_host);
  EXPECT_GT(session.status().numbers().wanted, 64 << 10);
  EXPECT_EQ(session.status().numbers().limit, 64 << 10);
}

TEST(Engine, VocabularyLoadTokenisesButDoesNotRun) {
  const Closing engine{new_engine()};
  LoadOptions options;
  options.content = LoadContent::vocabulary;
  const auto model = must(engine->load(model::PathSource{tiny().path}, options));
  EXPECT_TRUE(model->tokenizer().ok());
  EXPECT_EQ(model->config(), nullptr);
  EXPECT_EQ(engine->create_session(model, {}).status().code(), Code::invalid_state);
}

TEST(Engine, LoadCanBeCancelledAndFailsCleanly) {
  const Closing engine{new_engine()};
  LoadOptions options;
  options.progress = [](float) { return false; };
  EXPECT_EQ(engine->load(model::PathSource{tiny().path}, options).status().code(), Code::cancelled);
  EXPECT_EQ(engine->load(model::PathSource{"no such file"}, {}).status().code(), Code::io);
  EXPECT_TRUE(engine->load(model::PathSource{tiny().path}, {}).ok());
}

}  // namespace
}  // namespace optima::engine
