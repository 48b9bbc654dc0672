// See draft_model.h.
#include "engine/draft_model.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "engine/drafts.h"
#include "engine/request_impl.h"
#include "engine/vocabulary.h"

namespace optima::engine {
namespace {

// After a refusal of pages: so many tokens of the session without guesses.
constexpr int64_t kRestTokens = 64;

int64_t size_of(std::span<const int32_t> tokens) {
  return static_cast<int64_t>(tokens.size());
}

// Of the largest logit. Logits far below it are left out: 2^18 of them are less than 1 %.
float top_probability(std::span<const float> logits, float top) {
  constexpr float kFar = 17.0f;
  float sum = 0;
  for (const float logit : logits)
    if (logit > top - kFar) sum += std::exp(logit - top);
  return 1.0f / sum;
}

}  // namespace

Status check_same_vocabulary(const tokenizer::Tokenizer& target,
                             const tokenizer::Tokenizer& draft) {
  const auto differs = [](const std::string& has, const std::string& wanted) {
    return Status(Code::invalid_argument,
                  text("the draft model's vocabulary has ", has, ", the model's ", wanted));
  };
  if (target.size() != draft.size())
    return differs(text(draft.size(), " tokens"), text(target.size()));
  if (target.bos() != draft.bos() || target.eos() != draft.eos())
    return differs(text("BOS ", draft.bos(), " and EOS ", draft.eos()),
                   text(target.bos(), " and ", target.eos()));
  for (int32_t id = 0; id < target.size(); ++id)
    if (target.token_text(id) != draft.token_text(id) || target.kind(id) != draft.kind(id))
      return differs(
          text("token ", id, " '", draft.token_text(id), "' of kind ",
               static_cast<int>(draft.kind(id)), ", fingerprint ", vocabulary_fingerprint(draft)),
          text("'", target.token_text(id), "' of kind ", static_cast<int>(target.kind(id)),
               ", fingerprint ", vocabulary_fingerprint(target)));
  return {};
}

// ---- one sequence ----

int64_t DraftSequence::missing(std::span<const int32_t> tokens) const {
  return std::max<int64_t>(1, size_of(tokens) - size_of(hidden_->tokens_));
}

bool DraftSequence::willing(int64_t tokens) const {
  return guessed_at_ != tokens && tokens >= resting_until_ && tokens < hidden_->context_tokens() &&
         !hidden_->model_impl().closed();
}

std::vector<int32_t> DraftSequence::guesses(int64_t tokens, int64_t most) const {
  if (guessed_at_ != tokens) return {};
  const auto count = std::min(most, size_of(guesses_));
  return {guesses_.begin(), guesses_.begin() + count};
}

bool DraftSequence::give_up() {
  const bool held = hidden_->table_.bytes_held() > 0;
  resting_until_ = size_of(hidden_->tokens_) + kRestTokens;
  release();
  return held;
}

void DraftSequence::release() {
  hidden_->table_.truncate(0);
  hidden_->tokens_.clear();
  written_.clear();
  reserved_ = 0;
}

// Keeps what is computed of `tokens`, at most all but the last, whose row makes the first guess.
void DraftSequence::follow(std::span<const int32_t> tokens) {
  kv::PageTable& table = hidden_->table_;
  std::vector<int32_t>& own = hidden_->tokens_;
  const std::span<const int32_t> before = tokens.first(tokens.size() - 1);
  const int64_t common = common_prefix(own, before);
  if (common < size_of(own)) {
    table.truncate(table.reusable(common));
  } else {
    const int64_t right = common_prefix(written_, before.subspan(own.size()));
    if (right > 0) table.commit(right, tokens);
  }
  written_.clear();
  table.abort();
  reserved_ = 0;
  if (size_of(before) - table.length() >= kv::kPageTokens) {
    table.adopt(before, size_of(before));
  }
  const auto length = static_cast<ptrdiff_t>(table.length());
  own.assign(tokens.begin(), tokens.begin() + length);
}

bool DraftSequence::begin(std::span<const int32_t> tokens, int64_t count) {
  guesses_.clear();
  guessed_at_ = size_of(tokens);
  wanted_ = std::min(count, hidden_->context_tokens() - size_of(tokens));
  if (wanted_ <= 0) return false;
  follow(tokens);
  return true;
}

// How many of the missing tokens the next pass computes; 0 when there is no room or no page.
int64_t DraftSequence::begin_feed(std::span<const int32_t> tokens, int64_t room) {
  const int64_t missing = size_of(tokens) - hidden_->table_.length();
  const int64_t count = std::min(missing, room);
  if (count <= 0) return 0;
  const int64_t guesses = count == missing ? wanted_ - 1 : 0;
  if (hidden_->table_.reserve(count + guesses).ok()) {
    reserved_ = count + guesses;
    return count;
  }
  give_up();
  resting_until_ = size_of(tokens) + kRestTokens;
  return 0;
}

// A guess from the row of the last token; whether another one is wanted.
bool DraftSequence::take(std::span<const float> logits, int64_t token) {
  if (token < 0 || token >= vocabulary_) return false;
  if (top_probability(logits, logits[static_cast<size_t>(token)]) < kGuessProbabilityMin)
    return false;
  guesses_.push_back(static_cast<int32_t>(token));
  return size_of(guesses_) < wanted_;
}

// ---- the passes ----

// Sequences of one draft model, from the first pass (what is missing) to the last guess.
class DraftPass {
 public:
  DraftPass(ModelRunner& runner, const GuessLimits& limits, const backend::StopCheck& stop)
      : runner_(runner), limits_(limits), stop_(stop), tokens_left_(limits.tokens_max) {}

