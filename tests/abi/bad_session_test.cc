// Bad input around sessions: snapshots that are damaged, cut or of another model, callbacks that
// fail midway or destroy what calls them, calls on a session that runs. Nothing of it costs a page.
#include <random>

#include "fixture.h"

namespace optima_test {
namespace {

// A snapshot in memory behind an optima_io; its reader fails at call `fail_at`.
struct Snapshot {
  std::string bytes;
  int64_t calls = 0;
  int64_t fail_at = -1;
  int released = 0;

  optima_io io() {
    auto out = sized<optima_io>();
    out.length = static_cast<int64_t>(bytes.size());
    out.user = this;
    out.release = [](void* user) { ++static_cast<Snapshot*>(user)->released; };
    out.read = [](void* user, void* into, int64_t offset, int64_t count) -> int32_t {
      auto& self = *static_cast<Snapshot*>(user);
      if (self.calls++ == self.fail_at) return 1;
      std::memcpy(into, self.bytes.data() + offset, static_cast<size_t>(count));
      return 0;
    };
    return out;
  }
};

// Of save: takes `fail_at` calls and then fails.
struct Writer {
  std::string bytes;
  int64_t calls = 0;
  int64_t fail_at = -1;
};
int32_t write_into(void* user, const void* from, int64_t count) {
  auto& self = *static_cast<Writer*>(user);
  if (self.calls++ == self.fail_at) return 1;
  self.bytes.append(static_cast<const char*>(from), static_cast<size_t>(count));
  return 0;
}

class BadSessionTest : public GoldenTest {
 protected:
  void SetUp() override {
    auto desc = golden_desc();
    desc.max_tokens = 4;
    generate(session_, desc);
    Writer writer;
    must([&](optima_error** err) {
      return optima_session_save(session_.get(), write_into, &writer, err);
    });
    snapshot_.bytes = writer.bytes;
    writes_ = writer.calls;
  }

  // The session of a snapshot, or null with the status.
  Session restore(const Model& model, Snapshot& snapshot, optima_status wanted) {
    optima_session* handle = nullptr;
    const optima_io io = snapshot.io();
    const Outcome outcome = outcome_of([&](optima_error** err) {
      return optima_session_restore(model.get(), nullptr, &io, &handle, err);
    });
    EXPECT_EQ(outcome.status, wanted) << outcome.message();
    EXPECT_EQ(handle != nullptr, outcome.status == OPTIMA_OK);
    message_ = outcome.message();
    return Session(handle);
  }

  // The session goes on as if nothing had happened.
  void expect_usable(const Session& session) {
    auto more = sized<optima_request_desc>();
    more.prompt = "";
    more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
    more.max_tokens = 3;
    EXPECT_EQ(token_ids(generate(session, more)),
              std::vector<int32_t>(wanted_.begin() + 4, wanted_.begin() + 7));
  }

