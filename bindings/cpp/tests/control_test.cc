// Who stops what, what comes out of callbacks, and what errors say.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "fixture.h"

namespace optima_cpp_test {
namespace {

using ControlTest = BindingTest;

bool is_token(const optima::Event& event) {
  return event.type == optima::EventType::token;
}

TEST_F(ControlTest, AnotherThreadCancelsWithinAToken) {
  const auto cancel = optima::Cancel::create();
  auto options = golden_.options();
  options.cancel = &cancel;
  int tokens = 0;
  const auto result = session_.generate(golden_.prompt, options, [&](const optima::Event& event) {
    tokens += is_token(event);
    if (is_token(event)) std::thread([&] { cancel.trigger(); }).join();
  });
  EXPECT_EQ(result.finish(), optima::Finish::cancelled);
  EXPECT_EQ(tokens, 1);
  EXPECT_TRUE(cancel.triggered());
  EXPECT_THROW(result.require_whole(), optima::CancelledError);
  expect_usable();
}

TEST_F(ControlTest, ALatchStopsWhatComesLater) {
  const auto cancel = optima::Cancel::create();
  auto options = golden_.options();
  options.cancel = &cancel;
  cancel.trigger();
  int tokens = 0;
  const auto result = session_.generate(
      golden_.prompt, options, [&](const optima::Event& event) { tokens += is_token(event); });
  EXPECT_EQ(result.finish(), optima::Finish::cancelled);
  EXPECT_EQ(tokens, 0);
  auto request = session_.submit(golden_.prompt, options);
  request.wait();
  EXPECT_EQ(request.result().finish(), optima::Finish::cancelled);
  EXPECT_TRUE(request.result().token_ids().empty());
  expect_usable();
}

TEST_F(ControlTest, VerdictsStopAndRollBack) {
  const auto stopped = session_.generate(golden_.prompt, golden_.options(), [](const auto& event) {
    return is_token(event) ? optima::Verdict::stop : optima::Verdict::continue_;
  });
  EXPECT_EQ(stopped.finish(), optima::Finish::host);
  EXPECT_EQ(stopped.token_ids().size(), 1u);
  const auto held = session_.tokens();
  auto append = golden_.options();
  append.flags |= optima::request_flags::append;
  session_.generate("", append, [](const auto&) { return optima::Verdict::cancel; });
  EXPECT_EQ(session_.tokens(), held);
}

TEST_F(ControlTest, ExceptionsOfCallbacksReachTheCaller) {
  const auto throws = [](const optima::Event& event) {
    if (is_token(event)) throw std::out_of_range("mine");
  };
  try {
    session_.generate(golden_.prompt, golden_.options(), throws);
    FAIL() << "nothing was thrown";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
  EXPECT_TRUE(session_.tokens().empty());
  expect_usable();

  auto options = golden_.options();
  options.on_logits = [](auto, auto) { throw std::out_of_range("logits"); };
  EXPECT_THROW(session_.generate(golden_.prompt, options), std::out_of_range);
  auto request = session_.submit(golden_.prompt, options);
  EXPECT_THROW(
      while (request.next() != nullptr) {} request.result(), std::out_of_range);
  EXPECT_THROW(for (const auto& event
                    : session_.submit(golden_.prompt, options)) static_cast<void>(event),
               std::out_of_range);
  expect_usable();

  optima::ModelOptions loading;
  loading.progress = [](float) -> bool { throw std::out_of_range("progress"); };
  EXPECT_THROW(optima::Model::open(engine_, tiny_path("llama-f32.gguf"), loading),
               std::out_of_range);
  loading.progress = [](float) { return false; };
  EXPECT_THROW(optima::Model::open(engine_, tiny_path("llama-f32.gguf"), loading),
               optima::CancelledError);
}

TEST_F(ControlTest, CallsFromCallbacksAreBusy) {
  int busy = 0;
  const auto result = session_.generate(golden_.prompt, golden_.options(), [&](const auto&) {
    try {
      session_.generate("a");
    } catch (const optima::BusyError& error) {
      ++busy;
      EXPECT_EQ(error.status(), optima::Status::busy);
    }
  });
  EXPECT_GT(busy, static_cast<int>(golden_.ids.size()));
  EXPECT_EQ(to_vector(result.token_ids()), golden_.ids);
}

TEST_F(ControlTest, ErrorsHaveTypesAndNumbers) {
  try {
    optima::Model::open(engine_, "/nowhere/model.gguf");
    FAIL() << "nothing was thrown";
  } catch (const optima::IoError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/model.gguf"), std::string::npos);
  }
  optima::SessionOptions small;
  small.context_tokens = 16;
  auto session = optima::Session::create(model_, small);
  EXPECT_EQ(session.context_tokens(), 16);
  try {
    session.generate(golden_.prompt);
    FAIL() << "nothing was thrown";
  } catch (const optima::ContextFullError& error) {
    EXPECT_EQ(error.wanted(), static_cast<std::int64_t>(golden_.prompt_ids.size()));
    EXPECT_EQ(error.limit(), 16);
  }
  EXPECT_THROW(session.truncate(-1), optima::ArgumentError);
  auto options = golden_.options();
  options.grammar = "((";
  options.grammar_kind = optima::Grammar::regex;
  EXPECT_THROW(session.generate("a", options), optima::Error);
}

TEST_F(ControlTest, ADeadlineIsAnErrorForWhoWantsAll) {
  auto options = golden_.options();
  options.deadline_ms = 1;
  const auto result = session_.generate(golden_.prompt, options, [](const auto& event) {
    if (is_token(event)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  ASSERT_EQ(result.finish(), optima::Finish::deadline);
  try {
    result.require_whole();
    FAIL() << "nothing was thrown";
  } catch (const optima::DeadlineError& error) {
    EXPECT_EQ(error.limit(), 1);
    EXPECT_EQ(error.available(), static_cast<std::int64_t>(result.token_ids().size()));
  }
  expect_usable();
}

}  // namespace
}  // namespace optima_cpp_test
