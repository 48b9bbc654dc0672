// Machines that the tests of CUDA kernels run on: every order of threads, and two workers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/ce.h"

#if defined(__SANITIZE_ADDRESS__)
#define OPTIMA_ASAN_BUILD 1
#elif defined(__SANITIZE_THREAD__)
#define OPTIMA_TSAN_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OPTIMA_ASAN_BUILD 1
#elif __has_feature(thread_sanitizer)
#define OPTIMA_TSAN_BUILD 1
#endif
#endif

namespace optima::kernels::cuda {

struct NamedMachine {
  std::string name;
  std::unique_ptr<cuda_host::Machine> machine;
};

// Kept for the whole program: making a thousand stacks takes longer than most kernels.
inline const std::vector<NamedMachine>& machines() {
  using cuda_host::Machine;
  using cuda_host::Schedule;
  static const std::vector<NamedMachine> all = [] {
    std::vector<NamedMachine> made;
#ifndef OPTIMA_TSAN_BUILD  // which sees races in any order, at a hundred times the cost
    made.push_back({"forward", std::make_unique<Machine>()});
    made.push_back({"seeded", std::make_unique<Machine>(cuda_host::MachineOptions{
                                  .schedule = Schedule::seeded, .seed = 7})});
#endif
    made.push_back({"reverse, two workers", std::make_unique<Machine>(cuda_host::MachineOptions{
                                                .schedule = Schedule::reverse, .workers = 2})});
    return made;
  }();
  return all;
}

// Runs `launches` on every machine; each must be done without a complaint.
inline void on_all_machines(const std::function<ce::Status(ce::Stream)>& launches,
                            const std::function<void()>& check) {
  for (const NamedMachine& named : machines()) {
    SCOPED_TRACE(named.name);
    const ce::Status status = launches(named.machine.get());
    ASSERT_TRUE(status.ok()) << status.text;
    check();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// The text of a launch on one machine.
inline std::string text_of(const std::function<ce::Status(ce::Stream)>& launches,
                           const cuda_host::MachineOptions& options = {}) {
  cuda_host::Machine machine(options);
  return launches(&machine).text;
}

}  // namespace optima::kernels::cuda
