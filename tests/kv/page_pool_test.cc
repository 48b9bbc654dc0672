// The pool against a naive shadow (a list of what is held and what was written into it), its
// limits, a host allocator that fails at every possible call, and threads.
#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>

namespace optima::kv {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// A host allocator that refuses its n-th call and counts the blocks that are out.
struct FailingHost {
  int64_t fail_at = -1;
  int64_t calls = 0;
  int64_t blocks = 0;

  HostAllocator functions() {
    return {[](void* user, size_t bytes, size_t alignment) -> void* {
              auto* host = static_cast<FailingHost*>(user);
              if (host->calls++ == host->fail_at) return nullptr;
              ++host->blocks;
              return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
            },
            [](void* user, void* memory, size_t) {
              --static_cast<FailingHost*>(user)->blocks;
              std::free(memory);
            },
            this};
  }
};

struct Shadow {
  PageRef ref;
  int64_t bytes;
  unsigned char mark;
};

bool marked(const Shadow& page) {
  for (int64_t i = 0; i < page.bytes; i += 61)
    if (page.ref.data()[i] != page.mark) return false;
  return page.ref.data()[page.bytes - 1] == page.mark;
}

TEST(PagePool, AgreesWithAShadowOverRandomOperations) {
  constexpr int64_t kBudget = int64_t{24} << 20;
  const int64_t sizes[] = {4096, 49152, 245760, 1000};
  Allocator allocator({}, 0);
  PagePool pool(allocator, {kBudget, 0});
  std::mt19937_64 random(7);
  std::vector<Shadow> held;
  int64_t held_bytes = 0;
  for (int operation = 0; operation < 100000; ++operation) {
    // The aim wanders, so that slabs fill up and empty again.
    const bool grow = random() % 100 < (operation / 5000 % 2 == 0 ? 62u : 38u);
    if (grow) {
      const int64_t bytes = sizes[random() % 4];
      const int64_t stride = (bytes + 63) / 64 * 64;
      const int64_t count = 1 + static_cast<int64_t>(random() % 5);
      std::vector<PageRef> pages;
      const Status status = pool.acquire(bytes, count, pages);
      const int64_t affordable = (kBudget - held_bytes) / stride;
      ASSERT_EQ(status.ok(), count <= affordable) << status.message();
      if (!status.ok()) {
        ASSERT_TRUE(pages.empty());
        ASSERT_EQ(status.numbers().wanted, count);
        ASSERT_EQ(status.numbers().available, affordable);
        continue;
      }
      ASSERT_EQ(static_cast<int64_t>(pages.size()), count);
      for (PageRef& page : pages) {
        const auto mark = static_cast<unsigned char>(random());
        ASSERT_EQ(reinterpret_cast<uintptr_t>(page.data()) % 64, 0u);
        std::memset(page.data(), mark, static_cast<size_t>(bytes));
        held.push_back({std::move(page), bytes, mark});
        held_bytes += stride;
      }
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      ASSERT_TRUE(marked(held.back())) << "a page was overwritten at operation " << operation;
      held_bytes -= (held.back().bytes + 63) / 64 * 64;
      held.pop_back();
    }
    const PoolCounts counts = pool.counts();
    ASSERT_EQ(counts.bytes_held, held_bytes);
    ASSERT_EQ(counts.bytes_free, kBudget - held_bytes);
    ASSERT_EQ(counts.pages_held, static_cast<int64_t>(held.size()));
    ASSERT_GE(allocator.bytes_used(), held_bytes);
  }
  for (const Shadow& page : held) ASSERT_TRUE(marked(page));
  held.clear();
  EXPECT_EQ(pool.counts().pages_held, 0);
  // One empty slab per size at most: 2 MiB each, or a little more.
  EXPECT_LE(allocator.bytes_used(), int64_t{4} * (int64_t{2} << 20));
}

TEST(PagePool, HandsOutTheLastPageGivenBack) {
  Allocator allocator({}, 0);
  PagePool pool(allocator, {});
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool.acquire(300000, 42, pages).ok());  // seven full slabs
  std::vector<unsigned char*> given_back;
  for (size_t i : {3u, 39u, 17u, 8u}) {
    given_back.push_back(pages[i].data());
    pages[i].reset();
  }
  while (!given_back.empty()) {
    auto page = pool.acquire(300000);
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(page->data(), given_back.back());
    given_back.pop_back();
    pages.push_back(page.take());
  }
}

