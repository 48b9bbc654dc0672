// Weights in a second form: the same numbers come out, memory is counted, and who has no room for
// it runs without.
#include <algorithm>
#include <cmath>

#include "backend/cpu/host_isa.h"
#include "backend/cpu/packed_weights.h"
#include "kernels/matmul/matmul.h"
#include "tests/engine/tiny_model.h"

namespace optima::engine {
namespace {

LoadOptions with(Repack repack) {
  LoadOptions options;
  options.repack = repack;
  return options;
}

std::shared_ptr<Session> session_of(Engine& engine, const TinyModel& tiny, Repack repack) {
  return must(engine.create_session(must(engine.load(model::PathSource{tiny.path}, with(repack))),
                                    SessionOptions{}));
}

// Logits at each token of the golden sequence, computed in one batch.
std::vector<float> logits_of(Engine& engine, const std::shared_ptr<Session>& session,
                             const TinyModel& tiny) {
  RequestSpec spec = ids_request(tiny.all(), 0);
  spec.prompt_only = true;
  std::vector<float> logits(spec.ids.size() * static_cast<size_t>(tiny.vocabulary));
  for (size_t i = 0; i < spec.ids.size(); ++i)
    spec.logits_positions.push_back(static_cast<int64_t>(i));
  spec.logits_out = logits.data();
  spec.logits_capacity = static_cast<int64_t>(logits.size());
  must(engine.generate(session, spec, nullptr));
  return logits;
}

class RepackedModel : public testing::TestWithParam<const char*> {
 protected:
  // Sums in another order; nothing else may differ.
  void expect_near(const std::vector<float>& got, const std::vector<float>& want) const {
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
    EXPECT_LE(largest, 1e-4 * tiny_.logits_std);
  }

  const TinyModel tiny_ = tiny_model(GetParam());
  const Closing engine_{new_engine()};
};

// The first pass reads the file's form, the next ones make panels, the last ones read them.
TEST_P(RepackedModel, GivesTheSameLogits) {
  const auto plain = session_of(*engine_.engine, tiny_, Repack::off);
  const std::vector<float> want = logits_of(*engine_.engine, plain, tiny_);
  const auto packed = session_of(*engine_.engine, tiny_, Repack::on);
  for (int pass = 0; pass < 40; ++pass) {
    ASSERT_TRUE(packed->truncate(0).ok());
    expect_near(logits_of(*engine_.engine, packed, tiny_), want);
    ASSERT_FALSE(HasFailure()) << "pass " << pass;
  }
  EXPECT_EQ(
      output_ids(must(engine_->generate(packed, ids_request(tiny_.prompt, 8), nullptr))->result()),
      output_ids(must(engine_->generate(plain, ids_request(tiny_.prompt, 8), nullptr))->result()));
}

TEST_P(RepackedModel, CountsItsMemory) {
  const auto plain = session_of(*engine_.engine, tiny_, Repack::off);
  EXPECT_EQ(engine_->memory().weights_packed_bytes, 0);
  const int64_t used = engine_->memory().used_bytes;
  const auto packed = session_of(*engine_.engine, tiny_, Repack::on);
  const MemoryUse memory = engine_->memory();
  const bool has_panels =
      kernels::best(kernels::matmul_variants(), backend::cpu::host_isa()).fn.pack != nullptr;
  EXPECT_EQ(memory.weights_packed_bytes > 0, has_panels);
  EXPECT_GE(memory.used_bytes - used, memory.weights_packed_bytes);
}

// While a pass reads and makes panels, another runner of the model takes memory for its own.
TEST_P(RepackedModel, MayGetAnotherRunnerMeanwhile) {
  const auto plain = session_of(*engine_.engine, tiny_, Repack::off);
  const auto packed = session_of(*engine_.engine, tiny_, Repack::on);
  const auto request = must(engine_->submit(packed, ids_request(tiny_.prompt, 40)));
  for (const ComputePath path : {ComputePath::deterministic, ComputePath::reference}) {
    for (const SessionOutput output : {SessionOutput::tokens, SessionOutput::embedding}) {
      SessionOptions options;
      options.path = path;
      options.output = output;
      must(engine_->create_session(packed->model(), options));
    }
  }
  while (!request->done()) engine_->poll(64, -1);
  EXPECT_EQ(request->result().finish, FinishReason::length);
  ASSERT_TRUE(packed->truncate(0).ok());
  expect_near(logits_of(*engine_.engine, packed, tiny_), logits_of(*engine_.engine, plain, tiny_));
}

std::string name_of(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Types, RepackedModel,
                         testing::Values("llama-q4_0", "llama-q8_0", "gemma3-q4_0"), name_of);

// A part of a fused tensor may begin where the tensor does: each has panels of its own.
TEST(PackedWeights, TellRowsOfOneTensorApart) {
  const kernels::MatmulKernel kernel =
      kernels::best(kernels::matmul_variants(), backend::cpu::host_isa()).fn;
  if (kernel.pack == nullptr) GTEST_SKIP() << "this CPU's kernels have no panels";
  const std::vector<std::byte> data(96 * 2 * 34);
  graph::Weight part;
  part.data = data.data();
  part.type = kernels::WeightType::q8_0;
  part.rows = 32;
  part.columns = 64;
  graph::Weight whole = part;
  whole.rows = 96;
  graph::MatmulStep step{};
  step.parts = {{part, {}}, {whole, {}}};
  graph::Program program;
  program.body.push_back({graph::Rows::tokens, step});
  program.head.push_back({graph::Rows::outputs, step});
  Allocator allocator({}, 0);
  backend::cpu::PackedWeights packed;
  ASSERT_TRUE(packed.add(program, kernel, allocator).ok());
  const std::vector<backend::cpu::StepWeights> steps = packed.of(program.body);
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_NE(steps[0][0], steps[0][1]);
  EXPECT_EQ(steps[0][0]->bytes + steps[0][1]->bytes, packed.bytes());
  EXPECT_EQ(steps[0][1]->bytes, 3 * steps[0][0]->bytes);
  EXPECT_EQ(packed.of(program.head)[0], steps[0]);
}

// The limit leaves room for a session without panels, not for one with.
TEST(RepackMemory, IsTakenOnlyWhereThereIsRoom) {
  const TinyModel tiny = tiny_model("llama-q8_0");
  int64_t needed = 0, panels = 0;
  {
    const Closing engine{new_engine()};
    const auto session = session_of(*engine.engine, tiny, Repack::on);
    panels = engine->memory().weights_packed_bytes;
    needed = engine->memory().used_bytes - panels;
  }
  if (panels == 0) GTEST_SKIP() << "this CPU's kernels have no panels";
  EngineOptions options;
  options.memory_limit_bytes = needed + panels / 2;
  const Closing engine{new_engine(options)};
  const auto model = must(engine->load(model::PathSource{tiny.path}, with(Repack::on)));
  const auto refused = engine->create_session(model, SessionOptions{});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::oom_host);
  const auto fits = session_of(*engine.engine, tiny, Repack::when_free);
  EXPECT_EQ(engine->memory().weights_packed_bytes, 0);
}

}  // namespace
}  // namespace optima::engine
