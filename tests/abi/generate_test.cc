// optima_generate: the tiny model's known answer, every way a generation ends, and what callbacks
// may and may not do.
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "fixture.h"

namespace optima_test {
namespace {

// Records the events of a generation and answers them.
struct Recorder {
  std::vector<int32_t> types;
  std::vector<int32_t> tokens;
  std::string text;
  std::string bytes;
  optima_finish finish = OPTIMA_FINISH_NONE;
  int released = 0;
  std::thread::id thread;
  int32_t (*answer)(Recorder&, const optima_event&) = nullptr;
  void* extra = nullptr;

  void listen(optima_request_desc& desc) {
    desc.user = this;
    desc.release = [](void* user) { ++static_cast<Recorder*>(user)->released; };
    desc.on_event = [](void* user, const optima_event* event) -> int32_t {
      return static_cast<Recorder*>(user)->take(*event);
    };
  }
  int32_t take(const optima_event& event) {
    EXPECT_EQ(event.struct_size, sizeof event);
    EXPECT_EQ(event.user, this);
    EXPECT_EQ(released, 0) << "an event after the release";
    thread = std::this_thread::get_id();
    types.push_back(event.type);
    if (event.type == OPTIMA_EVENT_TOKEN) {
      EXPECT_EQ(event.index, static_cast<int64_t>(tokens.size()));
      tokens.push_back(event.token);
    }
    text.append(event.text, static_cast<size_t>(event.text_bytes));
    bytes.append(event.bytes, static_cast<size_t>(event.bytes_count));
    if (event.type == OPTIMA_EVENT_DONE) finish = event.finish;
    return answer == nullptr ? OPTIMA_CONTINUE : answer(*this, event);
  }
};

class GenerateTest : public GoldenTest {
 protected:
  // A request that would run for long.
  optima_request_desc long_desc() {
    auto desc = golden_desc();
    desc.max_tokens = 0;
    return desc;
  }
};

TEST_F(GenerateTest, KnownAnswerFromTextAndIdsOnBothPaths) {
  for (const optima_path path : {OPTIMA_PATH_FAST, OPTIMA_PATH_REFERENCE}) {
    auto options = sized<optima_session_options>();
    options.path = path;
    optima_session* raw = nullptr;
    must([&](optima_error** err) {
      return optima_session_create(model_.get(), &options, &raw, err);
    });
    const Session session(raw);
    EXPECT_EQ(token_ids(generate(session, golden_desc())), wanted_);

    auto desc = golden_desc();
    desc.prompt = nullptr;
    desc.prompt_bytes = 0;
    desc.prompt_ids = prompt_ids_.data();
    desc.prompt_id_count = prompt_ids_.size();
    const Result result = generate(session, desc);
    EXPECT_EQ(token_ids(result), wanted_);
    EXPECT_EQ(optima_result_finish(result.get()), OPTIMA_FINISH_LENGTH);
    int64_t count = 0;
    const int32_t* ids = optima_result_prompt_ids(result.get(), &count);
    EXPECT_EQ(std::vector<int32_t>(ids, ids + count), prompt_ids_);
    auto counters = sized<optima_counters>();
    ASSERT_EQ(optima_result_counters(result.get(), &counters, nullptr), OPTIMA_OK);
    EXPECT_EQ(counters.prompt_tokens, static_cast<int64_t>(prompt_ids_.size()));
    EXPECT_GT(counters.cached_tokens, 0) << "the second run shares the first one's prompt";
    EXPECT_EQ(counters.output_tokens, static_cast<int64_t>(wanted_.size()));
    EXPECT_GT(counters.weight_bytes_read, 0);
  }
}

TEST_F(GenerateTest, EventsComeInOrderOnThisThread) {
  Recorder recorder;
  auto desc = golden_desc();
  recorder.listen(desc);
  const Result result = generate(session_, desc);
  EXPECT_EQ(recorder.tokens, wanted_);
  EXPECT_EQ(recorder.thread, std::this_thread::get_id());
  EXPECT_EQ(recorder.types.front(), OPTIMA_EVENT_PREFILL);
  EXPECT_EQ(recorder.types.back(), OPTIMA_EVENT_DONE);
  EXPECT_EQ(recorder.finish, OPTIMA_FINISH_LENGTH);
  EXPECT_EQ(recorder.released, 1);
  int64_t bytes = 0;
  const char* text = optima_result_text(result.get(), &bytes);
  EXPECT_EQ(recorder.text, std::string(text, static_cast<size_t>(bytes)));
  text = optima_result_bytes(result.get(), &bytes);
  EXPECT_EQ(recorder.bytes, std::string(text, static_cast<size_t>(bytes)));
}

TEST_F(GenerateTest, StopKeepsAndCancelRollsBack) {
  Recorder stop;
  stop.answer = [](Recorder& r, const optima_event&) -> int32_t {
    return r.tokens.size() == 5 ? OPTIMA_STOP : OPTIMA_CONTINUE;
  };
  auto desc = long_desc();
  stop.listen(desc);
  const Result stopped = generate(session_, desc);
  EXPECT_EQ(optima_result_finish(stopped.get()), OPTIMA_FINISH_HOST);
  EXPECT_EQ(token_ids(stopped), std::vector<int32_t>(wanted_.begin(), wanted_.begin() + 5));
  const std::vector<int32_t> kept = session_tokens(session_);
  EXPECT_GE(kept.size(), prompt_ids_.size() + 4);

  Recorder cancel;
  cancel.answer = [](Recorder& r, const optima_event&) -> int32_t {
    return r.tokens.size() == 3 ? OPTIMA_CANCEL : OPTIMA_CONTINUE;
  };
  cancel.listen(desc);
  const Result cancelled = generate(session_, desc);
  EXPECT_EQ(optima_result_finish(cancelled.get()), OPTIMA_FINISH_CANCELLED);
  EXPECT_EQ(session_tokens(session_), kept);
  EXPECT_EQ(cancel.released, 1);
}

TEST_F(GenerateTest, AnExceptionOfTheCallbackEndsHere) {
  Recorder recorder;
  recorder.answer = [](Recorder&, const optima_event&) -> int32_t {
    throw std::runtime_error("the host's own trouble");
  };
  auto desc = golden_desc();
  recorder.listen(desc);
  optima_result* result = nullptr;
  const Outcome outcome = outcome_of(
      [&](optima_error** err) { return optima_generate(session_.get(), &desc, &result, err); });
  EXPECT_EQ(outcome.status, OPTIMA_E_INTERNAL);
  EXPECT_NE(outcome.message().find("the host's own trouble"), std::string::npos);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(recorder.released, 1);
  EXPECT_EQ(token_ids(generate(session_, golden_desc())), wanted_);
}

TEST_F(GenerateTest, ReentrantCallsAreBusy) {
  struct Handles {
    optima_engine* engine;
    optima_session* session;
    int busy = 0;
  } handles{engine_.get(), session_.get()};
  Recorder recorder;
  recorder.extra = &handles;
  recorder.answer = [](Recorder& r, const optima_event& now) -> int32_t {
    if (now.type == OPTIMA_EVENT_DONE) return OPTIMA_CONTINUE;  // The session is free again.
    auto& h = *static_cast<Handles*>(r.extra);
    const auto desc = ask("x", 1);
    size_t count = 0;
    auto event = sized<optima_event>();
    h.busy += optima_generate(h.session, &desc, nullptr, nullptr) == OPTIMA_E_BUSY;
    h.busy += optima_poll(h.engine, &event, 1, sizeof event, -1, &count, nullptr) == OPTIMA_E_BUSY;
    h.busy += optima_session_reset(h.session, nullptr) == OPTIMA_E_BUSY;
    return OPTIMA_STOP;
  };
  auto desc = golden_desc();
  recorder.listen(desc);
  generate(session_, desc);
  EXPECT_EQ(handles.busy % 3, 0);
  EXPECT_GE(handles.busy, 3);
}

TEST_F(GenerateTest, CancelIsLatchedAndReachesFromOtherThreads) {
  optima_cancel* raw = nullptr;
  ASSERT_EQ(optima_cancel_create(&raw, nullptr), OPTIMA_OK);
  const Cancel cancel(raw);
  auto desc = long_desc();
  desc.cancel = cancel.get();
  Recorder recorder;
  recorder.listen(desc);
  std::thread other;
  recorder.extra = &other;
  static optima_cancel* shared;
  shared = raw;
  recorder.answer = [](Recorder& r, const optima_event&) -> int32_t {
    auto& thread = *static_cast<std::thread*>(r.extra);
    if (r.tokens.size() == 2 && !thread.joinable()) {
      thread = std::thread([] { optima_cancel_trigger(shared); });
    }
    return OPTIMA_CONTINUE;
  };
  const Result running = generate(session_, desc);
  if (other.joinable()) other.join();
  EXPECT_EQ(optima_result_finish(running.get()), OPTIMA_FINISH_CANCELLED);
  EXPECT_EQ(optima_cancel_triggered(cancel.get()), 1);

  Recorder late;
  late.listen(desc);
  const Result before = generate(session_, desc);
  EXPECT_EQ(optima_result_finish(before.get()), OPTIMA_FINISH_CANCELLED);
  EXPECT_TRUE(late.tokens.empty()) << "triggered before the start";
  EXPECT_EQ(token_ids(generate(session_, golden_desc())), wanted_);
}

TEST_F(GenerateTest, TheLatchOutlivesItsHandle) {
  optima_cancel* cancel = nullptr;
  ASSERT_EQ(optima_cancel_create(&cancel, nullptr), OPTIMA_OK);
  Recorder recorder;
  recorder.extra = cancel;
  recorder.answer = [](Recorder& r, const optima_event&) -> int32_t {
    if (r.extra != nullptr) {
      auto* latch = static_cast<optima_cancel*>(r.extra);
      optima_cancel_trigger(latch);
      optima_cancel_destroy(latch);
      r.extra = nullptr;
    }
    return OPTIMA_CONTINUE;
  };
  auto desc = long_desc();
  desc.cancel = cancel;
  recorder.listen(desc);
  const Result result = generate(session_, desc);
  EXPECT_EQ(optima_result_finish(result.get()), OPTIMA_FINISH_CANCELLED);
}

TEST_F(GenerateTest, Deadline) {
  auto desc = long_desc();
  desc.deadline_ms = 1;
  Recorder recorder;
  recorder.listen(desc);
  recorder.answer = [](Recorder&, const optima_event&) -> int32_t {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return OPTIMA_CONTINUE;
  };
  const Result result = generate(session_, desc);
  EXPECT_EQ(optima_result_finish(result.get()), OPTIMA_FINISH_DEADLINE);
}

TEST_F(GenerateTest, ContextEndsAndOverflows) {
  const int64_t context = static_cast<int64_t>(prompt_ids_.size()) + 4;
  const Session small = make_session(model_, context);
  EXPECT_EQ(optima_session_context_tokens(small.get()), context);
  const Result full = generate(small, long_desc());
  EXPECT_EQ(optima_result_finish(full.get()), OPTIMA_FINISH_CONTEXT);

  const Session smaller = make_session(model_, static_cast<int64_t>(prompt_ids_.size()) - 1);
  const auto desc = golden_desc();
  const Outcome outcome = outcome_of(
      [&](optima_error** err) { return optima_generate(smaller.get(), &desc, nullptr, err); });
  EXPECT_EQ(outcome.status, OPTIMA_E_CONTEXT_FULL);
  const auto number = [&](size_t n) { return std::to_string(n); };
  EXPECT_NE(outcome.message().find(number(prompt_ids_.size())), std::string::npos)
      << outcome.message();
  EXPECT_NE(outcome.message().find(number(prompt_ids_.size() - 1)), std::string::npos);
  EXPECT_EQ(optima_error_wanted(outcome.error.get()), static_cast<int64_t>(prompt_ids_.size()));
}

TEST_F(GenerateTest, StopTokenAndStopString) {
  auto desc = golden_desc();
  const int32_t stop[] = {wanted_[3]};
  desc.stop_tokens = stop;
  desc.stop_token_count = 1;
  const Result by_token = generate(session_, desc);
  EXPECT_EQ(optima_result_finish(by_token.get()), OPTIMA_FINISH_STOP);
  EXPECT_EQ(optima_result_stop_index(by_token.get()), -1);

  // The second half of the whole text: its end comes with the last tokens.
  desc = golden_desc();
  Recorder recorder;
  recorder.listen(desc);
  const Result whole = generate(session_, desc);
  const std::string text = recorder.text;
  const std::string stop_text = text.substr(text.size() / 2);
  desc = golden_desc();
  const char* stops[] = {"never in it", stop_text.c_str()};
  desc.stops = stops;
  desc.stop_count = 2;
  const Result by_string = generate(session_, desc);
  EXPECT_EQ(optima_result_finish(by_string.get()), OPTIMA_FINISH_STOP_STRING);
  EXPECT_EQ(optima_result_stop_index(by_string.get()), 1);
  EXPECT_EQ(optima_result_text(by_string.get(), nullptr), text.substr(0, text.find(stop_text)));

  const char* null_stop[] = {nullptr};
  desc.stops = null_stop;
  desc.stop_count = 1;
  EXPECT_EQ(optima_generate(session_.get(), &desc, nullptr, nullptr), OPTIMA_E_ARG);
}

TEST_F(GenerateTest, LogitsAndLogprobs) {
  const int32_t vocabulary = golden_["vocabulary"];
  auto desc = golden_desc();
  const auto last = static_cast<int64_t>(prompt_ids_.size()) - 1;
  const int64_t positions[] = {0, last, last + 1};
  std::vector<float> logits(3 * static_cast<size_t>(vocabulary), NAN);
  desc.logits_positions = positions;
  desc.logits_position_count = 3;
  desc.logits_out = logits.data();
  desc.logits_capacity = logits.size();
  desc.logprobs = 2;
  desc.flags |= OPTIMA_REQUEST_PROMPT_LOGPROBS;
  const Result result = generate(session_, desc);

  const auto row = [&](size_t i) { return logits.data() + i * static_cast<size_t>(vocabulary); };
  const auto argmax = [&](const float* r) {
    return static_cast<int32_t>(std::max_element(r, r + vocabulary) - r);
  };
  EXPECT_EQ(argmax(row(1)), wanted_[0]);
  EXPECT_EQ(argmax(row(2)), wanted_[1]);
  const auto logprob = [&](const float* r, int32_t token) {
    double sum = 0;
    for (int32_t i = 0; i < vocabulary; ++i) sum += std::exp(double{r[i]} - double{r[token]});
    return -std::log(sum);
  };
  int64_t count = 0;
  const float* logprobs = optima_result_logprobs(result.get(), &count);
  ASSERT_EQ(count, static_cast<int64_t>(wanted_.size()));
  EXPECT_NEAR(logprobs[0], logprob(row(1), wanted_[0]), 1e-4);
  const optima_token_logprob* top = optima_result_top_logprobs(result.get(), 0, &count);
  ASSERT_EQ(count, 2);
  EXPECT_EQ(top[0].token, wanted_[0]);
  EXPECT_GE(top[0].logprob, top[1].logprob);
  EXPECT_NEAR(top[1].logprob, logprob(row(1), top[1].token), 1e-4);
  EXPECT_EQ(optima_result_top_logprobs(result.get(), 1 << 20, &count), nullptr);

  const float* of_prompt = optima_result_prompt_logprobs(result.get(), &count);
  ASSERT_EQ(count, last);
  EXPECT_NEAR(of_prompt[0], logprob(row(0), prompt_ids_[1]), 1e-4);

  desc.logits_capacity -= 1;
  EXPECT_EQ(optima_generate(session_.get(), &desc, nullptr, nullptr), OPTIMA_E_ARG);
}

TEST_F(GenerateTest, AppendContinuesTheSession) {
  auto desc = golden_desc();
  desc.max_tokens = 4;
  generate(session_, desc);
  const std::vector<int32_t> before = session_tokens(session_);
  auto more = sized<optima_request_desc>();
  more.prompt_ids = wanted_.data() + before.size() - prompt_ids_.size();
  more.prompt_id_count = 1;
  more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
  more.max_tokens = 3;
  const Result result = generate(session_, more);
  const auto next = wanted_.begin() + static_cast<ptrdiff_t>(before.size() - prompt_ids_.size());
  EXPECT_EQ(token_ids(result), std::vector<int32_t>(next + 1, next + 4));
  must([&](optima_error** err) { return optima_session_reset(session_.get(), err); });
  EXPECT_TRUE(session_tokens(session_).empty());
}

TEST_F(GenerateTest, BadDescriptions) {
  struct Row {
    const char* what;
    void (*spoil)(optima_request_desc&);
  };
  static const int32_t ids[] = {1, 1 << 20, -5};
  static const int64_t unsorted[] = {3, 1};
  static float logits[2000];
  const Row rows[] = {
      {"no prompt",
       [](auto& d) {
         d.prompt = nullptr;
         d.prompt_bytes = 0;
       }},
      {"two prompts",
       [](auto& d) {
         d.prompt_ids = ids;
         d.prompt_id_count = 1;
       }},
      {"a huge prompt", [](auto& d) { d.prompt_bytes = SIZE_MAX / 2 + 1; }},
      {"ids out of range",
       [](auto& d) {
         d.prompt = nullptr;
         d.prompt_bytes = 0;
         d.prompt_ids = ids;
         d.prompt_id_count = 3;
       }},
      {"max_tokens", [](auto& d) { d.max_tokens = -1; }},
      {"deadline", [](auto& d) { d.deadline_ms = -1; }},
      {"temperature", [](auto& d) { d.temperature = -1; }},
      {"NaN", [](auto& d) { d.temperature = NAN; }},
      {"top_p", [](auto& d) { d.top_p = 1.5f; }},
      {"top_k", [](auto& d) { d.top_k = -1; }},
      {"logprobs", [](auto& d) { d.logprobs = -1; }},
      {"stop_tokens", [](auto& d) { d.stop_token_count = 3; }},
      {"bias", [](auto& d) { d.logit_bias_count = 1; }},
      {"from", [](auto& d) { d.prompt_logprobs_from = -2; }},
      {"no buffer",
       [](auto& d) {
         d.logits_positions = unsorted;
         d.logits_position_count = 1;
       }},
      {"unsorted",
       [](auto& d) {
         d.logits_positions = unsorted;
         d.logits_position_count = 2;
         d.logits_out = logits;
         d.logits_capacity = 2000;
       }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    auto desc = golden_desc();
    int released = 0;
    desc.user = &released;
    desc.release = count_release;
    row.spoil(desc);
    optima_result* result = nullptr;
    const Outcome outcome = outcome_of(
        [&](optima_error** err) { return optima_generate(session_.get(), &desc, &result, err); });
    EXPECT_EQ(outcome.status, OPTIMA_E_ARG) << outcome.message();
    EXPECT_FALSE(outcome.message().empty());
    EXPECT_EQ(released, 1);
    optima_result_destroy(result);
  }
  EXPECT_EQ(token_ids(generate(session_, golden_desc())), wanted_);
}

TEST_F(GenerateTest, DestroyFromInsideTheCallback) {
  for (const int what : {0, 1, 2, 3}) {
    SCOPED_TRACE(what);
    Engine engine = make_engine();
    Model model = open_tiny(engine);
    Session session = make_session(model);
    struct All {
      Engine* engine;
      Model* model;
      Session* session;
      int what;
    } all{&engine, &model, &session, what};
    Recorder recorder;
    recorder.extra = &all;
    recorder.answer = [](Recorder& r, const optima_event&) -> int32_t {
      auto& a = *static_cast<All*>(r.extra);
      if (a.what == 0 || a.what == 3) a.session->reset();
      if (a.what == 1 || a.what == 3) a.model->reset();
      if (a.what == 2 || a.what == 3) a.engine->reset();
      return OPTIMA_CONTINUE;
    };
    auto desc = golden_desc();
    recorder.listen(desc);
    optima_result* result = nullptr;
    const Outcome outcome = outcome_of(
        [&](optima_error** err) { return optima_generate(session.get(), &desc, &result, err); });
    EXPECT_EQ(outcome.status, OPTIMA_OK) << outcome.message();
    EXPECT_EQ(optima_result_finish(result),
              what == 1 ? OPTIMA_FINISH_LENGTH : OPTIMA_FINISH_CANCELLED);
    EXPECT_EQ(recorder.released, 1);
    optima_result_destroy(result);
  }
}

}  // namespace
}  // namespace optima_test
