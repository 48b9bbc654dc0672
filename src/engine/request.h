// One generation: what is asked (RequestSpec), what comes back (Event, RequestResult), and the
// request object that both sides share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/config.h"
#include "sampling/grammar/grammar.h"
#include "sampling/sampler.h"

namespace optima::engine {

// Latched and async-signal-safe to trigger; one object may serve many requests.
class CancelFlag {
 public:
  void trigger() { value_.store(true, std::memory_order_release); }
  bool triggered() const { return value_.load(std::memory_order_acquire); }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free);
  std::atomic<bool> value_{false};
};

// How the prompt relates to what the session already holds.
enum class PromptMode : int32_t {
  whole = 0,   // the prompt is the whole context; KV of its longest common prefix is reused
  append = 1,  // the prompt continues after the session's tokens
};

enum class FinishReason : int32_t {
  none = 0,  // still running
  stop = 1,  // an end-of-generation token
  stop_string = 2,
  length = 3,   // max_tokens
  context = 4,  // the context is full
  host = 5,     // the callback said stop
  cancelled = 6,
  deadline = 7,
  error = 8,
  embedded = 9,  // the embedding is there
};

// What the output must look like.
struct GrammarSpec {
  sampling::GrammarKind kind = sampling::GrammarKind::json;
  std::string text;
};

// Whether an embedding is divided by its length (L2 norm).
enum class Normalise : int32_t { model = 0, off = 1, l2 = 2 };

// An embedding instead of an answer: the hidden rows of the prompt, pooled to one vector.
struct EmbeddingSpec {
  std::optional<model::Pooling> pooling;  // empty = the model's own
  Normalise normalise = Normalise::model;
};

// Models attend to the first tokens whatever they say (Xiao et al. 2023, "Efficient Streaming
// Language Models with Attention Sinks", arXiv:2309.17453): without them an answer falls apart.
inline constexpr int64_t kShiftKeepTokens = 4;

struct RequestSpec {
  // Exactly one of text and ids is used: ids when has_ids.
  std::string text;
  std::vector<int32_t> ids;
  bool has_ids = false;
  PromptMode prompt_mode = PromptMode::whole;
  bool add_special = true;    // BOS/EOS by the file's rule (text prompts)
  bool parse_special = true;  // special tokens in the text become tokens
  bool ignore_eos = false;    // end-of-generation tokens do not end it
  bool show_special = false;  // control tokens appear in the text
  int64_t max_tokens = 0;     // 0 = until stop or context; negative is an error
  bool prompt_only = false;   // process (and score) the prompt, generate nothing
  // When the context is full, drops the older half of the tokens after the first
  // shift_keep_tokens (0 = kShiftKeepTokens) and goes on. Off: it ends with FinishReason::context.
  bool context_shift = false;
  int64_t shift_keep_tokens = 0;
  std::vector<std::string> stop_strings;
  std::vector<int32_t> stop_tokens;
  sampling::SamplingParams sampling;
  std::optional<GrammarSpec> grammar;
  std::optional<EmbeddingSpec> embedding;  // as the session's output asks
  // Most guesses at the next tokens that a pass checks beside the next one; 0 = none. Found by
  // looking up what followed the last tokens before (engine/drafts.h). The output is the same; not
  // used with logits_positions.
  int64_t drafts_max = 0;
  sampling::LogitsHook logits_hook;  // empty = none; called on the driving thread
  int64_t deadline_ms = 0;           // from submission; 0 = none
  int32_t priority = 0;  // higher comes first; within +-scheduler::kPriorityMax (see order.h)
  // Log-probability of each prompt token at position >= this, given its predecessors; -1 = none.
  int64_t prompt_logprobs_from = -1;
  // Full logits: for every position p listed (ascending; position = index in the whole token
  // sequence of prompt and output), the row that predicts token p + 1 is copied to
  // logits_out + i * vocabulary. The buffer belongs to the caller and outlives the request.
  std::vector<int64_t> logits_positions;
  float* logits_out = nullptr;
  int64_t logits_capacity = 0;         // floats
  std::shared_ptr<CancelFlag> cancel;  // optional, beside Request::cancel()
  void* user = nullptr;                // cookie handed back in every event
};

// Why no token of a prompt came from KV that was there.
enum class CacheMiss : int32_t {
  none = 0,       // some did
  too_short = 1,  // no whole block before the last token
  scored = 2,     // rows of the first block are wanted
  encoder = 3,    // KV depends on the tokens behind
  not_begun = 4,  // it ended before it was looked for
  unknown = 5,    // those of kv::Miss
  elsewhere = 6,
  reclaimed = 7,
  not_kept = 8,
  window = 9,
};

struct Counters {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;                    // of the prompt, taken from KV
  CacheMiss cache_miss = CacheMiss::not_begun;  // why that is 0
  int64_t output_tokens = 0;
  int64_t draft_tokens = 0;           // guesses that passes checked
  int64_t draft_tokens_accepted = 0;  // of them, right ones
  int64_t shifted_tokens = 0;         // dropped from the session for want of context
  int64_t queue_ns = 0, prefill_ns = 0, decode_ns = 0, first_token_ns = 0;  // from submission
  int64_t weight_bytes_read = 0, kv_bytes_read = 0;
};

struct OutputToken {
  int32_t id = -1;
  float logprob = 0;
  std::vector<sampling::TokenLogprob> top;
};

// Complete and immutable once the request is done.
struct RequestResult {
  Status status;  // why it failed; ok also for cancelled and deadline (finish says so)
  FinishReason finish = FinishReason::none;
  std::vector<int32_t> prompt_ids;
  std::vector<OutputToken> tokens;
  std::string text;                    // whole code points, without stop strings
  std::string bytes;                   // of the tokens, as they are
  std::vector<float> prompt_logprobs;  // [prompt_tokens - from]
  int stop_index = -1;                 // which stop string
  std::vector<float> embedding;        // [hidden]
  int64_t logits_rows = 0;             // rows written to logits_out: a last token is never fed
  Counters counters;
};

enum class EventType : int32_t {
  prefill = 1,  // progress: tokens_done of tokens_total
  token = 2,    // one output token
  done = 3,     // the last event of a request; the result is available
};

class Request;

struct Event {
  EventType type{};
  std::shared_ptr<Request> request;
  std::string text;  // whole code points, may be empty; in done: what was held back until then
  std::string bytes;
  int32_t token = -1;
  float logprob = 0;
  std::vector<sampling::TokenLogprob> top;
  int64_t index = 0;                          // output index of the token
  int64_t tokens_done = 0, tokens_total = 0;  // prefill
  FinishReason finish = FinishReason::none;   // done
};

class Session;

// Shared by the host's handle and the engine. Methods are safe from any thread.
class Request {
 public:
  virtual ~Request() = default;
  // One atomic store: async-signal-safe, latched.
  void cancel() { cancel_.trigger(); }
  virtual bool done() const = 0;
  virtual void* user() const = 0;
  // Only after done().
  virtual const RequestResult& result() const = 0;
  // Waits up to timeout_ms (negative = forever) for done().
  virtual bool wait(int64_t timeout_ms) = 0;

 protected:
  CancelFlag cancel_;
};

}  // namespace optima::engine
