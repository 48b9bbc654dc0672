// The prompt goes into one session; each answer continues in a fork of it, so that the prompt's
// work and memory are shared and the library decodes all answers in one batch.
#include "samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cli {
namespace {

void compute_prompt(optima_session* session, const std::vector<int32_t>& prompt) {
  auto desc = sized<optima_request_desc>();
  desc.prompt_ids = prompt.data();
  desc.prompt_id_count = prompt.size();
  desc.flags = OPTIMA_REQUEST_PROMPT_ONLY;
  make<Result>(optima_generate, session, &desc);
}

double mean_logprob(const optima_result* result) {
  int64_t count = 0;
  const float* values = optima_result_logprobs(result, &count);
  if (count == 0) return -std::numeric_limits<double>::infinity();
  return std::accumulate(values, values + count, 0.0) / static_cast<double>(count);
}

}  // namespace

std::vector<Sample> generate_samples(optima_session* session, const std::vector<int32_t>& prompt,
                                     const GenerationArgs& args, int32_t count) {
  if (args.temperature == 0)
    throw Failure("--samples: without --temp all answers are the same", kExitUsage);
  compute_prompt(session, prompt);
  Description description(args);
  description.desc.prompt = "";
  description.desc.flags |= OPTIMA_REQUEST_APPEND;
  std::vector<Session> forks;
  std::vector<Request> requests;
  for (int32_t i = 0; i < count; ++i) {
    description.desc.seed = args.seed + static_cast<uint64_t>(i);
    forks.push_back(make<Session>(optima_session_fork, session));
    requests.push_back(make<Request>(optima_submit, forks.back().get(), &description.desc));
  }
  std::vector<Sample> samples;
  for (const Request& request : requests) {
    optima_error* error = nullptr;
    check(optima_request_wait(request.get(), -1, nullptr, &error), error);
    Result result = make<Result>(optima_request_result, request.get());
    const double probable = mean_logprob(result.get());
    samples.push_back({std::move(result), probable});
  }
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return a.mean_logprob > b.mean_logprob;
  });
  return samples;
}

}  // namespace cli
