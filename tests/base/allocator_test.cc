// The engine's allocator: alignment, zeroes, counts, the limit, the host's functions.
#include "base/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace optima {
namespace {

using testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

TEST(Allocator, GivesZeroedAlignedMemory) {
  Allocator allocator(HostAllocator(), 0);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, 3 * kMiB,
                             2 * kMiB, 2 * kMiB - 1}) {
    // Twice, the first block soiled: the second may well be the same memory.
    for (int round = 0; round < 2; ++round) {
      auto buffer = allocator.allocate(bytes, "test");
      ASSERT_TRUE(buffer.ok()) << buffer.status().message();
      EXPECT_TRUE(*buffer);
      ASSERT_GE(buffer->size(), bytes);
      const size_t alignment = bytes >= 2 * kMiB ? 2 * kMiB : 64;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % alignment, 0u) << bytes;
      for (size_t i = 0; i < buffer->size(); ++i)
        ASSERT_EQ(buffer->data()[i], std::byte{0}) << i << " of " << bytes;
      std::memset(buffer->data(), 0xff, buffer->size());
    }
  }
  EXPECT_EQ(allocator.bytes_used(), 0);
}

TEST(Allocator, CountsUseAndPeak) {
  Allocator allocator(HostAllocator(), 0);
  {
    const auto first = allocator.allocate(1000, "first");
    const auto second = allocator.allocate(3 * kMiB, "second");
    EXPECT_EQ(allocator.bytes_used(), static_cast<int64_t>(first->size() + second->size()));
  }
  EXPECT_EQ(allocator.bytes_used(), 0);
  EXPECT_GE(allocator.bytes_peak(), static_cast<int64_t>(3 * kMiB + 1000));
}

TEST(Allocator, KeepsTheLimitAndSaysTheNumbers) {
  Allocator allocator(HostAllocator(), 1024);
  EXPECT_EQ(allocator.limit_bytes(), 1024);
  auto held = allocator.allocate(640, "held");
  ASSERT_TRUE(held.ok());
  const auto refused = allocator.allocate(448, "KV pages");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::oom_host);
  EXPECT_EQ(refused.status().numbers().wanted, 448);
  EXPECT_EQ(refused.status().numbers().available, 384);
  EXPECT_EQ(refused.status().numbers().limit, 1024);
  EXPECT_THAT(refused.status().message(), HasSubstr("KV pages"));
  EXPECT_EQ(allocator.bytes_used(), 640);
  EXPECT_TRUE(allocator.allocate(384, "rest").ok());
  *held = Buffer();
  EXPECT_TRUE(allocator.allocate(1024, "all").ok());
  EXPECT_EQ(allocator.bytes_peak(), 1024);
}

TEST(Allocator, RefusesWhatNoMachineHas) {
  Allocator allocator(HostAllocator(), 0);
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 63, size_t{1} << 62, size_t{1} << 48}) {
    const auto buffer = allocator.allocate(bytes, "absurd");
    ASSERT_FALSE(buffer.ok()) << bytes;
    EXPECT_EQ(buffer.status().code(), Code::oom_host);
    EXPECT_THAT(buffer.status().message(), HasSubstr("absurd"));
  }
  EXPECT_EQ(allocator.bytes_used(), 0);
}

TEST(Buffer, MovesItsBlock) {
  Allocator allocator(HostAllocator(), 0);
  Buffer first = allocator.allocate(64, "first").take();
  std::byte* data = first.data();
  Buffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  Buffer third = allocator.allocate(64, "third").take();
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.as<float>()[15], 0.0f);
  EXPECT_EQ(allocator.bytes_used(), 64);
  Buffer none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.size(), 0u);
}

struct Host {
  int allocations = 0;
  int releases = 0;
  size_t bytes = 0;
  int allowed = 1000;

  static void* allocate(void* user, size_t bytes, size_t alignment) {
    auto& host = *static_cast<Host*>(user);
    if (host.allocations == host.allowed) return nullptr;
    ++host.allocations;
    host.bytes += bytes;
    EXPECT_GE(alignment, 64u);
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    std::memset(memory, 0x55, bytes);
    return memory;
  }
  static void release(void* user, void* memory, size_t bytes) {
    auto& host = *static_cast<Host*>(user);
    ++host.releases;
    host.bytes -= bytes;
    std::free(memory);
  }
};

TEST(Allocator, AsksTheHostAndGivesBackTheSameSize) {
  Host host;
  host.allowed = 2;
  Allocator allocator({Host::allocate, Host::release, &host}, 0);
  {
    const auto small = allocator.allocate(100, "small");
    const auto large = allocator.allocate(5 * kMiB, "large");
    ASSERT_TRUE(small.ok() && large.ok());
    EXPECT_EQ(large->data()[5 * kMiB - 1], std::byte{0}) << "the host's memory is cleared";
    EXPECT_EQ(host.bytes, small->size() + large->size());
    const auto refused = allocator.allocate(64, "third");
    EXPECT_EQ(refused.status().code(), Code::oom_host);
    EXPECT_THAT(refused.status().message(), HasSubstr("third"));
  }
  EXPECT_EQ(host.allocations, 2);
  EXPECT_EQ(host.releases, 2);
  EXPECT_EQ(host.bytes, 0u);
  EXPECT_EQ(allocator.bytes_used(), 0);
}

TEST(Allocator, IsSafeFromManyThreadsAndNeverAboveTheLimit) {
  Allocator allocator(HostAllocator(), 64 * 10);
  std::vector<std::thread> threads;
  std::atomic<int> granted{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const auto buffer = allocator.allocate(64 * 2, "thread");
        if (buffer.ok()) ++granted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted.load(), 4 * 2000) << "four threads hold at most 8 of the 10 lines";
  EXPECT_EQ(allocator.bytes_used(), 0);
  EXPECT_LE(allocator.bytes_peak(), 64 * 8);
}

}  // namespace
}  // namespace optima