  Snapshot snapshot_;
  int64_t writes_ = 0;
  std::string message_;
};

TEST_F(BadSessionTest, TenThousandDamagedSnapshots) {
  std::mt19937 random(7);
  const std::string good = snapshot_.bytes;
  for (int i = 0; i < 10'000; ++i) {
    Snapshot bad{good};
    const size_t at = random() % good.size();
    const uint32_t kind = random() % 4;
    if (kind == 0) bad.bytes[at] = static_cast<char>(bad.bytes[at] ^ (1 << random() % 8));
    if (kind == 1) bad.bytes.resize(at);
    if (kind == 2) bad.bytes.insert(at, 1 + random() % 9, 'x');
    if (kind == 3) bad.bytes.erase(at, 1 + random() % 9);
    // Reserved bytes behind the version, and what follows the end, are not looked at.
    if (bad.bytes.size() >= good.size() && bad.bytes.substr(0, 12) == good.substr(0, 12) &&
        bad.bytes.substr(16, good.size() - 16) == good.substr(16))
      continue;
    const optima_io io = bad.io();
    optima_session* handle = nullptr;
    const optima_status status =
        optima_session_restore(model_.get(), nullptr, &io, &handle, nullptr);
    ASSERT_NE(status, OPTIMA_OK) << "mutation " << i << " of kind " << kind << " at " << at;
    ASSERT_NE(status, OPTIMA_E_INTERNAL) << "mutation " << i << " of kind " << kind << " at " << at;
    ASSERT_EQ(handle, nullptr);
    ASSERT_EQ(bad.released, 1);
    if (i % 1000 == 0) expect_sound_pages(engine_);
  }
  expect_usable(restore(model_, snapshot_, OPTIMA_OK));
}

TEST_F(BadSessionTest, SnapshotsOfOtherModelsAreRefusedWithBothValues) {
  for (const char* file : {"llama-f16.gguf", "llama-q8_0.gguf", "gemma3-f32.gguf"}) {
    const Model other = open_tiny(engine_, file);
    restore(other, snapshot_, OPTIMA_E_VERSION);
    EXPECT_NE(message_.find("model is "), std::string::npos) << message_;
    EXPECT_NE(message_.find(", here it is "), std::string::npos) << message_;
  }
  auto options = sized<optima_session_options>();
  options.path = OPTIMA_PATH_REFERENCE;
  optima_session* handle = nullptr;
  const optima_io io = snapshot_.io();
  const Outcome outcome = outcome_of([&](optima_error** err) {
    return optima_session_restore(model_.get(), &options, &io, &handle, err);
  });
  EXPECT_EQ(outcome.status, OPTIMA_E_VERSION);
  EXPECT_NE(outcome.message().find("KV type"), std::string::npos) << outcome.message();
  expect_usable(session_);
}

TEST_F(BadSessionTest, AWriterThatFailsMidway) {
  for (int64_t call = 0; call < writes_; ++call) {
    Writer writer;
    writer.fail_at = call;
    EXPECT_EQ(optima_session_save(session_.get(), write_into, &writer, nullptr), OPTIMA_E_IO);
    EXPECT_EQ(writer.calls, call + 1) << "not called again";
    expect_sound_pages(engine_);
  }
  expect_usable(session_);
}

TEST_F(BadSessionTest, AReaderThatFailsMidway) {
  restore(model_, snapshot_, OPTIMA_OK);
  const int64_t reads = snapshot_.calls;
  ASSERT_GT(reads, 5);
  for (int64_t call = 0; call < reads; ++call) {
    Snapshot failing{snapshot_.bytes};
    failing.fail_at = call;
    restore(model_, failing, OPTIMA_E_IO);
    EXPECT_EQ(failing.calls, call + 1);
    EXPECT_EQ(failing.released, 1);
    expect_sound_pages(engine_);
  }
  auto memory = sized<optima_memory>();
  must([&](optima_error** err) { return optima_mem_query(engine_.get(), &memory, err); });
  auto kv = sized<optima_session_kv>();
  must([&](optima_error** err) { return optima_session_kv_query(session_.get(), &kv, err); });
  EXPECT_EQ(memory.kv_bytes, kv.bytes) << "nobody else holds anything";
}

// The callbacks destroy what they serve; the call goes on with what it holds.
TEST_F(BadSessionTest, CallbacksThatDestroyTheirSession) {
  struct Both {
    Session* session;
    Writer writer;
  } both{&session_, {}};
  const auto write = [](void* user, const void* from, int64_t count) -> int32_t {
    auto& b = *static_cast<Both*>(user);
    b.session->reset();
    return write_into(&b.writer, from, count);
  };
  must([&](optima_error** err) { return optima_session_save(session_.get(), write, &both, err); });
  EXPECT_EQ(both.writer.bytes, snapshot_.bytes) << "whole all the same";
  EXPECT_EQ(session_, nullptr);
  expect_sound_pages(engine_);

  // The same in the middle of an answer.
  Session session = restore(model_, snapshot_, OPTIMA_OK);
  auto more = sized<optima_request_desc>();
  more.prompt = "";
  more.flags = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_IGNORE_EOS;
  more.max_tokens = 8;
  more.user = &session;
  more.on_event = [](void* user, const optima_event* event) -> int32_t {
    if (event->type == OPTIMA_EVENT_TOKEN) static_cast<Session*>(user)->reset();
    return OPTIMA_CONTINUE;
  };
  const Result result = generate(session, more);
  EXPECT_EQ(optima_result_finish(result.get()), OPTIMA_FINISH_CANCELLED);
  EXPECT_EQ(token_ids(result), std::vector<int32_t>(wanted_.begin() + 4, wanted_.begin() + 5));
  expect_sound_pages(engine_);
}

TEST_F(BadSessionTest, ARunningSessionIsNeitherForkedNorCutNorSaved) {
  auto options = sized<optima_engine_options>();
  options.drive = OPTIMA_DRIVE_HOST;
  const Engine engine = make_engine(options);
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  optima_request* raw = nullptr;
  const auto desc = golden_desc();
  must([&](optima_error** err) { return optima_submit(session.get(), &desc, &raw, err); });
  const Request request(raw);
  for (int step = 0; step < 3; ++step) {
    optima_session* fork = nullptr;
    const Outcome outcome = outcome_of(
        [&](optima_error** err) { return optima_session_fork(session.get(), &fork, err); });
    EXPECT_EQ(outcome.status, OPTIMA_E_BUSY);
    EXPECT_NE(outcome.message(), "");
    EXPECT_EQ(fork, nullptr);
    EXPECT_EQ(optima_session_truncate(session.get(), 3, nullptr), OPTIMA_E_BUSY);
    EXPECT_EQ(optima_session_reset(session.get(), nullptr), OPTIMA_E_BUSY);
    Writer writer;
    EXPECT_EQ(optima_session_save(session.get(), write_into, &writer, nullptr), OPTIMA_E_BUSY);
    EXPECT_EQ(writer.calls, 0);
    must([&](optima_error** err) { return optima_step(engine.get(), nullptr, err); });
    expect_sound_pages(engine);
  }
  optima_request_cancel(request.get());
  must([&](optima_error** err) { return optima_step(engine.get(), nullptr, err); });
  optima_session* fork = nullptr;
  must([&](optima_error** err) { return optima_session_fork(session.get(), &fork, err); });
  optima_session_destroy(fork);
  expect_sound_pages(engine);
}

}  // namespace
}  // namespace optima_test
