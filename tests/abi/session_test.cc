// What a session can do beside generating: be forked, cut, saved and restored; and what the engine
// counts of it.
#include <cstdio>
#include <map>

#include "fixture.h"

namespace optima_test {
namespace {

using SessionTest = GoldenTest;

TEST_F(SessionTest, ForksContinueOnTheirOwn) {
  auto desc = golden_desc();
  desc.max_tokens = 0;
  desc.flags = OPTIMA_REQUEST_PROMPT_ONLY;
  generate(session_, desc);
  optima_session* handle = nullptr;
  must([&](optima_error** err) { return optima_session_fork(session_.get(), &handle, err); });
  const Session fork(handle);
  auto more = sized<optima_request_desc>();
  more.prompt = "";
  more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
  more.max_tokens = static_cast<int64_t>(wanted_.size());
  EXPECT_EQ(token_ids(generate(fork, more)), wanted_);
  EXPECT_EQ(session_tokens(session_), prompt_ids_);

  must([&](optima_error** err) { return optima_session_truncate(fork.get(), 5, err); });
  EXPECT_EQ(session_tokens(fork),
            std::vector<int32_t>(prompt_ids_.begin(), prompt_ids_.begin() + 5));
  EXPECT_EQ(optima_session_truncate(fork.get(), -1, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(optima_session_fork(fork.get(), nullptr, nullptr), OPTIMA_E_ARG);
}

TEST_F(SessionTest, SavedSessionsGoOn) {
  auto desc = golden_desc();
  desc.max_tokens = 4;
  generate(session_, desc);
  std::string saved;
  const auto append = [](void* user, const void* from, int64_t bytes) -> int32_t {
    static_cast<std::string*>(user)->append(static_cast<const char*>(from),
                                            static_cast<size_t>(bytes));
    return 0;
  };
  must(
      [&](optima_error** err) { return optima_session_save(session_.get(), append, &saved, err); });
  EXPECT_EQ(optima_session_save_bytes(session_.get()), static_cast<int64_t>(saved.size()));
  EXPECT_EQ(optima_session_save_bytes(nullptr), 0);
  const auto fails = [](void*, const void*, int64_t) -> int32_t { return 1; };
  EXPECT_EQ(optima_session_save(session_.get(), fails, nullptr, nullptr), OPTIMA_E_IO);
  const auto throws = [](void*, const void*, int64_t) -> int32_t { throw 1; };
  EXPECT_EQ(optima_session_save(session_.get(), throws, nullptr, nullptr), OPTIMA_E_IO);

  const std::string path = testing::TempDir() + "saved_session";
  must([&](optima_error** err) {
    return optima_session_save_path(session_.get(), path.c_str(), OPTIMA_NTS, err);
  });
  EXPECT_EQ(read_file(path), saved);
  EXPECT_EQ(optima_session_save_path(session_.get(), "/nowhere/at/all", OPTIMA_NTS, nullptr),
            OPTIMA_E_IO);

  auto io = sized<optima_io>();
  io.length = static_cast<int64_t>(saved.size());
  io.user = &saved;
  io.read = [](void* user, void* into, int64_t offset, int64_t bytes) -> int32_t {
    std::memcpy(into, static_cast<std::string*>(user)->data() + offset, static_cast<size_t>(bytes));
    return 0;
  };
  for (const bool from_path : {false, true}) {
    optima_session* handle = nullptr;
    must([&](optima_error** err) {
      return from_path ? optima_session_restore_path(model_.get(), nullptr, path.c_str(),
                                                     OPTIMA_NTS, &handle, err)
                       : optima_session_restore(model_.get(), nullptr, &io, &handle, err);
    });
    const Session restored(handle);
    EXPECT_EQ(session_tokens(restored), session_tokens(session_));
    auto more = sized<optima_request_desc>();
    more.prompt = "";
    more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
    more.max_tokens = 3;
    EXPECT_EQ(token_ids(generate(restored, more)),
              std::vector<int32_t>(wanted_.begin() + 4, wanted_.begin() + 7));
  }
  std::remove(path.c_str());
  const Model other = open_tiny(engine_, "llama-q8_0.gguf");
  optima_session* handle = nullptr;
  EXPECT_EQ(optima_session_restore(other.get(), nullptr, &io, &handle, nullptr), OPTIMA_E_VERSION);
  EXPECT_EQ(handle, nullptr);
  io.length -= 9;
  EXPECT_EQ(optima_session_restore(model_.get(), nullptr, &io, &handle, nullptr), OPTIMA_E_IO);
  EXPECT_EQ(
      optima_session_restore_path(model_.get(), nullptr, "/nowhere", OPTIMA_NTS, &handle, nullptr),
      OPTIMA_E_IO);
}

TEST_F(SessionTest, AnAuditCountsThePages) {
  auto before = sized<optima_kv_audit_report>();
  must([&](optima_error** err) { return optima_kv_audit(engine_.get(), &before, err); });
  EXPECT_EQ(before.pages_open + before.pages_sealed + before.pages_cached, 0);
  generate(session_, golden_desc());
  auto report = sized<optima_kv_audit_report>();
  must([&](optima_error** err) { return optima_kv_audit(engine_.get(), &report, err); });
  auto metrics = sized<optima_metrics>();
  must([&](optima_error** err) { return optima_metrics_query(engine_.get(), &metrics, err); });
  EXPECT_EQ(report.pages_open + report.pages_sealed, metrics.kv_pages_held);
  EXPECT_EQ(report.pages_sealed + report.pages_cached, metrics.kv_pages_sealed);
  EXPECT_EQ(report.references, metrics.kv_pages_held);
  EXPECT_EQ(metrics.kv_audit_faults, 0u);
  EXPECT_EQ(optima_kv_audit(engine_.get(), nullptr, nullptr), OPTIMA_E_ARG);
}

// As a router does it: an engine's events make a mirror of what it knows.
TEST_F(SessionTest, KvEventsTellWhatIsKnown) {
  auto event = sized<optima_kv_event>();
  size_t count = 0;
  uint64_t lost = 0;
  EXPECT_EQ(optima_kv_events_poll(engine_.get(), &event, 1, sizeof event, &count, &lost, nullptr),
            OPTIMA_E_STATE)
      << "none were asked for";
  auto options = sized<optima_engine_options>();
  options.kv_events = 1000;
  const Engine engine = make_engine(options);
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  generate(session, golden_desc());
  std::vector<optima_kv_event> events(1000);
  must([&](optima_error** err) {
    return optima_kv_events_poll(engine.get(), events.data(), events.size(), sizeof event, &count,
                                 &lost, err);
  });
  EXPECT_EQ(lost, 0u);
  const std::vector<int32_t> tokens = session_tokens(session);
  const size_t blocks = (tokens.size() - 1) / 16;  // the last token's KV is not there
  ASSERT_EQ(count, blocks) << "one group: no layer has a window";
  ASSERT_GT(blocks, 0u);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(events[i].struct_size, sizeof event);
    EXPECT_EQ(events[i].type, OPTIMA_KV_EVENT_STORED);
    EXPECT_EQ(events[i].group, 0);
    EXPECT_TRUE(std::equal(events[i].tokens, events[i].tokens + 16, &tokens[16 * i]));
    if (i > 0) {
      EXPECT_EQ(events[i].parent, events[i - 1].hash);
    }
  }
  options.kv_events = -1;
  optima_engine* none = nullptr;
  EXPECT_EQ(optima_engine_create(&options, &none, nullptr), OPTIMA_E_ARG);
}

// More than there is room for: the reader is told, and finds out all the same.
TEST_F(SessionTest, LostKvEventsAreCountedAndTheStreamBeginsAnew) {
  auto options = sized<optima_engine_options>();
  options.kv_events = 1;
  const Engine engine = make_engine(options);
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  auto desc = golden_desc();
  desc.max_tokens = 60;
  generate(session, desc);
  const size_t blocks = (session_tokens(session).size() - 1) / 16;
  ASSERT_GT(blocks, 2u);
  std::vector<optima_kv_event> events(1000);
  size_t count = 0;
  uint64_t lost = 0;
  must([&](optima_error** err) {
    return optima_kv_events_poll(engine.get(), events.data(), events.size(), sizeof events[0],
                                 &count, &lost, err);
  });
  EXPECT_EQ(lost, blocks);
  ASSERT_EQ(count, 1 + blocks);
  EXPECT_EQ(events[0].type, OPTIMA_KV_EVENT_CLEARED);
  EXPECT_EQ(events[1].type, OPTIMA_KV_EVENT_STORED);
}

TEST_F(SessionTest, KvOfASessionIsCounted) {
  const auto kv_of = [](const Session& session) {
    auto kv = sized<optima_session_kv>();
    must([&](optima_error** err) { return optima_session_kv_query(session.get(), &kv, err); });
    return kv;
  };
  EXPECT_EQ(kv_of(session_).pages, 0);
  generate(session_, golden_desc());
  const optima_session_kv alone = kv_of(session_);
  const auto tokens = static_cast<int64_t>(session_tokens(session_).size());
  EXPECT_EQ(alone.tokens, tokens - 1) << "nobody has asked for what follows the last one";
  EXPECT_EQ(alone.pages, (alone.tokens + 15) / 16);
  EXPECT_EQ(alone.shared_pages, 0);
  auto memory = sized<optima_memory>();
  must([&](optima_error** err) { return optima_mem_query(engine_.get(), &memory, err); });
  EXPECT_EQ(alone.bytes, memory.kv_bytes);

  optima_session* handle = nullptr;
  must([&](optima_error** err) { return optima_session_fork(session_.get(), &handle, err); });
  const Session fork(handle);
  EXPECT_EQ(kv_of(fork).shared_pages, alone.pages) << "all of it, until one writes";
  EXPECT_EQ(kv_of(fork).shared_bytes, alone.bytes);
  EXPECT_EQ(kv_of(fork).kv_root, alone.kv_root);
  must([&](optima_error** err) { return optima_mem_query(engine_.get(), &memory, err); });
  EXPECT_EQ(memory.kv_bytes, alone.bytes) << "in memory once";
  auto more = sized<optima_request_desc>();
  more.prompt = "";
  more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
  more.max_tokens = 1;
  generate(fork, more);
  EXPECT_EQ(kv_of(fork).shared_pages, alone.tokens / 16) << "all but the one that was written to";
  EXPECT_EQ(kv_of(session_).shared_pages, alone.tokens / 16);
}

TEST_F(SessionTest, WhyNothingCameFromTheCache) {
  const auto counters_of = [](const Session& session, const optima_request_desc& desc) {
    const Result result = generate(session, desc);
    auto counters = sized<optima_counters>();
    must([&](optima_error** err) { return optima_result_counters(result.get(), &counters, err); });
    return counters;
  };
  const auto miss_of = [&](const Session& session, const optima_request_desc& desc) {
    const optima_counters counters = counters_of(session, desc);
    EXPECT_EQ(counters.cached_tokens == 0, counters.cache_miss != OPTIMA_CACHE_MISS_NONE);
    return counters.cache_miss;
  };
  auto desc = golden_desc();
  desc.max_tokens = 2;
  EXPECT_EQ(miss_of(session_, ask("old", 2)), OPTIMA_CACHE_MISS_SHORT);
  EXPECT_EQ(miss_of(make_session(model_), desc), OPTIMA_CACHE_MISS_NEW);
  EXPECT_EQ(miss_of(make_session(model_), desc), OPTIMA_CACHE_MISS_NONE);
  auto scored = desc;
  scored.flags |= OPTIMA_REQUEST_PROMPT_LOGPROBS;
  EXPECT_EQ(miss_of(make_session(model_), scored), OPTIMA_CACHE_MISS_SCORED);
  auto reference = sized<optima_session_options>();
  reference.path = OPTIMA_PATH_REFERENCE;
  optima_session* handle = nullptr;
  must([&](optima_error** err) {
    return optima_session_create(model_.get(), &reference, &handle, err);
  });
  EXPECT_EQ(miss_of(Session(handle), desc), OPTIMA_CACHE_MISS_OTHER);
  const Model again = open_tiny(engine_);
  EXPECT_EQ(miss_of(make_session(again), desc), OPTIMA_CACHE_MISS_OTHER);

  auto options = sized<optima_engine_options>();
  options.kv_cached_bytes = -1;
  options.drive = OPTIMA_DRIVE_HOST;  // a session that goes has gone when the call returns
  const Engine keeps_nothing = make_engine(options);
  const Model model = open_tiny(keeps_nothing);
  EXPECT_EQ(miss_of(make_session(model), desc), OPTIMA_CACHE_MISS_NEW);
  EXPECT_EQ(miss_of(make_session(model), desc), OPTIMA_CACHE_MISS_NOT_KEPT);
  expect_sound_pages(keeps_nothing);
}

TEST_F(SessionTest, DraftsAreCountedAndChangeNothing) {
  auto desc = golden_desc();
  desc.draft_tokens = 6;
  const Result result = generate(session_, desc);
  EXPECT_EQ(token_ids(result), wanted_);
  auto counters = sized<optima_counters>();
  must([&](optima_error** err) { return optima_result_counters(result.get(), &counters, err); });
  EXPECT_GE(counters.draft_tokens, counters.draft_tokens_accepted);
  desc.draft_tokens = 33;
  EXPECT_EQ(optima_generate(session_.get(), &desc, nullptr, nullptr), OPTIMA_E_ARG);
}

// The session keeps its draft model; the host's handle may go first.
TEST_F(SessionTest, ADraftModelGuessesAndMayBeDestroyed) {
  Model draft = open_tiny(engine_);
  auto options = sized<optima_session_options>();
  options.path = OPTIMA_PATH_REFERENCE;
  options.draft_model = draft.get();
  optima_session* handle = nullptr;
  must([&](optima_error** err) {
    return optima_session_create(model_.get(), &options, &handle, err);
  });
  const Session session(handle);
  draft.reset();
  auto desc = golden_desc();
  desc.draft_tokens = 5;
  const Result result = generate(session, desc);
  EXPECT_EQ(token_ids(result), wanted_);
  auto counters = sized<optima_counters>();
  must([&](optima_error** err) { return optima_result_counters(result.get(), &counters, err); });
  EXPECT_GT(counters.draft_tokens, 0);
  EXPECT_EQ(counters.draft_tokens_accepted, counters.draft_tokens);
  auto metrics = sized<optima_metrics>();
  must([&](optima_error** err) { return optima_metrics_query(engine_.get(), &metrics, err); });
  EXPECT_GT(metrics.draft_batches, 0u);
  EXPECT_EQ(metrics.draft_tokens_accepted, static_cast<uint64_t>(counters.draft_tokens_accepted));
  EXPECT_GE(metrics.turn_seconds, metrics.compute_seconds);

  const Model other = open_tiny(engine_, "gemma3-f32.gguf");
  options.draft_model = other.get();
  optima_error* error = nullptr;
  EXPECT_EQ(optima_session_create(model_.get(), &options, &handle, &error), OPTIMA_E_ARG);
  EXPECT_NE(std::string(optima_error_message(error)).find("371"), std::string::npos);
  optima_error_destroy(error);
  options.draft_model = reinterpret_cast<const optima_model*>(engine_.get());
  EXPECT_EQ(optima_session_create(model_.get(), &options, &handle, nullptr), OPTIMA_E_ARG);
}

TEST_F(SessionTest, MetricsCount) {
  auto metrics = sized<optima_metrics>();
  auto desc = golden_desc();
  desc.max_tokens = 4;
  generate(session_, desc);
  must([&](optima_error** err) { return optima_metrics_query(engine_.get(), &metrics, err); });
  EXPECT_EQ(metrics.output_tokens, 4u);
  EXPECT_EQ(metrics.prompt_tokens, prompt_ids_.size());
  EXPECT_EQ(metrics.requests_finished, 1u);
  EXPECT_EQ(metrics.first_token_count, 1u);
  EXPECT_EQ(metrics.inter_token_count, 3u);
  EXPECT_EQ(metrics.requests_running, 0);
  EXPECT_GT(metrics.kv_pages_held, 0);
  optima_buffer* text = nullptr;
  must([&](optima_error** err) {
    return optima_metrics_render(engine_.get(), OPTIMA_METRICS_VLLM, "e1", OPTIMA_NTS, &text, err);
  });
  const Buffer owned(text);
  EXPECT_NE(std::string(optima_buffer_text(text, nullptr))
                .find("vllm:generation_tokens_total{engine=\"e1\"} 4\n"),
            std::string::npos);
  EXPECT_EQ(optima_metrics_render(engine_.get(), 7, "", 0, &text, nullptr), OPTIMA_E_UNSUPPORTED);
}

// ---- more sessions than memory ----

struct Store {
  std::map<uint64_t, std::string> kept;
  int discarded = 0, released = 0;
  bool fails = false;
};

optima_engine_options spilling(Store& store) {
  auto options = sized<optima_engine_options>();
  options.kv_budget_bytes = 7 * 4096;  // pages of the reference path
  options.kv_cached_bytes = -1;
  options.spill_user = &store;
  options.spill_release = [](void* user) { ++static_cast<Store*>(user)->released; };
  options.spill_write = [](void* user, uint64_t id, const void* from, int64_t bytes) -> int32_t {
    auto& to = *static_cast<Store*>(user);
    if (to.fails) throw 1;
    to.kept[id].append(static_cast<const char*>(from), static_cast<size_t>(bytes));
    return 0;
  };
  options.spill_read = [](void* user, uint64_t id, void* into, int64_t offset,
                          int64_t bytes) -> int32_t {
    const std::string& of = static_cast<Store*>(user)->kept.at(id);
    std::memcpy(into, of.data() + offset, static_cast<size_t>(bytes));
    return 0;
  };
  options.spill_discard = [](void* user, uint64_t id) {
    static_cast<Store*>(user)->kept.erase(id);
    ++static_cast<Store*>(user)->discarded;
  };
  return options;
}

Session reference_session(const Model& model) {
  auto options = sized<optima_session_options>();
  options.path = OPTIMA_PATH_REFERENCE;
  optima_session* session = nullptr;
  must([&](optima_error** err) {
    return optima_session_create(model.get(), &options, &session, err);
  });
  return Session(session);
}

// Two answers that do not fit at once are what each is alone.
void run_two(Store& store, optima_metrics& metrics) {
  const Engine engine = make_engine(spilling(store));
  const Model model = open_tiny(engine);
  const Session sessions[2] = {reference_session(model), reference_session(model)};
  auto desc = ask("The quick brown fox", 70);
  desc.flags = OPTIMA_REQUEST_IGNORE_EOS;
  std::vector<Request> requests;
  for (const Session& session : sessions) {
    optima_request* request = nullptr;
    desc.prompt = requests.empty() ? "The quick brown fox" : "Another text altogether";
    must([&](optima_error** err) { return optima_submit(session.get(), &desc, &request, err); });
    requests.emplace_back(request);
  }
  std::vector<std::vector<int32_t>> got;
  for (const Request& request : requests) {
    must([&](optima_error** err) { return optima_request_wait(request.get(), -1, nullptr, err); });
    optima_result* result = nullptr;
    must([&](optima_error** err) { return optima_request_result(request.get(), &result, err); });
    got.push_back(token_ids(Result(result)));
  }
  metrics = sized<optima_metrics>();
  must([&](optima_error** err) { return optima_metrics_query(engine.get(), &metrics, err); });
  desc.prompt = "The quick brown fox";
  EXPECT_EQ(got[0], token_ids(generate(reference_session(model), desc)));
  desc.prompt = "Another text altogether";
  EXPECT_EQ(got[1], token_ids(generate(reference_session(model), desc)));
}

TEST(SpillTest, PreemptedKvGoesToTheHostAndComesBack) {
  Store store;
  optima_metrics metrics;
  run_two(store, metrics);
  EXPECT_GT(metrics.preemptions, 0u);
  EXPECT_GT(metrics.spilled_bytes, 0u);
  EXPECT_EQ(metrics.restored_bytes, metrics.spilled_bytes);
  EXPECT_EQ(store.discarded, static_cast<int>(metrics.preemptions));
  EXPECT_TRUE(store.kept.empty());
  EXPECT_EQ(store.released, 1);
  Store failing;
  failing.fails = true;
  run_two(failing, metrics);
  EXPECT_GT(metrics.spill_failures, 0u);
  EXPECT_EQ(metrics.restored_bytes, 0u);
  EXPECT_EQ(failing.released, 1);
}

TEST(SpillTest, SomeOfTheFunctionsAreRefused) {
  Store store;
  auto options = spilling(store);
  options.spill_read = nullptr;
  optima_engine* engine = nullptr;
  const Outcome refused =
      outcome_of([&](optima_error** err) { return optima_engine_create(&options, &engine, err); });
  EXPECT_EQ(refused.status, OPTIMA_E_ARG);
  EXPECT_NE(refused.message().find("2 of 3"), std::string::npos) << refused.message();
  EXPECT_EQ(store.released, 1);
}

TEST_F(SessionTest, ATooSmallBudgetIsNamedInPages) {
  auto options = sized<optima_engine_options>();
  options.kv_budget_bytes = 2 * 2048;
  const Engine engine = make_engine(options);
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  auto desc =
      ask("A text that needs more pages than there are, however long one waits for them", 9);
  const Outcome refused = outcome_of(
      [&](optima_error** err) { return optima_generate(session.get(), &desc, nullptr, err); });
  EXPECT_EQ(refused.status, OPTIMA_E_OOM_HOST);
  EXPECT_GT(optima_error_wanted(refused.error.get()), 2);
  EXPECT_EQ(optima_error_available(refused.error.get()), 2);
  EXPECT_EQ(optima_error_limit(refused.error.get()), 2);
}

TEST_F(SessionTest, AContextShiftsWhenAsked) {
  const Session session = make_session(model_, 40);
  auto desc = golden_desc();
  desc.max_tokens = 60;
  EXPECT_EQ(optima_result_finish(generate(session, desc).get()), OPTIMA_FINISH_CONTEXT);
  desc.flags |= OPTIMA_REQUEST_CONTEXT_SHIFT;
  desc.shift_keep_tokens = 2;
  const Result result = generate(session, desc);
  EXPECT_EQ(optima_result_finish(result.get()), OPTIMA_FINISH_LENGTH);
  auto counters = sized<optima_counters>();
  must([&](optima_error** err) { return optima_result_counters(result.get(), &counters, err); });
  EXPECT_EQ(counters.shifted_tokens + static_cast<int64_t>(session_tokens(session).size()),
            static_cast<int64_t>(prompt_ids_.size()) + 60);
  EXPECT_GT(counters.shifted_tokens, 0);
  desc.shift_keep_tokens = 39;
  EXPECT_EQ(optima_generate(session.get(), &desc, nullptr, nullptr), OPTIMA_E_ARG);
}

}  // namespace
}  // namespace optima_test
