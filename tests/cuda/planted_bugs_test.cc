// Kernels that are wrong on purpose: each must be found, and found again after a launch that
// failed. What a sanitizer finds is in races_test.cc and bounds_test.cc.
#include <math.h>

#include "tests/cuda/shim_testing.h"

namespace optima::kernels::cuda {
namespace {

using testing::HasSubstr;

enum class Barrier { there, missing };

// Each thread reads what another warp has written to shared memory.
template <Barrier kBarrier>
CE_GLOBAL(64)
neighbour_kernel(float* out) {
  CE_SHARED(values, float, [64]);
  values[ce::thread_x()] = 1.0f;
  if constexpr (kBarrier == Barrier::there) ce::sync();
  out[ce::thread_x()] = values[(ce::thread_x() + 32) % 64];
}

bool any_nan(const std::vector<float>& values) {
  for (const float value : values) {
    if (isnan(value)) return true;
  }
  return false;
}

TEST(PlantedBugs, MissingBarrierReadsNan) {
  std::vector<float> out(64);
  for (const NamedMachine& named : machines()) {
    const ce::Launch config = {"neighbour", {2}, 64, 0, named.machine.get()};
    ASSERT_TRUE(ce::launch(neighbour_kernel<Barrier::missing>, config, out.data()).ok());
    EXPECT_TRUE(any_nan(out)) << named.name;
    ASSERT_TRUE(ce::launch(neighbour_kernel<Barrier::there>, config, out.data()).ok());
    EXPECT_FALSE(any_nan(out)) << named.name;
  }
}

CE_GLOBAL(64) divergent_kernel(int* out) {
  if (ce::thread_x() < 32) {
    ce::sync();
  } else {
    ce::sync();
  }
  out[ce::thread_x()] = 1;
}

TEST(PlantedBugs, DivergentBarrier) {
  std::vector<int> out(64);
  const std::string text = text_of([&](ce::Stream stream) {
    return ce::launch(divergent_kernel, {"divergent", {2}, 64, 0, stream}, out.data());
  });
  EXPECT_THAT(text, HasSubstr("divergent, block (0, 0, 0), thread 32, planted_bugs_test.cc:"));
  EXPECT_THAT(text, HasSubstr("divergent barrier: thread 0 came to the one at planted_bugs_test"));
}

// Half of the block does not come to the barrier.
CE_GLOBAL(64) guarded_kernel(int* out) {
  if (ce::thread_x() < 40) ce::sync();
  out[ce::thread_x()] = 1;
}

TEST(PlantedBugs, BarrierThatNotAllComeTo) {
  std::vector<int> out(64);
  const std::string text = text_of([&](ce::Stream stream) {
    return ce::launch(guarded_kernel, {"guarded", {1}, 64, 0, stream}, out.data());
  });
  EXPECT_THAT(text, HasSubstr("deadlock: thread 0 waits at the barrier of planted_bugs_test.cc:"));
  EXPECT_THAT(text, HasSubstr("for thread 40, which has ended"));
}

// Lane 15 believes that it is not part of the exchange.
CE_GLOBAL(32) absent_lane_kernel(int* out) {
  int value = ce::lane();
  if (ce::lane() != 15) value = ce::shfl_xor(ce::kFullMask, value, 1);
  ce::sync();
  out[ce::lane()] = value;
}

TEST(PlantedBugs, LaneOfTheMaskThatDoesNotCome) {
  std::vector<int> out(32);
  const std::string text = text_of([&](ce::Stream stream) {
    return ce::launch(absent_lane_kernel, {"absent_lane", {1}, 32, 0, stream}, out.data());
  });
  EXPECT_THAT(text, HasSubstr("deadlock: thread 0 waits at shfl_xor of planted_bugs_test.cc:"));
  EXPECT_THAT(text, HasSubstr("for thread 15, which waits at planted_bugs_test.cc:"));
}

enum class MaskBug { without_itself, beyond_the_block, reads_outside, different_words };

CE_GLOBAL(48) mask_kernel(int* out, MaskBug bug) {
  const int lane = ce::lane();
  int value = 0;
  if (bug == MaskBug::without_itself) {
    value = ce::shfl(0x7fffffffu, lane, 0);
  } else if (bug == MaskBug::beyond_the_block) {
    value = ce::shfl(ce::kFullMask, lane, 0);  // the second warp has sixteen lanes
  } else if (bug == MaskBug::reads_outside) {
    if (lane < 8) value = ce::shfl(0xffu, lane, 9);
  } else if (lane < 16) {
    value = lane % 2 == 0 ? ce::shfl_up(0xffffu, lane, 1) : ce::shfl_down(0xffffu, lane, 1);
  }
  out[ce::thread_x()] = value;
}

TEST(PlantedBugs, Masks) {
  std::vector<int> out(48);
  const struct {
    MaskBug bug;
    const char* want;
  } bugs[] = {{MaskBug::without_itself, "thread 31, planted_bugs_test.cc"},
              {MaskBug::without_itself, "the mask lacks the thread itself"},
              {MaskBug::beyond_the_block, "the mask has lanes that do not exist"},
              {MaskBug::reads_outside, "reads a lane outside the mask"},
              {MaskBug::different_words, "shfl_down meets shfl_up"}};
  for (const auto& planted : bugs) {
    const std::string text = text_of([&](ce::Stream stream) {
      return ce::launch(mask_kernel, {"masks", {1}, 48, 0, stream}, out.data(), planted.bug);
    });
    EXPECT_THAT(text, HasSubstr(planted.want));
  }
}

enum class Wait { there, missing };

template <Wait kWait>
CE_GLOBAL(32)
copied_kernel(const float* from, float* to) {
  CE_SHARED(tile, float, [128]);
  ce::copy_async16(tile + 4 * ce::lane(), from + 4 * ce::lane());
  ce::copy_commit();
  if constexpr (kWait == Wait::there) ce::copy_wait<0>();
  ce::sync();
  for (int i = 0; i < 4; ++i) to[4 * ce::lane() + i] = tile[127 - 4 * ce::lane() - i];
}

TEST(PlantedBugs, MissingWaitForACopyReadsNan) {
  alignas(16) float from[128] = {};
  std::vector<float> to(128);
  cuda_host::Machine machine;
  const ce::Launch config = {"copied", {1}, 32, 0, &machine};
  ASSERT_TRUE(ce::launch(copied_kernel<Wait::missing>, config, from, to.data()).ok());
  EXPECT_TRUE(any_nan(to));
  ASSERT_TRUE(ce::launch(copied_kernel<Wait::there>, config, from, to.data()).ok());
  EXPECT_EQ(to, std::vector<float>(128, 0.0f));
}

enum class AddressBug { misaligned_load, misaligned_copy, copy_to_global, too_many_copies };

CE_GLOBAL(1) address_kernel(float* memory, AddressBug bug) {
  CE_SHARED(tile, float, [8]);
  alignas(16) float own[8] = {};
  if (bug == AddressBug::misaligned_load) memory[0] = ce::load<float, 4>(memory + 1).v[0];
  if (bug == AddressBug::misaligned_copy) ce::copy_async16(tile, memory + 1);
  if (bug == AddressBug::copy_to_global) ce::copy_async16(memory, own);
  if (bug == AddressBug::too_many_copies) {
    for (int i = 0; i < 65; ++i) ce::copy_async16(tile, memory);
  }
}

TEST(PlantedBugs, Addresses) {
  alignas(16) float memory[8] = {};
  const struct {
    AddressBug bug;
    const char* want;
  } bugs[] = {
      {AddressBug::misaligned_load, "an access of 16 bytes at an address that is no multiple"},
      {AddressBug::misaligned_copy, "an access of 16 bytes at an address that is no multiple"},
      {AddressBug::copy_to_global, "a copy to what is not shared memory"},
      {AddressBug::too_many_copies, "more than 64 copies under way"}};
  for (const auto& planted : bugs) {
    const std::string text = text_of([&](ce::Stream stream) {
      return ce::launch(address_kernel, {"address", {1}, 1, 0, stream}, memory, planted.bug);
    });
    EXPECT_THAT(text, HasSubstr(planted.want));
    EXPECT_THAT(text, HasSubstr("thread 0, planted_bugs_test.cc:"));
  }
}

CE_GLOBAL(32) endless_kernel(const int* flag) {
  while (ce::atomic_load(flag) == 0) ce::pause();
}

TEST(PlantedBugs, WaitingForWhatNobodyWrites) {
  const int flag = 0;
  EXPECT_THAT(text_of([&](ce::Stream stream) {
                return ce::launch(endless_kernel, {"endless", {1}, 2, 0, stream}, &flag);
              }),
              HasSubstr("wait in a loop for a value that nobody writes"));
}

CE_GLOBAL(1024) idle_kernel() {}

template <int kBytes>
CE_GLOBAL(32)
large_kernel(char* out) {
  CE_SHARED(memory, char, [kBytes]);
  memory[ce::lane()] = 1;
  out[ce::lane()] = memory[ce::lane()];
}

TEST(PlantedBugs, LaunchesThatADeviceWouldRefuse) {
  const auto idle = [](ce::Dim grid, int threads, size_t bytes) {
    return text_of([&](ce::Stream stream) {
      return ce::launch(idle_kernel, {"idle", grid, threads, bytes, stream});
    });
  };
  EXPECT_EQ(idle({1}, 1024, 65536), "");
  EXPECT_EQ(idle({1}, 1025, 0), "idle: launch refused: threads 1025, allowed are 1 to 1024");
  EXPECT_THAT(idle({1}, 0, 0), HasSubstr("threads 0"));
  EXPECT_THAT(idle({0}, 32, 0), HasSubstr("grid x 0"));
  EXPECT_THAT(idle({1, 65536}, 32, 0), HasSubstr("grid y 65536"));
  EXPECT_THAT(idle({1, 1, 65536}, 32, 0), HasSubstr("grid z 65536"));
  EXPECT_THAT(idle({1}, 32, 65537), HasSubstr("shared bytes 65537"));
  EXPECT_THAT(ce::launch(idle_kernel, {"idle", {1}, 32, 0, nullptr}).text,
              HasSubstr("without a stream"));
  std::vector<char> out(32);
  const auto large = [&](size_t dynamic) {
    return text_of([&](ce::Stream stream) {
      return ce::launch(large_kernel<48 * 1024>, {"large", {1}, 32, dynamic, stream}, out.data());
    });
  };
  EXPECT_EQ(large(16 * 1024), "");
  EXPECT_THAT(large(16 * 1024 + 1), HasSubstr("bytes of static shared memory and 16385"));
  EXPECT_THAT(
      text_of([&](ce::Stream stream) {
        return ce::launch(large_kernel<48 * 1024 + 1>, {"large", {1}, 32, 0, stream}, out.data());
      }),
      HasSubstr("49153 bytes of static shared memory"));
}

TEST(PlantedBugs, LaunchesThatAreToFail) {
  cuda_host::Machine machine({.failing_launch = 2});
  const ce::Launch config = {"idle", {1}, 32, 0, &machine};
  EXPECT_TRUE(ce::launch(idle_kernel, config).ok());
  EXPECT_THAT(ce::launch(idle_kernel, config).text, HasSubstr("this one was to fail"));
  EXPECT_TRUE(ce::launch(idle_kernel, config).ok());
  EXPECT_EQ(machine.launches(), 3);
}

// The first block that failed is named, whichever worker came first; and the machine goes on.
CE_GLOBAL(64) some_blocks_kernel(int first_bad, int* out) {
  if (ce::block_x() < first_bad || ce::thread_x() < 40) ce::sync();
  if (ce::thread_x() == 0) out[ce::block_x()] = 1;
}

TEST(PlantedBugs, AMachineOutlivesFailedLaunches) {
  for (const NamedMachine& named : machines()) {
    std::vector<int> out(8);
    const ce::Launch config = {"some_blocks", {8}, 64, 0, named.machine.get()};
    for (const int first_bad : {3, 0, 7}) {
      EXPECT_THAT(ce::launch(some_blocks_kernel, config, first_bad, out.data()).text,
                  HasSubstr("block (" + std::to_string(first_bad) + ", 0, 0)"));
    }
    std::fill(out.begin(), out.end(), 0);
    const ce::Status status = ce::launch(some_blocks_kernel, config, 8, out.data());
    ASSERT_TRUE(status.ok()) << status.text;
    EXPECT_EQ(out, std::vector<int>(8, 1));
  }
}

}  // namespace
}  // namespace optima::kernels::cuda
