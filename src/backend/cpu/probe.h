// What the machine can do, measured: read bandwidth from a buffer and from DRAM, and the rate of
// int8 multiply-adds. The figures are roofs, the best over several ways of loading and over
// 1..threads threads; each takes about a second or two of full load.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace optima::backend {

struct ReadRoof {
  double gb_per_s = 0;  // 10^9 bytes
  int threads = 0;      // that gave it
  std::string method;   // "plain", "prefetched", "huge pages", ...
};

// Names of the instruction sets that this process may use, "avx2+avx512"; "baseline" for none.
std::string isa_names();

// Reads a buffer of `bytes` (rounded up to whole pages per thread) over and over. threads >= 1.
// Fails with oom_host when the buffer or the threads cannot be had.
Result<ReadRoof> measure_read_roof(int64_t bytes, int threads);

// 10^12 int8 multiply-adds a second from registers, all threads together.
Result<double> measure_int8_roof(int threads);

}  // namespace optima::backend
