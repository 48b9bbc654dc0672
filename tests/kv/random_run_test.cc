// 10^6 random operations (append, fork, seal, truncate, reclaim, abort, swap out, restore) against
// a naive account: each sequence is its tokens, and a page's content is computed from them anew.
// OPTIMA_TEST_STEPS sets another number (tests/long/sessions.sh runs all under sanitizers).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "kv/audit.h"
#include "kv/snapshot.h"

namespace optima::kv {
namespace {

constexpr SnapshotIdentity kIdentity{0x1234, 1, 0};
constexpr SnapshotLimits kLimits{100'000, 10};

// What the KV of a position depends on: all tokens up to it.
unsigned char content(std::span<const int32_t> prefix) {
  uint32_t hash = 2166136261u;
  for (const int32_t token : prefix) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619u;
  return static_cast<unsigned char>(hash >> 24);
}

class Family {
 public:
  explicit Family(uint32_t seed) : random_(seed) {}

  void run(int steps) {
    for (step_ = 0; step_ < steps; ++step_) {
      if (members_.empty() || (members_.size() < 10 && chance(20))) {
        members_.push_back({PageTable(pool_, groups_), {}});
        start(members_.back());
      }
      const size_t at = random_() % members_.size();
      act(members_[at], at);
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step_;
      if (step_ % 64 == 0) check_counts();
      if (step_ % 256 == 0) check_audit();
    }
    members_.clear();
    check_counts();
    check_audit();
    EXPECT_EQ(pool_.counts().pages_held, 0);
    EXPECT_EQ(pool_.counts().pages_sealed, pool_.counts().pages_cached);
    pool_.trim();
    EXPECT_EQ(pool_.counts().pages_sealed, 0);
    EXPECT_EQ(pool_.counts().bytes_cached, 0);
    const AuditReport report = check_audit();
    EXPECT_EQ(report.pages_free, report.pages_total);
    EXPECT_GT(adopted_, steps / 200);
    EXPECT_GT(refused_, 0);
    EXPECT_GT(restored_, steps / 200);
  }

 private:
  struct Member {
    PageTable table;
    std::vector<int32_t> tokens;
  };
  bool chance(uint32_t percent) { return random_() % 100 < percent; }

  // A prompt of few words, so that many begin alike.
  void start(Member& member) {
    std::vector<int32_t> prompt;
    const size_t words = 1 + random_() % 5;
    for (size_t w = 0; w < words; ++w) {
      const auto word = static_cast<int32_t>(random_() % 2);
      prompt.insert(prompt.end(), 10 + 6 * static_cast<size_t>(word), word);
    }
    const int64_t length = member.table.adopt(prompt, static_cast<int64_t>(prompt.size()));
    adopted_ += length > 0;
    ASSERT_EQ(length % kPageTokens, 0);
    member.tokens.assign(prompt.begin(), prompt.begin() + length);
    prompt.erase(prompt.begin(), prompt.begin() + length);
    append(member, prompt);
  }

  void append(Member& member, std::vector<int32_t> more) {
    const Status status = member.table.reserve(static_cast<int64_t>(more.size()));
    if (!status.ok()) {
      ASSERT_EQ(status.code(), Code::oom_host);
      ++refused_;
      return;
    }
    if (chance(10)) {
      member.table.abort();
      return;
    }
    for (const int32_t token : more) {
      member.tokens.push_back(token);
      const size_t position = member.tokens.size() - 1;
      for (size_t g = 0; g < groups_.size(); ++g)
        member.table.pages(g)[position / 16][position % 16] = content(member.tokens);
    }
    member.table.commit(static_cast<int64_t>(more.size()), member.tokens);
    check_content(member);
  }

  void act(Member& member, size_t at) {
    const uint32_t action = random_() % 18;
    if (action < 8) {
      append(member, std::vector<int32_t>(random_() % 12, static_cast<int32_t>(random_() % 2)));
    } else if (action < 11) {
      const auto wanted = static_cast<int64_t>(random_() % (member.tokens.size() + 1));
      const int64_t length = member.table.reusable(wanted);
      member.table.truncate(length);
      member.tokens.resize(static_cast<size_t>(length));
    } else if (action == 11 && members_.size() < 12) {
      members_.push_back({member.table.fork(), member.tokens});
    } else if (action == 12) {
      members_.erase(members_.begin() + static_cast<ptrdiff_t>(at));
    } else if (action == 13 && chance(2)) {
      pool_.trim();
    } else if (action == 14) {
      Member moved = std::move(member);
      member = std::move(moved);
    } else if (action == 15) {
      swap_out(member);
      members_.erase(members_.begin() + static_cast<ptrdiff_t>(at));
    } else if (action >= 16 && members_.size() < 12 && !swapped_.empty()) {
      restore();
    }
  }

  // The sequence leaves the pool for memory of its own; sometimes its writer fails midway.
  void swap_out(const Member& member) {
    std::string text;
    const int64_t bytes_max = chance(5) ? static_cast<int64_t>(random_() % 200) : INT64_MAX;
    const auto clear = [](size_t, int64_t from, unsigned char* page) {
      std::memset(page + from, 0, static_cast<size_t>(kPageTokens - from));
    };
    const Status status = write_snapshot(
        kIdentity, member.tokens, member.table, clear, [&](const void* from, int64_t bytes) {
          text.append(static_cast<const char*>(from), static_cast<size_t>(bytes));
          return static_cast<int64_t>(text.size()) <= bytes_max;
        });
    if (!status.ok()) {
      ASSERT_EQ(status.code(), Code::io);
      return;
    }
    if (swapped_.size() >= 8) swapped_.erase(swapped_.begin());
    swapped_.push_back(std::move(text));
  }

  // One that was swapped out comes back, as often as it is chosen; sometimes its reader fails.
  void restore() {
    const std::string& text = swapped_[random_() % swapped_.size()];
    size_t left = chance(10) ? random_() % text.size() : text.size();
    size_t at = 0;
    Member member{PageTable(pool_, groups_, pool_.new_root()), {}};
    auto tokens = read_snapshot(kIdentity, kLimits, member.table, [&](void* into, int64_t bytes) {
      if (static_cast<size_t>(bytes) > left) return false;
      std::memcpy(into, text.data() + at, static_cast<size_t>(bytes));
      at += static_cast<size_t>(bytes);
      left -= static_cast<size_t>(bytes);
      return true;
    });
    if (!tokens.ok()) {
      ASSERT_TRUE(tokens.status().code() == Code::io || tokens.status().code() == Code::oom_host);
      ASSERT_EQ(member.table.length(), 0);
      return;
    }
    ++restored_;
    member.tokens = tokens.take();
    check_content(member);
    members_.push_back(std::move(member));
  }

  void check_content(const Member& member) {
    ASSERT_EQ(member.table.length(), static_cast<int64_t>(member.tokens.size()));
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto pages = member.table.pages(g);
      const int64_t first = groups_[g].first_page_seen(member.table.length());
      for (size_t page = 0; page < pages.size(); ++page) {
        // What no later query can see is not held, what one can is.
        ASSERT_EQ(pages[page] != nullptr, static_cast<int64_t>(page) >= first);
        for (size_t p = 16 * page; pages[page] != nullptr && p < 16 * page + 16; ++p)
          if (p < member.tokens.size()) {
            ASSERT_EQ(pages[page][p % 16], content(std::span(member.tokens).first(p + 1)))
                << "group " << g << " position " << p;
          }
      }
    }
  }

  void check_counts() {
    std::map<const unsigned char*, size_t> held;  // page -> group
    int64_t references = 0, bytes = 0;
    for (const Member& member : members_)
      for (size_t g = 0; g < groups_.size(); ++g)
        for (const unsigned char* page : member.table.pages(g)) {
          if (page == nullptr) continue;
          ++references;
          held[page] = g;
        }
    for (const auto& [page, group] : held) bytes += groups_[group].page_bytes();
    const PoolCounts counts = pool_.counts();
    ASSERT_EQ(counts.references, references);
    ASSERT_EQ(counts.pages_held, static_cast<int64_t>(held.size()));
    ASSERT_EQ(counts.bytes_held, bytes);
    ASSERT_LE(counts.bytes_held + counts.bytes_cached, counts.bytes_budget);
    ASSERT_LE(counts.bytes_cached, kCached);
    ASSERT_EQ(counts.bytes_free, counts.bytes_budget - bytes);
  }

  AuditReport check_audit() {
    std::vector<TableView> tables;
    for (const Member& member : members_) tables.push_back(member.table.view());
    AuditReport report = audit(pool_.view(), tables);
    EXPECT_EQ(report.faults(), 0) << "step " << step_ << ": " << report.text();
    return report;
  }

  static constexpr int64_t kCached = 20 * 64;
  std::mt19937 random_;
  Allocator allocator_{{}, 0};
  std::vector<KvGroup> groups_ = {{{{0, 0}}, 64, 0}, {{{1, 0}}, 64, 24}, {{{2, 0}}, 128, 40}};
  PagePool pool_{allocator_, {90 * 64, kCached}};
  std::vector<Member> members_;
  std::vector<std::string> swapped_;
  int step_ = 0;
  int64_t adopted_ = 0, refused_ = 0, restored_ = 0;
};

int steps() {
  if (const char* wanted = std::getenv("OPTIMA_TEST_STEPS")) return std::atoi(wanted);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 100'000;
#else
  return 1'000'000;
#endif
}

TEST(RandomRun, AgreesWithANaiveAccount) {
  Family(11).run(steps());
}

}  // namespace
}  // namespace optima::kv