  // Takes the task if there is room for it. Under the tables' mutex.
  void add(DraftTask& task) {
    DraftSequence& sequence = *task.sequence;
    if (size_of(rows_) >= runner_.outputs_max || !sequence.begin(task.tokens, task.count)) return;
    const int64_t count = sequence.begin_feed(task.tokens, tokens_left_);
    if (count == 0) return;
    tokens_left_ -= count;
    const auto first = static_cast<size_t>(sequence.hidden_->table_.length());
    add_run(task, task.tokens.subspan(first, static_cast<size_t>(count)));
  }

  // Passes until no sequence wants another guess; returns their number.
  Result<int64_t> run() {
    int64_t passes = 0;
    while (!runs_.empty()) {
      const Status status = pass(passes == 0);
      if (!status.ok()) {
        if (status.code() == Code::cancelled) return passes;
        return status;
      }
      ++passes;
    }
    return passes;
  }

 private:
  void add_run(DraftTask& task, std::span<const int32_t> tokens) {
    const SessionImpl& hidden = *task.sequence->hidden_;
    const int64_t first = hidden.table_.length() + size_of(task.sequence->written_);
    runs_.push_back({size_of(ids_), size_of(tokens), first, hidden.context_tokens(), {}});
    ids_.insert(ids_.end(), tokens.begin(), tokens.end());
    for (int64_t i = 0; i < size_of(tokens); ++i)
      positions_.push_back(static_cast<int32_t>(first + i));
    for (size_t group = 0; group < runner_.layout.groups.size(); ++group)
      pages_.push_back(hidden.table_.pages(group).data());
    rows_.push_back(static_cast<int32_t>(ids_.size()) - 1);
    tasks_.push_back(&task);
  }

  void clear() {
    tasks_.clear();
    runs_.clear();
    ids_.clear();
    positions_.clear();
    pages_.clear();
    rows_.clear();
  }

  Status pass(bool first) {
    const size_t groups = runner_.layout.groups.size();
    for (size_t i = 0; i < runs_.size(); ++i)
      runs_[i].pages = std::span(pages_).subspan(i * groups, groups);
    const graph::Batch batch{ids_, positions_, runs_, rows_};
    OPTIMA_TRY(runner_.runner->run_body(batch, stop_));
    OPTIMA_ASSIGN(const float* rows, runner_.runner->run_head(batch, 0, size_of(rows_)));
    std::vector<DraftTask*> going_on;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      DraftTask& task = *tasks_[i];
      const auto width = static_cast<size_t>(runner_.result_width);
      const std::span row(rows + i * width, width);
      task.request->counters().weight_bytes_read += runner_.weight_bytes_per_step / size_of(rows_);
      if (first) {
        const std::lock_guard lock(limits_.tables_mutex);
        commit(task, runs_[i].tokens);
      } else {
        task.sequence->written_.push_back(task.sequence->guesses_.back());
      }
      const bool complete = task.sequence->hidden_->tokens_.size() == task.tokens.size();
      if (complete && task.sequence->take(row, runner_.runner->argmax(row.data())))
        going_on.push_back(&task);
    }
    clear();
    for (DraftTask* task : going_on) add_run(*task, std::span(task->sequence->guesses_).last(1));
    return {};
  }

  // What is written of the session's own tokens counts at once, and others may find it.
  static void commit(DraftTask& task, int64_t count) {
    SessionImpl& hidden = *task.sequence->hidden_;
    hidden.table_.commit(count, task.tokens);
    task.sequence->reserved_ -= count;
    const auto length = static_cast<ptrdiff_t>(hidden.table_.length());
    hidden.tokens_.assign(task.tokens.begin(), task.tokens.begin() + length);
  }

  ModelRunner& runner_;
  const GuessLimits& limits_;
  const backend::StopCheck& stop_;
  int64_t tokens_left_;  // of the first pass
  std::vector<DraftTask*> tasks_;
  std::vector<graph::SequenceRun> runs_;
  std::vector<int32_t> ids_, positions_, rows_;
  std::vector<unsigned char* const*> pages_;  // [sequence][group]
};

Result<int64_t> guess(std::span<DraftTask> tasks, const GuessLimits& limits,
                      const backend::StopCheck& stop) {
  int64_t passes = 0;
  std::vector<const ModelRunner*> done;
  for (const DraftTask& task : tasks) {
    ModelRunner& runner = task.sequence->runner();
    if (std::find(done.begin(), done.end(), &runner) != done.end()) continue;
    done.push_back(&runner);
    DraftPass pass(runner, limits, stop);
    std::unique_lock lock(limits.tables_mutex);
    // Those that have caught up first: the rest is for prompts.
    for (const bool behind : {false, true})
      for (DraftTask& each : tasks)
        if (&each.sequence->runner() == &runner &&
            (each.sequence->missing(each.tokens) > kDraftsMax) == behind)
          pass.add(each);
    lock.unlock();
    OPTIMA_ASSIGN(const int64_t ran, pass.run());
    passes += ran;
  }
  return passes;
}

}  // namespace optima::engine
