// Requests of many sessions on one engine, driven by one poll loop, and what the host sees of them.
#pragma once

#include <string>
#include <vector>

#include "cli_util.h"

namespace cli {

// One request of a load. Requests of one session follow each other: each continues with what the
// session holds by then.
struct LoadRequest {
  double arrival_s = 0;  // after the start of its round
  int64_t session = 0;
  std::vector<int32_t> prompt;  // what is new; empty = the session goes on
  int64_t output_tokens = 0;
  int64_t round = 0;  // begins when all requests of the rounds before are done
};

// When things happened to a request, in seconds from the start of the load.
struct RequestTimes {
  double submitted_s = 0;
  std::vector<double> token_s;
  bool has_prompt = false;
  int64_t session = 0;
};

struct LoadReport {
  int64_t requests = 0, sessions = 0;
  double seconds = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  int64_t draft_tokens = 0, draft_tokens_accepted = 0;
  std::vector<RequestTimes> times;
  // Of the engine, over the load.
  int64_t kv_pages_held = 0, batches = 0;  // pages: at the end, all sessions being there
  double turn_s = 0, compute_s = 0;
};

struct LoadArgs {
  SessionArgs session;
  int64_t draft_tokens = 0;
};
LoadReport run_load(const LoadedModel& loaded, const LoadArgs& args,
                    std::vector<LoadRequest> requests);

// `sessions` requests at once: a prefix of `shared` ids that all have, `prompt` ids of their own.
// When all have their first token, all go on for `tokens` more.
struct LoadShape {
  int64_t sessions = 1, shared = 0, prompt = 0, tokens = 0;
};
std::vector<LoadRequest> simultaneous(const LoadShape& shape, int64_t vocabulary);

// `count` ids spread over the vocabulary; two streams differ at every position.
std::vector<int32_t> spread_ids(int64_t count, int64_t stream, int64_t vocabulary);
// The value that `share` of all are not above; 0 for no values.
double percentile(std::vector<double> values, double share);

// A trace, one request a line after a line of column names, in one of three forms:
//   arrival_s,session,prompt_tokens,output_tokens          our own
//   TIMESTAMP,ContextTokens,GeneratedTokens                Azure's LLM inference traces
//   Timestamp,Model,Request tokens,Response tokens,...     BurstGPT
// The two last know no sessions: every request has its own. Times count from the first line.
std::vector<LoadRequest> read_trace(const std::string& path, int64_t vocabulary);

// total_decode_tokens_per_s: tokens over the time in which any request was decoding. A request that
// has a prompt decodes from its first token on, and that token does not count; one without decodes
// from its submission.
Json load_json(const LoadReport& report);

}  // namespace cli
