// Who waits, who is refused and who runs first, through the engine's interface. The policy itself
// is tested in tests/scheduler.
#include <limits>

#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

const TinyModel& tiny() {
  static const TinyModel model = tiny_model("llama-f32");
  return model;
}

EngineOptions host_driven() {
  EngineOptions options;
  options.threads = 1;
  options.drive = Drive::host;
  return options;
}

SessionOptions reference() {
  SessionOptions options;
  options.path = ComputePath::reference;
  return options;
}

class Scheduling : public testing::Test {
 protected:
  explicit Scheduling(EngineOptions options = host_driven())
      : engine_{new_engine(std::move(options))},
        model_(must(engine_->load(model::PathSource{tiny().path}, {}))) {}

  std::shared_ptr<Session> session() { return must(engine_->create_session(model_, reference())); }
  std::shared_ptr<Request> submit(RequestSpec spec) {
    return must(engine_->submit(session(), std::move(spec)));
  }
  void finish_all() {
    while (must(engine_->step())) {
    }
  }

  const Closing engine_;
  std::shared_ptr<Model> model_;
};

class Queues : public Scheduling {
 protected:
  static EngineOptions of_two() {
    EngineOptions options = host_driven();
    options.queue_max = 2;
    return options;
  }
  Queues() : Scheduling(of_two()) {}
};

TEST_F(Queues, BeyondTheLimitIsRefusedWithNumbers) {
  submit(ids_request({1, 2, 3}, 4));
  submit(ids_request({1, 2, 3}, 4));
  EXPECT_EQ(engine_->metrics().requests_waiting, 2);
  const auto refused = session();
  const Status status = engine_->submit(refused, ids_request({1, 2, 3}, 4)).status();
  EXPECT_EQ(status.code(), Code::busy);
  EXPECT_EQ(status.numbers().wanted, 3);
  EXPECT_EQ(status.numbers().available, 0);
  EXPECT_EQ(status.numbers().limit, 2);
  EXPECT_EQ(engine_->generate(refused, ids_request({1, 2, 3}, 4), nullptr).status().code(),
            Code::busy);
  EXPECT_EQ(engine_->metrics().requests_waiting, 2);
  EXPECT_TRUE(must(engine_->step()));
  EXPECT_EQ(engine_->metrics().requests_waiting, 0) << "both run";
  EXPECT_EQ(engine_->metrics().requests_running, 2);
  const auto accepted = must(engine_->submit(refused, ids_request({1, 2, 3}, 4)));
  finish_all();
  EXPECT_EQ(accepted->result().finish, FinishReason::length);
}

TEST_F(Queues, OfABatchThatDoesNotFitNothingBegins) {
  submit(ids_request({1, 2, 3}, 4));
  const auto like = session();
  const Status status =
      engine_->run_all(like, std::vector<RequestSpec>(2, ids_request({1, 2}, 1))).status();
  EXPECT_EQ(status.code(), Code::busy);
  EXPECT_EQ(status.numbers().wanted, 3);
  EXPECT_EQ(status.numbers().available, 1);
  EXPECT_EQ(engine_->metrics().requests_waiting, 1);
  EXPECT_EQ(engine_->metrics().batches, 0u);
  finish_all();
  EXPECT_EQ(
      must(engine_->run_all(like, std::vector<RequestSpec>(2, ids_request({1, 2}, 1)))).size(), 2u);
}

TEST_F(Queues, ARequestThatIsRefusedLeavesItsSessionAsItWas) {
  const auto own = session();
  must(engine_->generate(own, ids_request({1, 2, 3}, 4), nullptr));
  const std::vector<int32_t> before = own->tokens();
  submit(ids_request({1, 2, 3}, 4));
  submit(ids_request({1, 2, 3}, 4));
  EXPECT_EQ(engine_->submit(own, ids_request({9}, 1)).status().code(), Code::busy);
  EXPECT_EQ(own->tokens(), before);
  EXPECT_TRUE(own->truncate(2).ok()) << "nothing runs in it";
}

// ---- order ----

std::vector<int32_t> prompt_of(int64_t tokens, int32_t first) {
  std::vector<int32_t> ids = {first};
  for (int64_t i = 1; i < tokens; ++i) ids.push_back(static_cast<int32_t>(3 + i * 7 % 90));
  return ids;
}

TEST_F(Scheduling, AHigherPriorityComesFirst) {
  SessionOptions options = reference();
  options.prefill_chunk_tokens = 16;
  std::vector<std::shared_ptr<Request>> low;
  RequestSpec spec = ids_request(prompt_of(100, 1), 4);
  const auto first = must(engine_->create_session(model_, options));
  low.push_back(must(engine_->submit(first, spec)));
  EXPECT_TRUE(must(engine_->step()));
  spec.priority = 5;
  spec.ids = prompt_of(200, 2);
  const auto high = submit(spec);
  EXPECT_TRUE(must(engine_->step()));
  EXPECT_TRUE(must(engine_->step()));
  while (!high->done()) EXPECT_TRUE(must(engine_->step()));
  EXPECT_FALSE(low[0]->done()) << "it had begun before";
  finish_all();
  EXPECT_EQ(low[0]->result().finish, FinishReason::length);
}

// The one that computes the common prefix is the one that comes first, not the one that came first.
TEST_F(Scheduling, APrefixIsComputedByWhoComesFirst) {
  RequestSpec spec = ids_request(prompt_of(90, 1), 4);
  const auto low = submit(spec);
  spec.priority = 5;
  const auto high = submit(spec);
  finish_all();
  EXPECT_EQ(high->result().counters.cached_tokens, 0);
  EXPECT_EQ(low->result().counters.cached_tokens, 80);
  EXPECT_EQ(output_ids(low->result()), output_ids(high->result()));
}

TEST_F(Scheduling, MoreSequencesThanABatchHoldsAllEnd) {
  std::vector<std::shared_ptr<Request>> requests;
  std::vector<std::shared_ptr<Session>> sessions;
  for (int32_t i = 0; i < 70; ++i) {
    sessions.push_back(session());
    requests.push_back(must(engine_->submit(sessions.back(), ids_request({1 + i, 2, 3}, 12))));
  }
  finish_all();
  for (const auto& request : requests) EXPECT_EQ(request->result().tokens.size(), 12u);
}

TEST_F(Scheduling, PrioritiesAreChecked) {
  RequestSpec spec = ids_request({1}, 1);
  spec.priority = 101;
  EXPECT_EQ(engine_->submit(session(), spec).status().code(), Code::invalid_argument);
  spec.priority = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(engine_->submit(session(), spec).status().code(), Code::invalid_argument);
}

TEST(QueueOption, IsChecked) {
  EngineOptions options;
  options.queue_max = -1;
  EXPECT_EQ(Engine::create(options).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace optima::engine
