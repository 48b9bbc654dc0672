// Submitted requests: ranges of events, several at a time, lifetimes, and nothing that stays
// behind.
#include <dirent.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <thread>

#include "fixture.h"

namespace optima_cpp_test {
namespace {

using RequestTest = BindingTest;

std::vector<std::int32_t> read_ids(optima::Request request) {
  std::vector<std::int32_t> ids;
  for (const optima::Event& event : request) {
    if (event.type == optima::EventType::token) ids.push_back(event.token);
  }
  EXPECT_TRUE(request.done());
  EXPECT_EQ(to_vector(request.result().token_ids()), ids);
  return ids;
}

TEST_F(RequestTest, IsARangeOfEvents) {
  EXPECT_EQ(read_ids(session_.submit(golden_.prompt, golden_.options())), golden_.ids);
  auto request = session_.submit(golden_.prompt, golden_.options());
  const auto last = [&] {
    optima::EventType type{};
    for (const auto& event : request) type = event.type;
    return type;
  }();
  EXPECT_EQ(last, optima::EventType::done);
  EXPECT_EQ(request.next(), nullptr);
}

TEST_F(RequestTest, HostsDriveByReading) {
  const auto engine = make_engine(optima::Drive::host);
  const auto model = optima::Model::open(engine, tiny_path("gemma3-f32.gguf"));
  auto session = optima::Session::create(model);
  auto other = optima::Session::create(model);
  auto waiting = other.submit(golden_.prompt, golden_.options());
  EXPECT_EQ(read_ids(session.submit(golden_.prompt, golden_.options())), golden_.ids);
  EXPECT_EQ(read_ids(std::move(waiting)), golden_.ids);
}

TEST_F(RequestTest, PollingServesManyRequests) {
  constexpr std::size_t kRequests = 8;
  std::vector<optima::Session> sessions;
  std::vector<optima::Request> requests;
  std::array<std::vector<std::int32_t>, kRequests> ids;
  for (std::size_t i = 0; i < kRequests; ++i) {
    sessions.push_back(optima::Session::create(model_));
    requests.push_back(sessions.back().submit(golden_.prompt, golden_.options()));
  }
  for (std::size_t open = kRequests; open != 0;) {
    engine_.poll(-1);
    for (std::size_t i = 0; i < kRequests; ++i) {
      while (const optima::Event* event = requests[i].try_next()) {
        if (event->type == optima::EventType::token) ids[i].push_back(event->token);
        open -= event->type == optima::EventType::done;
      }
    }
  }
  for (const auto& of_one : ids) EXPECT_EQ(of_one, golden_.ids);
}

TEST_F(RequestTest, ThreadsReadTheirOwn) {
  constexpr std::size_t kThreads = 4;
  std::array<std::vector<std::int32_t>, kThreads> ids;
  std::vector<std::thread> threads;
  for (auto& of_one : ids) {
    threads.emplace_back([this, &of_one] {
      auto session = optima::Session::create(model_);
      of_one = read_ids(session.submit(golden_.prompt, golden_.options()));
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& of_one : ids) EXPECT_EQ(of_one, golden_.ids);
}

TEST_F(RequestTest, LeavingTheRangeCancels) {
  for (const auto& event : session_.submit(golden_.prompt, golden_.options())) {
    if (event.type == optima::EventType::token) break;
  }
  expect_usable();
  auto request = session_.submit(golden_.prompt, golden_.options());
  std::thread([&] { request.cancel(); }).join();
  request.wait();
  EXPECT_TRUE(request.done());
  EXPECT_THROW(optima::Session::create(model_).submit(golden_.prompt,
                                                      [] {
                                                        optima::RequestOptions wrong;
                                                        wrong.max_tokens = -1;
                                                        return wrong;
                                                      }()),
               optima::ArgumentError);
  request = session_.submit(golden_.prompt, golden_.options());
  EXPECT_EQ(read_ids(std::move(request)), golden_.ids);
}

TEST_F(RequestTest, HandlesMayGoInAnyOrder) {
  auto request = [&] {
    const auto engine = make_engine();
    const auto model = optima::Model::open(engine, tiny_path("gemma3-f32.gguf"));
    return optima::Session::create(model).submit(golden_.prompt, golden_.options());
  }();
  request.wait();
  EXPECT_TRUE(request.done());
  const auto text = [&] {
    const auto engine = make_engine();
    auto session =
        optima::Session::create(optima::Model::open(engine, tiny_path("gemma3-f32.gguf")));
    return session.generate(golden_.prompt, golden_.options());
  }();
  EXPECT_EQ(text.text(), golden_.text);
}

TEST(EnginesTest, TwoAtOnce) {
  std::array<std::vector<std::int32_t>, 2> ids;
  const std::array<std::string, 2> names = {"llama-f32", "gemma3-f32"};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < names.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto engine = make_engine();
      const auto model = optima::Model::open(engine, tiny_path(names[i] + ".gguf"));
      const Golden golden(names[i]);
      ids[i] = to_vector(
          optima::Session::create(model).generate(golden.prompt, golden.options()).token_ids());
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(ids[i], Golden(names[i]).ids);
}

long entries(const char* folder) {
  DIR* dir = opendir(folder);
  long count = 0;
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

long resident_pages() {
  malloc_trim(0);
  long size = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident;
}

TEST(LifetimeTest, AThousandRoundsLeaveNothing) {
  constexpr int kWarmUp = 50;
  constexpr int kRounds = 1000;
  constexpr long kPagesMore = 1024;  // what is freed and kept in the heaps of ended threads
  const Golden golden("llama-f32");
  long fds = 0;
  long tasks = 0;
  long pages = 0;
  for (int i = 0; i < kWarmUp + kRounds; ++i) {
    if (i == kWarmUp) {
      fds = entries("/proc/self/fd");
      tasks = entries("/proc/self/task");
      pages = resident_pages();
    }
    const auto engine = make_engine();
    const auto model = optima::Model::open(engine, tiny_path("llama-f32.gguf"));
    auto session = optima::Session::create(model);
    auto options = golden.options();
    options.max_tokens = 2;
    if (i % 2 == 0) {
      ASSERT_EQ(session.generate(golden.prompt, options).token_ids()[0], golden.ids[0]);
    } else {
      for (const auto& event : session.submit(golden.prompt, options)) {
        if (event.type == optima::EventType::token) break;
      }
    }
  }
  EXPECT_EQ(entries("/proc/self/fd"), fds);
  EXPECT_EQ(entries("/proc/self/task"), tasks);
  EXPECT_LT(resident_pages() - pages, kPagesMore);
}

}  // namespace
}  // namespace optima_cpp_test
