// Guesses by a draft model: a smaller model with the vocabulary of the target says what comes next,
// greedily, and one pass of the target checks what it said (speculative decoding: Leviathan et al.
// 2023, arXiv:2211.17192). The check samples each row as it would have been sampled anyway, so what
// is generated depends on the target alone: the guesses need no probabilities of their own.
//
//   session --> hidden session of the draft model: its runner, its tokens, its pages
//   request --> DraftSequence: follows the session's tokens, keeps the guesses of the next pass
//   turn    --> guess(): passes of one token per sequence, all sequences of one draft model at once
//
// The hidden session has pages while a request runs. What it computed is then given back to the
// pool, where the next request, a fork or a restored session finds it as it finds any prefix; what
// is gone is computed again. So rolling back, forking, saving and destroying need nothing of it.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/session_impl.h"

namespace optima::engine {

class RequestImpl;

// A guess that the draft model itself holds less probable than this is not made: a pass of the
// draft model and a row of the check cost more than it is worth.
inline constexpr float kGuessProbabilityMin = 0.4f;

// Whether ids mean the same in both: as many tokens, the same BOS and EOS, equal texts and kinds.
// If not, invalid_argument with what each has.
Status check_same_vocabulary(const tokenizer::Tokenizer& target, const tokenizer::Tokenizer& draft);

// What the draft model knows of one running request. For the driving thread alone.
class DraftSequence {
 public:
  // `hidden` must outlive the sequence; the target's head has ids below `vocabulary`.
  DraftSequence(SessionImpl& hidden, int64_t vocabulary)
      : hidden_(&hidden), vocabulary_(vocabulary) {}
  ~DraftSequence() { release(); }
  DraftSequence(const DraftSequence&) = delete;
  DraftSequence& operator=(const DraftSequence&) = delete;

  ModelRunner& runner() const { return hidden_->runner(); }
  // How much of `tokens` is not computed, at least 1; about so much where it went another way.
  int64_t missing(std::span<const int32_t> tokens) const;
  // Whether guesses for a session of so many tokens would be made now.
  bool willing(int64_t tokens) const;
  // The first `most` guesses at what follows a session's `tokens` tokens; none when they were not
  // made for that many.
  std::vector<int32_t> guesses(int64_t tokens, int64_t most) const;
  int64_t reserved() const { return reserved_; }
  // Gives all pages back and makes no guesses for a while, because others need the memory. False
  // when it had none.
  bool give_up();

 private:
  friend class DraftPass;
  bool begin(std::span<const int32_t> tokens, int64_t count);
  void follow(std::span<const int32_t> tokens);
  int64_t begin_feed(std::span<const int32_t> tokens, int64_t room);
  bool take(std::span<const float> logits, int64_t token);
  void release();

  // Positions [0, table length) are computed for hidden_->tokens_. Behind them those of written_
  // are, too: guesses, which count when the target has chosen the same.
  SessionImpl* hidden_;
  int64_t vocabulary_;
  std::vector<int32_t> written_;
  std::vector<int32_t> guesses_;
  int64_t reserved_ = 0;    // tokens behind the table's length that have pages
  int64_t wanted_ = 0;      // guesses
  int64_t guessed_at_ = 0;  // tokens of the session when they were made
  int64_t resting_until_ = 0;
};

// One sequence that wants guesses.
struct DraftTask {
  DraftSequence* sequence = nullptr;
  std::span<const int32_t> tokens;  // of its session
  int64_t count = 0;                // guesses wanted, at least 1
  RequestImpl* request = nullptr;   // whose counters get what the passes read
};

// Makes guesses for all sequences, as many in a pass as can be; returns the number of passes. A
// draft model that is behind (the prompt, at first) computes at most `tokens_max` tokens and makes
// its guesses when it has caught up. Without pages, and after `stop`, there are no guesses. Tables
// change under `tables_mutex`, which is not held during a pass. Fails when a pass does.
struct GuessLimits {
  int64_t tokens_max = 0;
  std::mutex& tables_mutex;
};
Result<int64_t> guess(std::span<DraftTask> tasks, const GuessLimits& limits,
                      const backend::StopCheck& stop);

}  // namespace optima::engine
