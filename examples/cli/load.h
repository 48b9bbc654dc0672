// Requests of many sessions on one engine, driven by one poll loop, and what the host sees of them.
#pragma once

#include <string>
#include <vector>

#include "cli_util.h"

namespace cli {

// One request of a load. Requests of one session follow each other: each continues with what the
// session holds by then.
struct LoadRequest {
  double arrival_s = 0;  // after the start
  int64_t session = 0;
  std::vector<int32_t> prompt;  // what is new
  int64_t output_tokens = 0;
};

struct LoadReport {
  int64_t requests = 0, sessions = 0;
  double seconds = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  std::vector<double> ttft_ms, inter_token_ms;  // of all requests
  // While every session was decoding; 0 when there was no such time.
  double decode_tokens_per_s = 0;
};

LoadReport run_load(const LoadedModel& loaded, const SessionArgs& session,
                    std::vector<LoadRequest> requests);

// `sessions` requests at once: a prefix of `shared` ids that all have, `prompt` ids of their own.
struct LoadShape {
  int64_t sessions = 1, shared = 0, prompt = 0, tokens = 0;
};
std::vector<LoadRequest> simultaneous(const LoadShape& shape, int64_t vocabulary);

// A trace, one request a line after a line of column names, in one of three forms:
//   arrival_s,session,prompt_tokens,output_tokens          our own
//   TIMESTAMP,ContextTokens,GeneratedTokens                Azure's LLM inference traces
//   Timestamp,Model,Request tokens,Response tokens,...     BurstGPT
// The two last know no sessions: every request has its own. Times count from the first line.
std::vector<LoadRequest> read_trace(const std::string& path, int64_t vocabulary);

Json load_json(const LoadReport& report);

}  // namespace cli
