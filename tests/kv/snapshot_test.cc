// Snapshots: what is written comes back, what does not belong here or is damaged is refused with
// the numbers, and a refused one leaves nothing behind.
#include "kv/snapshot.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace optima::kv {
namespace {

constexpr SnapshotIdentity kIdentity{0x1234, 1, 0};
constexpr SnapshotLimits kLimits{1000, 100};

SnapshotWrite into(std::string& out) {
  return [&out](const void* from, int64_t bytes) {
    EXPECT_GT(bytes, 0);
    out.append(static_cast<const char*>(from), static_cast<size_t>(bytes));
    return true;
  };
}

// Fails at the end of the text.
SnapshotRead from(std::string_view& text) {
  return [&text](void* into, int64_t bytes) {
    EXPECT_GT(bytes, 0);
    const auto wanted = static_cast<size_t>(bytes);
    if (wanted > text.size()) return false;
    std::memcpy(into, text.data(), wanted);
    text.remove_prefix(wanted);
    return true;
  };
}

class Snapshots : public testing::Test {
 protected:
  Snapshots() {
    EXPECT_TRUE(table_.reserve(70).ok());
    table_.commit(70, std::vector<int32_t>(tokens_.begin(), tokens_.begin() + 70));
    for (size_t g = 0; g < groups_.size(); ++g)
      for (size_t i = 0; i < table_.pages_seen(g).size(); ++i)
        std::memset(table_.pages_seen(g)[i], static_cast<int>(10 * g + i + 1),
                    static_cast<size_t>(groups_[g].page_bytes()));
    EXPECT_TRUE(write_snapshot(kIdentity, tokens_, table_, clear_, into(bytes_)).ok());
  }

  Status read(std::string_view text, const SnapshotIdentity& identity = kIdentity,
              const SnapshotLimits& limits = kLimits) {
    PageTable table(pool_, groups_, 99);
    const int64_t before = pool_.counts().bytes_held;
    const auto tokens = read_snapshot(identity, limits, table, from(text));
    if (tokens.ok()) return {};
    EXPECT_EQ(table.length(), 0);
    EXPECT_EQ(pool_.counts().bytes_held, before);
    return tokens.status();
  }

