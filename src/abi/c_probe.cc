// optima_probe: the machine's instruction sets and, on request, its measured roofs.

#include <cstring>

#include "abi/guard.h"
#include "abi/structs.h"
#include "backend/cpu/probe.h"
#include "base/thread_pool.h"

namespace optima::abi {
namespace {

constexpr int64_t kReadBytesDefault = int64_t{64} << 20;
constexpr int64_t kDramBytes = int64_t{1} << 30;
constexpr int32_t kThreadsMax = 4096;

template <size_t kCapacity>
void copy_text(char (&out)[kCapacity], const std::string& value) {
  const size_t bytes = std::min(value.size(), kCapacity - 1);
  std::memcpy(out, value.data(), bytes);
  out[bytes] = '\0';
}

Status measure(const optima_probe_options& options, int threads, optima_probe_report& report) {
  if ((options.flags & OPTIMA_PROBE_READ) != 0) {
    const int64_t bytes = options.read_bytes == 0 ? kReadBytesDefault : options.read_bytes;
    OPTIMA_ASSIGN(const backend::ReadRoof read, backend::measure_read_roof(bytes, threads));
    report.read_roof_gb_per_s = read.gb_per_s;
    report.read_threads = read.threads;
    copy_text(report.read_method, read.method);
  }
  if ((options.flags & OPTIMA_PROBE_DRAM) != 0) {
    OPTIMA_ASSIGN(const backend::ReadRoof dram, backend::measure_read_roof(kDramBytes, threads));
    report.dram_read_gb_per_s = dram.gb_per_s;
    report.dram_threads = dram.threads;
  }
  if ((options.flags & OPTIMA_PROBE_INT8) != 0) {
    OPTIMA_ASSIGN(report.int8_roof_tmac_per_s, backend::measure_int8_roof(threads));
  }
  return {};
}

Status probe(const optima_probe_options* in, optima_probe_report* out) {
  OPTIMA_ASSIGN(const optima_probe_options options, read_struct("probe options", in));
  OPTIMA_TRY(check_out("out", out));
  OPTIMA_TRY(check_flags("flags", options.flags,
                         OPTIMA_PROBE_READ | OPTIMA_PROBE_DRAM | OPTIMA_PROBE_INT8));
  if (options.threads < 0 || options.threads > kThreadsMax || options.read_bytes < 0) {
    return Status(Code::invalid_argument,
                  text("threads is ", options.threads, ", must be 0..", kThreadsMax,
                       "; read_bytes is ", options.read_bytes, ", must not be negative"));
  }
  optima_probe_report report;
  std::memset(&report, 0, sizeof report);
  report.threads = usable_threads();
  copy_text(report.isa, backend::isa_names());
  OPTIMA_TRY(measure(options, options.threads == 0 ? report.threads : options.threads, report));
  write_struct(out, report);
  return {};
}

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;

optima_status optima_probe(const optima_probe_options* options, optima_probe_report* out,
                           optima_error** err) noexcept {
  return guard(err, [&]() -> optima::Status { return probe(options, out); });
}
