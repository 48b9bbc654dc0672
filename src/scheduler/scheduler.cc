// The scheduling policy; see scheduler.h. Knows counts only: no tensors, no clock, no requests.
#include "scheduler/scheduler.h"

#include <algorithm>
#include <tuple>

namespace optima::scheduler {

namespace {

// A prompt of one token that runs whole waits its turn like any prompt: else a stream of such would
// keep a long one from ever finding a whole batch's room.
bool is_decode(const Candidate& candidate) {
  return candidate.pending_tokens == 1 && candidate.chunks == Chunks::any;
}

class Batch {
 public:
  Batch(std::span<const Candidate> candidates, const Limits& limits, std::vector<Slot>& slots)
      : candidates_(candidates),
        slots_(slots),
        tokens_left_(limits.tokens_max),
        sequences_left_(limits.sequences_max),
        prompt_tokens_left_(limits.prompt_tokens_max) {}

  void add_decodes();
  void add_prompts();

 private:
  struct Prompt {
    size_t candidate = 0;
    int64_t tokens = 0;
  };
  void share(std::span<Prompt> prompts);
  int64_t give(Prompt& prompt, int64_t tokens_max);
  void give_whole(Prompt& prompt);
  const Candidate& of(const Prompt& prompt) const { return candidates_[prompt.candidate]; }
  int64_t prompt_room() const { return std::min(tokens_left_, prompt_tokens_left_); }

  std::span<const Candidate> candidates_;
  std::vector<Slot>& slots_;
  int64_t tokens_left_, sequences_left_, prompt_tokens_left_;
};

void Batch::add_decodes() {
  int64_t decodes = 0;
  bool prompts = false;
  for (const Candidate& candidate : candidates_) {
    decodes += is_decode(candidate) ? 1 : 0;
    prompts = prompts || (!is_decode(candidate) && candidate.pending_tokens > 0);
  }
  const int64_t for_prompts = prompts && sequences_left_ > 1 ? 1 : 0;
  const int64_t room = std::min(tokens_left_, sequences_left_ - for_prompts);
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (is_decode(candidates_[i])) slots_.push_back({i, 1});
  if (decodes > room) {
    const auto sooner = [&](const Slot& a, const Slot& b) {
      const Candidate &of_a = candidates_[a.candidate], &of_b = candidates_[b.candidate];
      return std::tuple(-of_a.level, of_a.ran_last, a.candidate) <
             std::tuple(-of_b.level, of_b.ran_last, b.candidate);
    };
    std::sort(slots_.begin(), slots_.end(), sooner);
    slots_.resize(static_cast<size_t>(std::max<int64_t>(0, room)));
  }
  tokens_left_ -= static_cast<int64_t>(slots_.size());
  sequences_left_ -= static_cast<int64_t>(slots_.size());
}

void Batch::add_prompts() {
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (!is_decode(candidates_[i]) && candidates_[i].pending_tokens > 0) prompts.push_back({i, 0});
  for (size_t begin = 0; begin < prompts.size();) {
    size_t end = begin;
    while (end < prompts.size() && of(prompts[end]).level == of(prompts[begin]).level) ++end;
    share(std::span(prompts).subspan(begin, end - begin));
    begin = end;
  }
  for (const Prompt& prompt : prompts)
    if (prompt.tokens > 0) slots_.push_back({prompt.candidate, prompt.tokens});
}

// The prompts of one level, in order.
void Batch::share(std::span<Prompt> prompts) {
  Prompt& first = prompts.front();
  if (of(first).chunks == Chunks::any && prompts.size() > 1) {
    std::vector<Prompt*> shorter;
    for (Prompt& prompt : prompts.subspan(1))
      if (of(prompt).chunks == Chunks::any &&
          of(prompt).pending_tokens < of(first).pending_tokens / 2)
        shorter.push_back(&prompt);
    std::stable_sort(shorter.begin(), shorter.end(), [&](const Prompt* a, const Prompt* b) {
      return of(*a).pending_tokens < of(*b).pending_tokens;
    });
    int64_t others = prompt_room() / 2;
    give(first, prompt_room() - others);
    for (Prompt* prompt : shorter) others -= give(*prompt, others);
  }
  for (Prompt& prompt : prompts) {
    if (of(prompt).chunks == Chunks::whole) {
      give_whole(prompt);
    } else {
      give(prompt, prompt_room());
    }
  }
}

// Up to so many tokens more; returns how many.
int64_t Batch::give(Prompt& prompt, int64_t tokens_max) {
  if (prompt.tokens == 0 && sequences_left_ <= 0) return 0;
  const int64_t wanted =
      std::min(of(prompt).pending_tokens, of(prompt).chunk_tokens_max) - prompt.tokens;
  const int64_t tokens = std::min({wanted, tokens_max, prompt_room()});
  if (tokens <= 0) return 0;
  if (prompt.tokens == 0) --sequences_left_;
  prompt.tokens += tokens;
  tokens_left_ -= tokens;
  prompt_tokens_left_ -= tokens;
  return tokens;
}

// Such a prompt is not of those that may be cut, and has no part in their budget.
void Batch::give_whole(Prompt& prompt) {
  const int64_t tokens = of(prompt).pending_tokens;
  if (sequences_left_ <= 0 || tokens > std::min(tokens_left_, of(prompt).chunk_tokens_max)) return;
  --sequences_left_;
  prompt.tokens = tokens;
  tokens_left_ -= tokens;
}

}  // namespace

void next(std::span<const Candidate> candidates, const Limits& limits, std::vector<Slot>& slots) {
  slots.clear();
  Batch batch(candidates, limits, slots);
  batch.add_decodes();
  batch.add_prompts();
}

}  // namespace optima::scheduler