  Allocator allocator_{{}, 0};
  std::vector<KvGroup> groups_ = {{{{0, 0}}, 64, 0}, {{{1, 0}}, 192, 20}};
  PagePool pool_{allocator_, {0, 0}};
  PageTable table_{pool_, groups_};
  std::vector<int32_t> tokens_ = std::vector<int32_t>(73, 7);
  // A page is [16] of equal shares here.
  ClearPositions clear_ = [this](size_t group, int64_t position, unsigned char* page) {
    const int64_t share = groups_[group].page_bytes() / kPageTokens;
    std::memset(page + position * share, 0, static_cast<size_t>((kPageTokens - position) * share));
  };
  std::string bytes_;
};

TEST_F(Snapshots, ComeBack) {
  EXPECT_EQ(static_cast<int64_t>(bytes_.size()), snapshot_bytes(table_, 73));
  EXPECT_EQ(table_.pages_seen(1).size(), 2u) << "a query at 70 sees from 51 on";
  PageTable table(pool_, groups_, 99);
  std::string_view text = bytes_;
  const auto tokens = read_snapshot(kIdentity, kLimits, table, from(text));
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ(*tokens, tokens_);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(table.length(), 70);
  for (size_t g = 0; g < groups_.size(); ++g) {
    ASSERT_EQ(table.pages(g).size(), 5u);
    ASSERT_EQ(table.pages_seen(g).size(), table_.pages_seen(g).size());
    const auto bytes = static_cast<size_t>(groups_[g].page_bytes());
    const size_t last = table.pages_seen(g).size() - 1;
    for (size_t i = 0; i <= last; ++i)
      EXPECT_EQ(std::memcmp(table.pages_seen(g)[i], table_.pages_seen(g)[i],
                            i == last ? bytes / 16 * 6 : bytes),
                0);
    for (size_t i = bytes / 16 * 6; i < bytes; ++i)
      ASSERT_EQ(table.pages_seen(g)[last][i], 0) << "positions from 70 on are nobody's";
  }
  ASSERT_TRUE(table.reserve(30).ok());
  table.commit(30, std::vector<int32_t>(100, 7));
  std::string again;
  EXPECT_TRUE(
      write_snapshot(kIdentity, std::vector<int32_t>(100, 7), table, clear_, into(again)).ok());
}

TEST_F(Snapshots, AnEmptySequenceIsOne) {
  PageTable empty(pool_, groups_);
  std::string text;
  ASSERT_TRUE(write_snapshot(kIdentity, {}, empty, clear_, into(text)).ok());
  EXPECT_EQ(static_cast<int64_t>(text.size()), snapshot_bytes(empty, 0));
  EXPECT_TRUE(read(text).ok());
}

TEST_F(Snapshots, WhatBelongsElsewhereIsRefusedWithBothValues) {
  const auto expect = [&](const SnapshotIdentity& identity, const char* a, const char* b) {
    const Status status = read(bytes_, identity);
    EXPECT_EQ(status.code(), Code::version);
    EXPECT_NE(status.message().find(a), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(b), std::string::npos) << status.message();
  };
  expect({77, 1, 0}, "4660", "77");
  expect({0x1234, 0, 0}, "KV type", "0");
  expect({0x1234, 1, 4096}, "context", "4096");
  EXPECT_EQ(read(bytes_, kIdentity, {72, 100}).code(), Code::context_full);
  EXPECT_EQ(read(bytes_, kIdentity, {72, 100}).numbers().wanted, 73);
  EXPECT_EQ(read(bytes_, kIdentity, {1000, 7}).code(), Code::format);
  std::string newer = bytes_;
  newer[8] = 2;
  EXPECT_EQ(read(newer).code(), Code::version);
  EXPECT_EQ(read("something else entirely").code(), Code::format);
  PagePool small(allocator_, {4 * 64, 0});
  PageTable table(small, groups_);
  std::string_view text = bytes_;
  EXPECT_EQ(read_snapshot(kIdentity, kLimits, table, from(text)).status().code(), Code::oom_host);
  EXPECT_EQ(small.counts().pages_held, 0);
}

TEST_F(Snapshots, EveryTruncationAndFailureIsAStatus) {
  for (size_t length = 0; length < bytes_.size(); ++length)
    ASSERT_FALSE(read(std::string_view(bytes_).substr(0, length)).ok()) << length;
  for (int64_t limit = 0; limit < static_cast<int64_t>(bytes_.size()); ++limit) {
    int64_t written = 0;
    const Status status =
        write_snapshot(kIdentity, tokens_, table_, clear_, [&](const void*, int64_t bytes) {
          written += bytes;
          return written <= limit;
        });
    ASSERT_EQ(status.code(), Code::io) << limit;
  }
}

TEST_F(Snapshots, TenThousandMutationsAreFound) {
  std::mt19937 random(5);
  for (int i = 0; i < 10'000; ++i) {
    std::string text = bytes_;
    const uint32_t kind = random() % 3;
    const size_t at = random() % text.size();
    if (kind == 0) {
      text[at] = static_cast<char>(text[at] ^ (1 << (random() % 8)));
    } else if (kind == 1) {
      text.erase(at, 1 + random() % 40);
    } else {
      text.insert(at, 1 + random() % 40, static_cast<char>(random()));
    }
    // The four reserved bytes after the version, and what follows the end, are not looked at.
    if (text.substr(0, 12) == bytes_.substr(0, 12) && text.substr(16) == bytes_.substr(16))
      continue;
    if (text.compare(0, bytes_.size(), bytes_) == 0) continue;
    ASSERT_FALSE(read(text).ok()) << "mutation " << i << " of kind " << kind << " at " << at;
  }
}

}  // namespace
}  // namespace optima::kv
