// Bugs whose result may be right, and which only a sanitizer sees: each is run in a process of its
// own, which the sanitizer must end. Their repaired forms run in this one. In a build without the
// sanitizer a bug's test is not there.
#include "tests/cuda/shim_testing.h"

namespace optima::kernels::cuda {
namespace {

enum class Form { repaired, broken };

// Fills `count` floats of dynamic shared memory, of which the launch gives 64.
CE_GLOBAL(32) dynamic_kernel(int count, float* out) {
  CE_DYN_SMEM(bytes);
  float* memory = reinterpret_cast<float*>(bytes);
  for (int i = ce::lane(); i < count; i += 32) memory[i] = 1.0f;
  ce::sync();
  out[ce::lane()] = memory[ce::lane()];
}

void run_dynamic(int count) {
  std::vector<float> out(32);
  cuda_host::Machine machine;
  ASSERT_TRUE(
      ce::launch(dynamic_kernel, {"dynamic", {1}, 32, 64 * 4, &machine}, count, out.data()).ok());
}

// Threads of the second warp read what those of the first have written.
template <Form kForm>
CE_GLOBAL(64)
unordered_kernel(float* out) {
  CE_SHARED(values, float, [64]);
  values[ce::thread_x()] = 1.0f;
  if constexpr (kForm == Form::repaired) ce::sync();
  out[ce::thread_x()] = values[63 - ce::thread_x()];
}

// Two uses of one buffer; the second begins while slow threads still read the first. The shim runs
// them so that the sum comes out right.
template <Form kForm>
CE_GLOBAL(64)
reused_kernel(float* out) {
  CE_SHARED(value, float, [1]);
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    if (ce::thread_x() == 0) value[0] = static_cast<float>(i);
    ce::sync();
    sum += value[0];
    if constexpr (kForm == Form::repaired) ce::sync();
  }
  out[ce::thread_x()] = sum;
}

// A shuffle makes lanes meet and orders no memory.
template <Form kForm>
CE_GLOBAL(32)
shuffle_kernel(float* out) {
  CE_SHARED(values, float, [32]);
  values[ce::lane()] = 1.0f;
  float sum = ce::shfl_xor(ce::kFullMask, 1.0f, 1);
  if constexpr (kForm == Form::repaired) ce::syncwarp(ce::kFullMask);
  sum += values[31 - ce::lane()];
  out[ce::lane()] = sum;
}

// Blocks have no order among themselves.
template <Form kForm>
CE_GLOBAL(32)
blocks_kernel(float* out) {
  out[kForm == Form::repaired ? ce::block_x() * 32 + ce::lane() : ce::lane()] = 1.0f;
}

// A copy under way is a write: the buffer may not be read by others then.
template <Form kForm>
CE_GLOBAL(64)
overtaken_kernel(const float* from, float* out) {
  CE_SHARED(stage, float, [256]);
  const int at = 4 * ce::thread_x();
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    ce::copy_async16(stage + at, from + at);
    ce::copy_commit();
    ce::copy_wait<0>();
    ce::sync();
    sum += stage[255 - at];
    if constexpr (kForm == Form::repaired) ce::sync();
  }
  out[ce::thread_x()] = sum;
}

constexpr int kWorkers = 2;

template <typename Kernel>
ce::Status run(Kernel kernel, int threads, int blocks) {
  std::vector<float> out(256);
  cuda_host::Machine machine({.workers = kWorkers});
  return ce::launch(kernel, {"planted", {blocks}, threads, 0, &machine}, out.data());
}

template <Form kForm>
ce::Status run_overtaken() {
  alignas(16) static const float from[256] = {};
  std::vector<float> out(64);
  cuda_host::Machine machine;
  return ce::launch(overtaken_kernel<kForm>, {"overtaken", {1}, 64, 0, &machine}, from, out.data());
}

TEST(Sanitizers, RepairedFormsAreClean) {
  run_dynamic(64);
  EXPECT_TRUE(run(unordered_kernel<Form::repaired>, 64, 1).ok());
  EXPECT_TRUE(run(reused_kernel<Form::repaired>, 64, 1).ok());
  EXPECT_TRUE(run(shuffle_kernel<Form::repaired>, 32, 1).ok());
  EXPECT_TRUE(run(blocks_kernel<Form::repaired>, 32, 4).ok());
  EXPECT_TRUE(run_overtaken<Form::repaired>().ok());
}

#ifdef OPTIMA_ASAN_BUILD
TEST(SanitizersDeathTest, DynamicSharedMemoryOverrun) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(run_dynamic(65), "heap-buffer-overflow");
}

TEST(SanitizersDeathTest, StaticSharedMemoryOverrun) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(run(unordered_kernel<Form::repaired>, 65, 1), "heap-buffer-overflow|out of bounds");
}
#endif

#ifdef OPTIMA_TSAN_BUILD
// What ThreadSanitizer makes a process's exit status when it has reported something.
constexpr int kRaceExit = 66;

void expect_race(ce::Status (*bug)()) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(exit(bug().ok() ? 0 : 1), testing::ExitedWithCode(kRaceExit), "data race");
}

TEST(SanitizersDeathTest, MissingBarrierIsARace) {
  expect_race([] { return run(unordered_kernel<Form::broken>, 64, 1); });
}
TEST(SanitizersDeathTest, BufferUsedAgainTooEarlyIsARace) {
  expect_race([] { return run(reused_kernel<Form::broken>, 64, 1); });
}
TEST(SanitizersDeathTest, ShuffleIsNoFence) {
  expect_race([] { return run(shuffle_kernel<Form::broken>, 32, 1); });
}
TEST(SanitizersDeathTest, BlocksThatWriteOnePlaceAreARace) {
  expect_race([] { return run(blocks_kernel<Form::broken>, 32, kWorkers); });
}
TEST(SanitizersDeathTest, CopyIntoABufferThatIsReadIsARace) {
  expect_race([] { return run_overtaken<Form::broken>(); });
}
#endif

}  // namespace
}  // namespace optima::kernels::cuda
