// More is asked for than memory holds: who waits, who gives up its KV for whom, and that nobody's
// answer is another one for it.
#include <thread>

#include "tests/engine/tight_engine.h"

namespace optima::engine {
namespace {

// ---- the output is the same ----

struct Way {
  const char* name;
  const char* model;
  void (*set)(RequestSpec&);
};

const Way kWays[] = {
    {"Greedy", "llama-f32", [](RequestSpec&) {}},
    {"Windowed", "gemma3-f32", [](RequestSpec& spec) { spec.max_tokens = 150; }},
    {"Sampled", "llama-f32",
     [](RequestSpec& spec) {
       spec.sampling.temperature = 1.0f;
       spec.sampling.seed = 7;
     }},
    {"Penalised", "llama-f32",
     [](RequestSpec& spec) {
       spec.sampling.temperature = 0.8f;
       spec.sampling.repetition_penalty = 1.3f;
       spec.sampling.dry_multiplier = 0.8f;
       spec.sampling.mirostat_tau = 3;
     }},
    {"Structured", "llama-f32",
     [](RequestSpec& spec) {
       spec.grammar = GrammarSpec{sampling::GrammarKind::gbnf, "root ::= [a-e]*"};
     }},
    {"Guessed", "llama-f32", [](RequestSpec& spec) { spec.drafts_max = 4; }},
    {"Scored", "llama-f32",
     [](RequestSpec& spec) {
       spec.prompt_logprobs_from = 3;
       spec.sampling.logprobs = 2;
     }},
};

class Preempted : public testing::TestWithParam<Way> {
 protected:
  // Four requests that together need several times the memory.
  RequestSpec request(int32_t i) const {
    RequestSpec spec = ids_request(prompt_of(20 + 9 * i, 1 + i), 70);
    spec.priority = i % 2;
    GetParam().set(spec);
    return spec;
  }
};

TEST_P(Preempted, AnswersAreTheSame) {
  const std::string model = GetParam().model;
  EngineOptions options = pages(11);
  if (model == "gemma3-f32") options.kv_budget_bytes = 56 << 10;
  std::vector<RequestResult> wanted;
  for (int32_t i = 0; i < 4; ++i) wanted.push_back(alone(request(i), model));
  for (const int64_t cached : {int64_t{0}, kNothingCached}) {
    options.kv_cached_bytes = cached;
    Tight engine(options, model);
    std::vector<std::shared_ptr<Session>> sessions;
    std::vector<std::shared_ptr<Request>> requests;
    SessionOptions session_options = reference();
    session_options.prefill_chunk_tokens = 24;
    for (int32_t i = 0; i < 4; ++i) {
      sessions.push_back(engine.session(session_options));
      requests.push_back(engine.submit(sessions.back(), request(i)));
    }
    engine.finish_all();
    EXPECT_GT(engine->metrics().preemptions, 0u);
    for (int32_t i = 0; i < 4; ++i) {
      const RequestResult& result = requests[static_cast<size_t>(i)]->result();
      ASSERT_TRUE(result.status.ok()) << result.status.message();
      const RequestResult& of_one = wanted[static_cast<size_t>(i)];
      EXPECT_EQ(output_ids(result), output_ids(of_one)) << i;
      EXPECT_EQ(result.text, of_one.text);
      EXPECT_EQ(result.prompt_logprobs, of_one.prompt_logprobs) << i;
      for (size_t t = 0; t < of_one.tokens.size() && !of_one.tokens[t].top.empty(); ++t)
        EXPECT_EQ(result.tokens.at(t).top.front().logprob, of_one.tokens[t].top.front().logprob);
    }
    requests.clear();
    sessions.clear();
    EXPECT_EQ(engine->metrics().kv_pages_held, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Preempted, testing::ValuesIn(kWays),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(Preemption, LogitsAreWrittenOnce) {
  const auto scored = [](std::vector<float>& out) {
    RequestSpec spec = ids_request(prompt_of(30, 5), 60);
    spec.logits_positions = {0, 7, 29, 30, 55, 80};
    out.assign(6 * 297, -1);
    spec.logits_out = out.data();
    spec.logits_capacity = static_cast<int64_t>(out.size());
    return spec;
  };
  std::vector<float> wanted, got;
  const RequestResult expected = alone(scored(wanted));
  Tight engine(pages(9));
  const auto first = engine.session(), second = engine.session();
  const auto other = engine.submit(first, ids_request(prompt_of(30, 4), 80));
  const auto request = engine.submit(second, scored(got));
  engine.finish_all();
  EXPECT_GT(engine->metrics().preemptions, 0u);
  EXPECT_EQ(request->result().logits_rows, expected.logits_rows);
  EXPECT_EQ(got, wanted);
}

// An embedding's rows are summed once, however often its text is computed.
TEST(Preemption, EmbeddingsAreTheSame) {
  SessionOptions options = reference();
  options.output = SessionOutput::embedding;
  options.prefill_chunk_tokens = 16;
  RequestSpec spec = ids_request(prompt_of(100, 5), 0);
  spec.ignore_eos = false;
  spec.embedding.emplace();
  spec.embedding->pooling = model::Pooling::mean;
  spec.priority = -5;
  Tight roomy{EngineOptions{}};
  const auto wanted = must(roomy->generate(roomy.session(options), spec, nullptr));
  Tight engine(pages(9));
  const auto slow = engine.session(options), fast = engine.session();
  const auto request = engine.submit(slow, spec);
  EXPECT_TRUE(must(engine->step()));
  EXPECT_TRUE(must(engine->step()));
  const auto other = engine.submit(fast, ids_request(prompt_of(90, 6), 20));
  engine.finish_all();
  EXPECT_EQ(engine->metrics().preemptions, 1u);
  EXPECT_EQ(request->result().finish, FinishReason::embedded);
  EXPECT_EQ(request->result().embedding, wanted->result().embedding);
}

// ---- who waits ----

TEST(Admission, WhatCanNeverFitIsRefusedWithPages) {
  Tight engine(pages(5));
  const auto session = engine.session();
  const Status status = engine->submit(session, ids_request(prompt_of(70, 1), 30)).status();
  EXPECT_EQ(status.code(), Code::oom_host);
  EXPECT_EQ(status.numbers().wanted, 6) << "five for the prompt, one for the answer";
  EXPECT_EQ(status.numbers().available, 5);
  EXPECT_EQ(status.numbers().limit, 5);
  RequestSpec prompt_only = ids_request(prompt_of(70, 1), 0);
  prompt_only.prompt_only = true;
  const auto fits = engine.submit(session, prompt_only);
  engine.finish_all();
  EXPECT_EQ(fits->result().finish, FinishReason::length);
}

TEST(Admission, AnAnswerThatOutgrowsAllMemoryEndsWithNumbers) {
  Tight engine(pages(3));
  const auto session = engine.session();
  const auto request = engine.submit(session, ids_request(prompt_of(20, 1), 200));
  engine.finish_all();
  const RequestResult& result = request->result();
  EXPECT_EQ(result.finish, FinishReason::error);
  EXPECT_EQ(result.status.code(), Code::oom_host);
  EXPECT_EQ(result.status.numbers().wanted, 1);
  EXPECT_EQ(result.status.numbers().available, 0);
  EXPECT_EQ(result.status.numbers().limit, 3);
  EXPECT_EQ(result.tokens.size(), 29u) << "48 positions, and the token after the last";
  EXPECT_EQ(session->tokens().size(), 49u);
}

// What needs all of the memory to its last page is not refused when it comes back.
TEST(Admission, APreemptedAnswerMayTakeAllThereIs) {
  Tight engine(pages(6));
  const RequestSpec spec = ids_request(prompt_of(40, 1), 200);
  const auto a = engine.session(), b = engine.session();
  const auto low = engine.submit(a, spec);
  while (a->tokens().size() < 90) EXPECT_TRUE(must(engine->step()));
  RequestSpec urgent = ids_request(prompt_of(20, 2), 8);
  urgent.priority = 3;
  const auto high = engine.submit(b, urgent);
  engine.finish_all();
  EXPECT_EQ(engine->metrics().preemptions, 1u);
  EXPECT_EQ(high->result().finish, FinishReason::length);
  EXPECT_EQ(low->result().status.code(), Code::oom_host);
  EXPECT_EQ(a->tokens().size(), 97u) << "96 positions, and the token after the last";
}

TEST(Admission, APromptWaitsUntilMemoryIsFree) {
  Tight engine(pages(6));
  const auto a = engine.session(), b = engine.session(), c = engine.session();
  const auto first = engine.submit(a, ids_request(prompt_of(50, 1), 12));
  const auto second = engine.submit(b, ids_request(prompt_of(70, 2), 4));
  const auto third = engine.submit(c, ids_request(prompt_of(4, 3), 4));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(must(engine->step()));
  EXPECT_EQ(engine->metrics().requests_running, 1);
  EXPECT_EQ(engine->metrics().requests_waiting, 2) << "a small one does not overtake";
  EXPECT_EQ(engine->metrics().kv_pages_held, 4);
  engine.finish_all();
  for (const auto& request : {first, second, third})
    EXPECT_EQ(request->result().finish, FinishReason::length);
  EXPECT_EQ(engine->metrics().preemptions, 0u);
}

TEST(Admission, IdleSessionsGiveTheirMemoryOldestFirst) {
  Tight engine(pages(6));
  const auto a = engine.session(), b = engine.session(), c = engine.session();
  must(engine->generate(a, ids_request(prompt_of(20, 1), 8), nullptr));
  must(engine->generate(b, ids_request(prompt_of(20, 2), 8), nullptr));
  EXPECT_EQ(engine->metrics().kv_pages_held, 4);
  RequestSpec more = ids_request({9}, 8);
  more.prompt_mode = PromptMode::append;
  const auto again = must(engine->generate(a, more, nullptr));
  EXPECT_EQ(again->result().counters.cached_tokens, 27);
  const std::vector<int32_t> before = b->tokens();
  must(engine->generate(c, ids_request(prompt_of(20, 3), 8), nullptr));
  EXPECT_EQ(engine->metrics().sessions_dropped, 1u);
  EXPECT_EQ(b->tokens(), before) << "tokens stay";
  EXPECT_EQ(must(engine->generate(a, more, nullptr))->result().counters.cached_tokens, 36);
  // What was taken is computed again.
  RequestSpec whole = ids_request(before, 8);
  whole.ids.push_back(9);
  const auto dropped = must(engine->generate(b, more, nullptr));
  EXPECT_LT(dropped->result().counters.cached_tokens, 27);
  EXPECT_EQ(output_ids(dropped->result()), output_ids(alone(whole)));
  EXPECT_EQ(engine->metrics().preemptions, 0u);
}

TEST(Admission, AHigherPriorityTakesMemoryFromALowerOne) {
  Tight engine(pages(6));
  const auto a = engine.session(), b = engine.session();
  RequestSpec spec = ids_request(prompt_of(60, 1), 20);
  const auto low = engine.submit(a, spec);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(must(engine->step()));
  const size_t before = a->tokens().size();
  RequestSpec urgent = ids_request(prompt_of(60, 2), 8);
  urgent.priority = 3;
  const auto high = engine.submit(b, urgent);
  while (!high->done()) EXPECT_TRUE(must(engine->step()));
  EXPECT_FALSE(low->done());
  EXPECT_EQ(engine->metrics().preemptions, 1u);
  EXPECT_EQ(a->tokens().size(), before) << "nothing is lost";
  engine.finish_all();
  EXPECT_EQ(output_ids(low->result()), output_ids(alone(spec)));
}

// Memory that nobody in the engine can give back: a session that is being saved.
TEST(Admission, WhatIsPinnedIsWaitedFor) {
  Tight engine(pages(6));
  const auto a = engine.session(), b = engine.session();
  must(engine->generate(a, ids_request(prompt_of(60, 1), 8), nullptr));
  std::shared_ptr<Request> request;
  const Status saved = a->save([&](const void*, int64_t) {
    if (request != nullptr) return true;
    request = engine.submit(b, ids_request(prompt_of(60, 2), 8));
    EXPECT_FALSE(must(engine->step())) << "there is no memory for it";
    EXPECT_FALSE(must(engine->step()));
    EXPECT_FALSE(request->done()) << "it waits";
    return true;
  });
  EXPECT_TRUE(saved.ok()) << saved.message();
  engine.finish_all();
  EXPECT_EQ(request->result().finish, FinishReason::length);
}

TEST(Admission, TheLibrarysThreadNoticesThatMemoryCameBack) {
  Tight engine(pages(6, Drive::library));
  const auto a = engine.session(), b = engine.session();
  must(engine->generate(a, ids_request(prompt_of(60, 1), 8), nullptr));
  std::shared_ptr<Request> request;
  const Status saved = a->save([&](const void*, int64_t) {
    if (request != nullptr) return true;
    request = engine.submit(b, ids_request(prompt_of(60, 2), 8));
    EXPECT_FALSE(request->wait(30));
    return true;
  });
  EXPECT_TRUE(saved.ok());
  EXPECT_TRUE(request->wait(60'000));
  EXPECT_EQ(request->result().finish, FinishReason::length);
}

// ---- cancel, deadline, hosts that think ----

class Ended : public testing::TestWithParam<bool> {};

// A request that waits, and one that was preempted, end by a cancel and by a deadline.
TEST_P(Ended, WhoWaitsForMemoryCanBeEnded) {
  Tight engine(pages(6));
  const auto a = engine.session(), b = engine.session();
  RequestSpec spec = ids_request(prompt_of(40, 1), 40);
  constexpr int64_t kDeadlineMs = 1'000;  // more than the steps below take under a sanitizer
  spec.deadline_ms = GetParam() ? 60'000 : kDeadlineMs;
  const auto low = engine.submit(a, spec);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(must(engine->step()));
  RequestSpec urgent = ids_request(prompt_of(60, 2), 20);
  urgent.priority = 3;
  const auto high = engine.submit(b, urgent);
  EXPECT_TRUE(must(engine->step()));
  EXPECT_EQ(engine->metrics().preemptions, 1u);
  const auto waiting = engine.submit(engine.session(), spec);
  if (GetParam()) {
    low->cancel();
    waiting->cancel();
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(kDeadlineMs + 1));
  }
  EXPECT_TRUE(must(engine->step()));
  const FinishReason reason = GetParam() ? FinishReason::cancelled : FinishReason::deadline;
  ASSERT_TRUE(low->done());
  ASSERT_TRUE(waiting->done());
  EXPECT_EQ(low->result().finish, reason);
  EXPECT_EQ(waiting->result().finish, reason);
  EXPECT_GT(low->result().tokens.size(), 0u) << "what it had said stays said";
  engine.finish_all();
  EXPECT_EQ(high->result().finish, FinishReason::length);
}

INSTANTIATE_TEST_SUITE_P(By, Ended, testing::Bool(),
                         [](const auto& p) { return p.param ? "Cancel" : "Deadline"; });

// A callback that takes its time holds up nobody: its request gives its memory too, right guesses
// that wait for it included.
TEST(Preemption, AHostThatThinksHoldsUpNobody) {
  RequestSpec spec = ids_request(prompt_of(40, 1), 50);
  spec.drafts_max = 6;
  const RequestResult wanted = alone(spec);
  for (const size_t stop_at : {size_t{4}, size_t{9}, size_t{10}, size_t{21}}) {
    Tight engine(pages(6, Drive::library));
    const auto a = engine.session(), b = engine.session();
    RequestSpec urgent = ids_request(prompt_of(60, 2), 8);
    urgent.priority = 3;
    size_t tokens = 0;
    const auto on_event = [&](const Event& event) {
      if (event.type != EventType::token || ++tokens != stop_at) return Verdict::go_on;
      const auto high = engine.submit(b, urgent);
      EXPECT_TRUE(high->wait(60'000));
      EXPECT_EQ(high->result().finish, FinishReason::length);
      return Verdict::go_on;
    };
    const auto low = must(engine->generate(a, spec, on_event));
    EXPECT_EQ(output_ids(low->result()), output_ids(wanted)) << stop_at;
    EXPECT_EQ(engine->metrics().preemptions, 1u);
  }
}

// Rolling back what was preempted.
TEST(Preemption, ACancelledAnswerIsRolledBack) {
  Tight engine(pages(6, Drive::library));
  const auto a = engine.session(), b = engine.session();
  must(engine->generate(a, ids_request(prompt_of(30, 1), 4), nullptr));
  const std::vector<int32_t> before = a->tokens();
  RequestSpec more = ids_request({9}, 30);
  more.prompt_mode = PromptMode::append;
  size_t tokens = 0;
  const auto on_event = [&](const Event& event) {
    if (event.type != EventType::token || ++tokens != 5) return Verdict::go_on;
    RequestSpec urgent = ids_request(prompt_of(60, 2), 8);
    urgent.priority = 3;
    EXPECT_TRUE(engine.submit(b, urgent)->wait(60'000));
    return Verdict::cancel;
  };
  must(engine->generate(a, more, on_event));
  EXPECT_EQ(a->tokens(), before);
  std::vector<int32_t> whole = before;
  whole.push_back(9);
  EXPECT_EQ(output_ids(must(engine->generate(a, more, nullptr))->result()),
            output_ids(alone(ids_request(whole, 30))));
}

}  // namespace
}  // namespace optima::engine
