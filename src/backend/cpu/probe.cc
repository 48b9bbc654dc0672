// Measures the machine. A roof is the best of several ways: plain or prefetched loads, small or
// huge pages, 1..n threads; the best pass counts, since anything slower is somebody else's noise.
// Memory is mapped here and not taken from an engine's allocator: the probe runs without an engine.

#include "backend/cpu/probe.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "backend/cpu/host_isa.h"
#include "base/anonymous_mapping.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "kernels/probe/probe.h"

namespace optima::backend {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kStepBytes = 512;                   // of the read kernels
constexpr int64_t kPassBytesMin = int64_t{64} << 20;  // a small buffer is read several times
constexpr double kSecondsMin = 0.12;                  // of one way of measuring
constexpr int kPassesMin = 3;
constexpr int64_t kAheadBytes = 4096;  // prefetches may run past the end

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// 1..n up to 8, then doubling, then n: on a wide machine the curve is smooth.
std::vector<int> thread_counts(int threads) {
  std::vector<int> counts;
  for (int n = 1; n <= threads; n = n < 8 ? n + 1 : n * 2) counts.push_back(n);
  if (counts.back() != threads) counts.push_back(threads);
  return counts;
}

struct Slice {
  int64_t begin;
  int64_t end;
};
Slice slice_of(int64_t bytes, int thread, int threads) {
  const int64_t steps = bytes / kStepBytes;
  return {steps * thread / threads * kStepBytes, steps * (thread + 1) / threads * kStepBytes};
}

// Written by the threads that will read it.
void touch(ThreadPool& pool, unsigned char* data, int64_t bytes) {
  auto fill = [&](int thread, int threads) {
    const Slice slice = slice_of(bytes, thread, threads);
    for (int64_t at = slice.begin; at < slice.end; at += kStepBytes) {
      data[at] = static_cast<unsigned char>(at);
    }
  };
  pool.run(fill);
}

// Best rate over passes of one way of reading.
double read_gb_per_s(ThreadPool& pool, kernels::ReadFn read, const unsigned char* data,
                     int64_t bytes) {
  const int64_t repeats = std::max<int64_t>(1, kPassBytesMin / bytes);
  std::vector<uint64_t> sums(static_cast<size_t>(pool.size()) * 8);  // a cache line each
  auto pass = [&](int thread, int threads) {
    const Slice slice = slice_of(bytes, thread, threads);
    for (int64_t i = 0; i < repeats; ++i) {
      sums[static_cast<size_t>(thread) * 8] +=
          read(data + slice.begin, static_cast<size_t>(slice.end - slice.begin));
    }
  };
  double best = 0;
  const Clock::time_point start = Clock::now();
  for (int n = 0; n < kPassesMin || seconds_since(start) < kSecondsMin; ++n) {
    const Clock::time_point pass_start = Clock::now();
    pool.run(pass);
    const double gb = static_cast<double>(bytes) * static_cast<double>(repeats) * 1e-9;
    best = std::max(best, gb / seconds_since(pass_start));
  }
  return best;
}

void keep_best(ReadRoof& roof, double gb_per_s, int threads, std::string method) {
  if (gb_per_s <= roof.gb_per_s) return;
  roof = {.gb_per_s = gb_per_s, .threads = threads, .method = std::move(method)};
}

}  // namespace

std::string isa_names() {
  const kernels::IsaMask mask = cpu::host_isa();
  std::string names;
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((mask & bit) == 0) continue;
    names.append(names.empty() ? "" : "+").append(kernels::isa_name(bit));
  }
  return names.empty() ? "baseline" : names;
}

Result<ReadRoof> measure_read_roof(int64_t bytes, int threads) {
  const auto& kernel = kernels::best(kernels::read_variants(), cpu::host_isa()).fn;
  const int64_t rounded = std::max(bytes / kStepBytes, int64_t{threads}) * kStepBytes;
  ReadRoof roof;
  for (const PageSize pages : {PageSize::small, PageSize::huge}) {
    OPTIMA_ASSIGN(const AnonymousMapping mapping,
                  AnonymousMapping::create(rounded + kAheadBytes, pages));
    const char* where = pages == PageSize::huge ? ", huge pages" : "";
    for (const int n : thread_counts(threads)) {
      OPTIMA_ASSIGN(const auto pool, ThreadPool::create({.threads = n}));
      touch(*pool, mapping.data(), rounded);
      keep_best(roof, read_gb_per_s(*pool, kernel.plain, mapping.data(), rounded), n,
                text("plain", where));
      keep_best(roof, read_gb_per_s(*pool, kernel.prefetched, mapping.data(), rounded), n,
                text("prefetched", where));
    }
  }
  return roof;
}

Result<double> measure_int8_roof(int threads) {
  constexpr int64_t kRounds = 20'000;
  const auto& kernel = kernels::best(kernels::int8_roof_variants(), cpu::host_isa()).fn;
  double best = 0;
  for (const int n : thread_counts(threads)) {
    OPTIMA_ASSIGN(const auto pool, ThreadPool::create({.threads = n}));
    std::vector<uint32_t> sums(static_cast<size_t>(n) * 16);
    auto pass = [&](int thread, int) {
      sums[static_cast<size_t>(thread) * 16] += kernel.run(kRounds);
    };
    const double macs = static_cast<double>(kernel.macs_per_round()) * kRounds * n;
    const Clock::time_point first = Clock::now();
    for (int i = 0; i < kPassesMin || seconds_since(first) < kSecondsMin; ++i) {
      const Clock::time_point start = Clock::now();
      pool->run(pass);
      best = std::max(best, macs / seconds_since(start) * 1e-12);
    }
  }
  return best;
}

}  // namespace optima::backend
