// optima probe: what this machine can do, by the library's own measurement.
#include <cstdio>

#include "cli_util.h"
#include "commands.h"
#include "probe.h"

namespace cli {
namespace {

struct Args {
  int32_t threads = 0;
  int64_t read_bytes = 0;
  bool json = false;
};

void probe_command(const Args& args) {
  const optima_probe_report report = probe(args.threads, args.read_bytes);
  if (args.json) {
    Json out = {{"version", optima_version()}, {"threads", report.threads}, {"isa", report.isa}};
    out.update(roofs_json(report));
    write_json(out);
    return;
  }
  char text[512];
  std::snprintf(text, sizeof text,
                "threads            %d\ninstruction sets   %s\n"
                "read roof          %.1f GB/s (%s, %d threads)\n"
                "DRAM read          %.1f GB/s (%d threads)\nint8 roof          %.3f T MAC/s\n",
                report.threads, report.isa, report.read_roof_gb_per_s, report.read_method,
                report.read_threads, report.dram_read_gb_per_s, report.dram_threads,
                report.int8_roof_tmac_per_s);
  write_out(text);
}

}  // namespace

optima_probe_report probe(int threads, int64_t read_bytes) {
  auto options = sized<optima_probe_options>();
  options.threads = threads;
  options.read_bytes = read_bytes;
  options.flags = OPTIMA_PROBE_READ | OPTIMA_PROBE_DRAM | OPTIMA_PROBE_INT8;
  auto report = sized<optima_probe_report>();
  optima_error* error = nullptr;
  check(optima_probe(&options, &report, &error), error);
  return report;
}

Json roofs_json(const optima_probe_report& report) {
  return {{"read_roof_gb_per_s", report.read_roof_gb_per_s},
          {"read_method", report.read_method},
          {"read_threads", report.read_threads},
          {"dram_read_gb_per_s", report.dram_read_gb_per_s},
          {"dram_threads", report.dram_threads},
          {"int8_roof_tmac_per_s", report.int8_roof_tmac_per_s}};
}

void add_probe(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command(
      "probe", "Measures this machine: read bandwidth and int8 rate (seconds of full load)");
  add_threads_option(command, args->threads);
  command.number("--read-bytes", args->read_bytes, {0, 1e11},
                 "buffer of the read roof (0 = 64 MiB)");
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { probe_command(*args); });
}

}  // namespace cli
