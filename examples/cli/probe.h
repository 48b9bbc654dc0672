// The roofs of this machine, as `probe` and `bench` print them.
#pragma once

#include "cli_util.h"

namespace cli {

// Measures all roofs with up to `threads` threads; seconds of full load.
optima_probe_report probe(int threads, int64_t read_bytes);
Json roofs_json(const optima_probe_report& report);

}  // namespace cli