TEST(PagePool, NewPagesAreZeroed) {
  Allocator allocator({}, 0);
  PagePool pool(allocator, {});
  auto page = pool.acquire(65536);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(std::vector<unsigned char>(page->data(), page->data() + 65536),
            std::vector<unsigned char>(65536, 0));
}

TEST(PagePool, GivesEmptySlabsBack) {
  FailingHost host;
  Allocator allocator(host.functions(), 0);
  {
    PagePool pool(allocator, {});
    std::vector<PageRef> pages;
    ASSERT_TRUE(pool.acquire(int64_t{1} << 20, 64, pages).ok());
    EXPECT_EQ(host.blocks, 16);  // four pages a slab
    pages.clear();
    EXPECT_EQ(host.blocks, 1);
    const int64_t calls = host.calls;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.acquire(int64_t{1} << 20).ok());
    EXPECT_EQ(host.calls, calls);  // the slab that was kept serves a page that comes and goes
  }
  EXPECT_EQ(host.blocks, 0);
  EXPECT_EQ(allocator.bytes_used(), 0);
}

TEST(PagePool, BudgetErrorCarriesPages) {
  Allocator allocator({}, 0);
  PagePool pool(allocator, {10 * 4096 + 100, 0});
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool.acquire(4096, 7, pages).ok());
  const Status status = pool.acquire(4096, 4, pages);
  EXPECT_EQ(status.code(), Code::oom_host);
  EXPECT_EQ(status.numbers().wanted, 4);
  EXPECT_EQ(status.numbers().available, 3);
  EXPECT_EQ(status.numbers().limit, 10);
  EXPECT_EQ(status.message(),
            "4 KV pages of 4096 bytes wanted, 3 free: the KV budget is 41060 bytes, of which "
            "28672 are held");
  EXPECT_EQ(pages.size(), 7u);
  EXPECT_TRUE(pool.acquire(4096, 3, pages).ok());
  EXPECT_FALSE(pool.acquire(4096).ok());
  EXPECT_TRUE(pool.acquire(4096, 0, pages).ok());
}

TEST(PagePool, UsesTheAllocatorsLimitToThePage) {
  constexpr int64_t kPage = 100 * 1024;
  Allocator allocator({}, 53 * kPage + 4096);
  PagePool pool(allocator, {});
  EXPECT_EQ(pool.counts().bytes_budget, allocator.limit_bytes());
  std::vector<PageRef> pages;
  const Status status = pool.acquire(kPage, 54, pages);
  EXPECT_EQ(status.code(), Code::oom_host);
  EXPECT_EQ(status.numbers().wanted, 54);
  EXPECT_EQ(status.numbers().available, 53);
  EXPECT_NE(status.message().find("memory limit of"), std::string::npos) << status.message();
  EXPECT_TRUE(pages.empty());
  ASSERT_TRUE(pool.acquire(kPage, 53, pages).ok());
  EXPECT_EQ(pool.counts().bytes_free, 4096);
  pages.clear();
  // What another size keeps spare must not stand in the way.
  ASSERT_TRUE(pool.acquire(kPage / 2, 106, pages).ok());
}

TEST(PagePool, RefusesImpossibleSizes) {
  Allocator allocator({}, 0);
  PagePool pool(allocator, {});
  std::vector<PageRef> pages;
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, kUnlimited})
    EXPECT_EQ(pool.acquire(bytes, 1, pages).code(), Code::invalid_argument) << bytes;
  EXPECT_EQ(pool.acquire(64, -1, pages).code(), Code::invalid_argument);
  EXPECT_EQ(pool.counts().bytes_free, kUnlimited);
}

TEST(PagePool, SurvivesAFailureOfEveryAllocation) {
  constexpr int64_t kPage = 600000;
  for (int64_t fail_at = 0; fail_at < 12; ++fail_at) {
    FailingHost host;
    host.fail_at = fail_at;
    Allocator allocator(host.functions(), 0);
    {
      PagePool pool(allocator, {});
      std::vector<PageRef> pages;
      int64_t refused = 0;
      for (int i = 0; i < 12; ++i) {
        const size_t before = pages.size();
        // A smaller slab is tried after a refusal, so a single one is not seen from here.
        if (pool.acquire(kPage, 3, pages).ok()) {
          ASSERT_EQ(pages.size(), before + 3);
        } else {
          ++refused;
          ASSERT_EQ(pages.size(), before);
        }
      }
      EXPECT_EQ(refused, 0);
      EXPECT_EQ(pool.counts().pages_held, static_cast<int64_t>(pages.size()));
    }
    EXPECT_EQ(host.blocks, 0);
  }
}

TEST(PagePool, SurvivesAnAllocatorThatStaysDry) {
  constexpr int64_t kPage = 600000;
  for (int64_t dry_from = 0; dry_from < 8; ++dry_from) {
    struct DryHost {
      int64_t left;
    } host{dry_from};
    Allocator allocator({[](void* user, size_t bytes, size_t alignment) -> void* {
                           auto* dry = static_cast<DryHost*>(user);
                           if (dry->left == 0) return nullptr;
                           --dry->left;
                           return std::aligned_alloc(
                               alignment, (bytes + alignment - 1) / alignment * alignment);
                         },
                         [](void*, void* memory, size_t) { std::free(memory); }, &host},
                        0);
    PagePool pool(allocator, {});
    std::vector<PageRef> pages;
    Status status;
    while (status.ok()) status = pool.acquire(kPage, 7, pages);
    EXPECT_EQ(status.code(), Code::oom_host);
    EXPECT_EQ(pages.size() % 7, 0u);
    const int64_t slab_pages = (int64_t{4} << 20) / kPage;
    EXPECT_EQ(static_cast<int64_t>(pages.size()), dry_from * slab_pages / 7 * 7);
    EXPECT_EQ(pool.counts().pages_held, static_cast<int64_t>(pages.size()));
    pages.clear();
    EXPECT_EQ(pool.acquire(kPage).ok(), dry_from > 0);
  }
}

TEST(PageRef, MovesAndLetsGoOnce) {
  Allocator allocator({}, 0);
  PagePool pool(allocator, {});
  PageRef first = pool.acquire(128).take();
  PageRef second = pool.acquire(128).take();
  unsigned char* const data = first.data();
  second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: the moved-from state is the point
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(pool.counts().pages_held, 1);
  PageRef& alias = second;
  second = std::move(alias);
  EXPECT_EQ(second.data(), data);
  second.reset();
  second.reset();
  EXPECT_FALSE(second);
  EXPECT_EQ(pool.counts().pages_held, 0);
}

TEST(PagePool, ThreadsShareIt) {
  constexpr int kThreads = 4;
  constexpr int64_t kPages = 24;
  Allocator allocator({}, 0);
  PagePool pool(allocator, {kPages * 70000 / 64 * 64, 0});
  std::atomic<int64_t> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<PageRef> pages;
      for (int i = 0; i < 3000; ++i) {
        if (random() % 2 == 0) {
          const size_t before = pages.size();
          if (pool.acquire(random() % 2 == 0 ? 69952 : 4096, 2, pages).ok()) {
            granted += 2;
            for (size_t p = before; p < pages.size(); ++p)
              std::memset(pages[p].data(), t + 1, 4096);
          }
        } else if (!pages.empty()) {
          ASSERT_EQ(pages.back().data()[4095], t + 1);
          pages.pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(granted.load(), 1000);
  EXPECT_EQ(pool.counts().pages_held, 0);
  EXPECT_EQ(pool.counts().bytes_held, 0);
}

}  // namespace
}  // namespace optima::kv
