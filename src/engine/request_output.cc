// From scored rows to published tokens: log-probabilities, the choice of the next token and of
// those after it whose drafts were right, text and events. See request_impl.h for which thread may
// call what.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "engine/drafts.h"
#include "engine/request_impl.h"

namespace optima::engine {

Status RequestImpl::take_row(const ScoredRow& row, std::span<float> values) {
  return pooler_ ? pool(row, values) : take_logits(row, values);
}

Status RequestImpl::pool(const ScoredRow& row, std::span<const float> hidden) {
  pooler_->add(hidden);
  if (row.position != pooler_->last_row(prompt_tokens_)) return {};
  OPTIMA_ASSIGN(result_.embedding, pooler_->finish());
  return {};
}

Status RequestImpl::take_logits(const ScoredRow& row, std::span<float> logits) {
  const auto& positions = spec_.logits_positions;
  while (next_logits_ < positions.size() && positions[next_logits_] < row.position) ++next_logits_;
  if (next_logits_ < positions.size() && positions[next_logits_] == row.position) {
    std::memcpy(spec_.logits_out + next_logits_ * logits.size(), logits.data(),
                logits.size() * sizeof(float));
    ++next_logits_;
    ++result_.logits_rows;
  }
  const int64_t target = row.position + 1;
  if (spec_.prompt_logprobs_from >= 0 && target >= spec_.prompt_logprobs_from &&
      target < prompt_tokens_)
    result_.prompt_logprobs.push_back(
        sampling::logprob_of(logits, session_->tokens_[static_cast<size_t>(target)], passes_));
  return row.sample ? sample(logits) : Status();
}

// The row of the last token and those of its drafts come in order. A row counts as long as the
// token chosen from the one before is the draft that it was computed for, and not the last token.
Status RequestImpl::sample(std::span<float> logits) {
  const size_t row = chosen_.size();
  if (row > 0) {
    const Chosen& before = chosen_.back();
    if (row > drafts_.size() || before.pick.token != drafts_[row - 1]) return {};
    if (is_last(before.pick.token, before.grammar)) return {};
  }
  OPTIMA_ASSIGN(Chosen chosen, choose(logits));
  if (row > 0) ++result_.counters.draft_tokens_accepted;
  chosen_.push_back(std::move(chosen));
  return {};
}

Result<RequestImpl::Chosen> RequestImpl::choose(std::span<float> logits) {
  auto& grammar = chosen_.empty() ? grammar_ : chosen_.back().grammar;
  sampling::StepLimits limits;
  std::shared_ptr<const sampling::TokenMask> mask;
  if (grammar) {
    OPTIMA_ASSIGN(mask, grammar->mask());
    limits.mask = mask.get();
  }
  if (spec_.logits_hook) limits.hook = &spec_.logits_hook;
  Chosen out;
  if (sampler_->greedy_only() && limits.mask == nullptr && limits.hook == nullptr) {
    const int64_t token = session_->runner().runner->argmax(logits.data());
    if (token < 0) return Status(Code::internal, text("all ", logits.size(), " logits are NaN"));
    out.pick = {static_cast<int32_t>(token), std::numeric_limits<float>::quiet_NaN(), {}};
    return out;
  }
  std::span<const int32_t> history = session_->tokens_;
  if (!chosen_.empty()) {
    history_.assign(history.begin(), history.end());
    for (const Chosen& before : chosen_) history_.push_back(before.pick.token);
    history = history_;
  }
  const auto step = static_cast<int64_t>(result_.tokens.size() + chosen_.size());
  OPTIMA_ASSIGN(out.pick, sampler_->sample(logits, history, step, limits));
  if (!grammar) return out;
  out.grammar = grammar;
  OPTIMA_TRY(out.grammar->accept(out.pick.token));
  return out;
}

// Most guesses that the next pass has use for: with one token to compute, and no more than may
// still be generated.
int64_t RequestImpl::drafts_room() const {
  if (spec_.drafts_max == 0 || spec_.prompt_only || !spec_.logits_positions.empty()) return 0;
  if (pending_tokens() != 1) return 0;
  const auto total = static_cast<int64_t>(session_->tokens_.size());
  const auto output = static_cast<int64_t>(result_.tokens.size());
  return std::min(
      {spec_.drafts_max, max_tokens_ - output - 1, session_->context_tokens() - total - 1});
}

// Not before the first token, which the draft model's own prompt would delay.
bool RequestImpl::wants_draft_model() const {
  if (draft_ == nullptr || waits_for_host_ || has_chosen() || result_.tokens.empty()) return false;
  return drafts_room() > 0 && draft_->willing(static_cast<int64_t>(session_->tokens_.size()));
}

DraftTask RequestImpl::draft_task() {
  return {draft_.get(), session_->tokens_, drafts_room(), this};
}

int64_t RequestImpl::make_drafts(int64_t room) {
  drafts_.clear();
  chosen_.clear();
  chosen_has_kv_ = true;
  const int64_t most = std::min(room, drafts_room());
  if (most <= 0) return 0;
  drafts_ = draft_ == nullptr
                ? lookup_drafts(session_->tokens_, most)
                : draft_->guesses(static_cast<int64_t>(session_->tokens_.size()), most);
  return static_cast<int64_t>(drafts_.size());
}

bool RequestImpl::is_last(int32_t token,
                          const std::optional<sampling::GrammarState>& grammar) const {
  if (grammar && grammar->is_finished()) return true;  // nothing can follow
  if (!spec_.ignore_eos) {
    const Result<const tokenizer::Tokenizer*> tokenizer = session_->model_impl().tokenizer();
    if (token < (*tokenizer)->size() && (*tokenizer)->ends_generation(token)) return true;
  }
  return std::find(spec_.stop_tokens.begin(), spec_.stop_tokens.end(), token) !=
         spec_.stop_tokens.end();
}

std::optional<FinishReason> RequestImpl::finish_reason_of(int32_t token) const {
  if (is_last(token, grammar_)) return FinishReason::stop;
  if (static_cast<int64_t>(result_.tokens.size()) >= max_tokens_) return FinishReason::length;
  if (static_cast<int64_t>(session_->tokens_.size()) >= session_->context_tokens() &&
      !spec_.context_shift)
    return FinishReason::context;
  return std::nullopt;
}

void RequestImpl::count_token(TimePoint now) {
  Metrics& metrics = hub_->metrics;
  ++metrics.output_tokens;
  if (last_token_ == TimePoint{}) {
    metrics.first_token_s.add(seconds_between(submitted_, now));
  } else {
    metrics.inter_token_s.add(seconds_between(last_token_, now));
  }
  last_token_ = now;
}

std::optional<FinishReason> RequestImpl::publish_tokens(TimePoint now) {
  if (!chosen_.empty()) {
    Chosen first = std::move(chosen_.front());
    chosen_.pop_front();
    if (const auto reason = publish_token(std::move(first), now)) return reason;
    return publish_chosen(now);
  }
  // Nothing was to be sampled: the prompt alone was asked for, or it fills the context.
  if (pending_tokens() > 0) return std::nullopt;
  if (pooler_) return FinishReason::embedded;
  return spec_.prompt_only ? FinishReason::length : FinishReason::context;
}

// The KV of a draft that was right is there: it counts when the token after it is published.
std::optional<FinishReason> RequestImpl::publish_chosen(TimePoint now) {
  while (!chosen_.empty() && !waits_for_host_) {
    if (chosen_has_kv_) {
      session_->table_.commit(1, session_->tokens_);
      computed_ = std::max(computed_, session_->table_.length());
    }
    Chosen next = std::move(chosen_.front());
    chosen_.pop_front();
    if (const auto reason = publish_token(std::move(next), now)) return reason;
  }
  session_->table_.abort(chosen_with_kv());  // the pages of wrong drafts
  return std::nullopt;
}

std::optional<FinishReason> RequestImpl::publish_token(Chosen chosen, TimePoint now) {
  const sampling::Pick pick = std::move(chosen.pick);
  session_->tokens_.push_back(pick.token);
  result_.tokens.push_back({pick.token, pick.logprob, pick.top});
  ++result_.counters.output_tokens;
  count_token(now);
  if (result_.tokens.size() == 1) result_.counters.first_token_ns = ns_between(submitted_, now);

  Event event = make_event(EventType::token);
  event.token = pick.token;
  event.logprob = pick.logprob;
  event.top = pick.top;
  event.index = static_cast<int64_t>(result_.tokens.size()) - 1;
  if (grammar_) grammar_ = std::move(chosen.grammar);
  std::optional<FinishReason> reason = finish_reason_of(pick.token);
  Result<tokenizer::Detokenizer::Piece> piece = detokenizer_->push(pick.token);
  if (piece.ok()) {  // Rows of the head beyond the tokenizer's vocabulary have no text.
    event.bytes = piece->bytes;
    result_.bytes += piece->bytes;
    append_text(event, piece->text);
  }
  if (result_.stop_index >= 0) reason = FinishReason::stop_string;
  waits_for_host_ = delivery_ == Delivery::callback;
  publish(std::move(event));
  if (!reason) shift_context();
  return reason;
}

// Adds new text to the event and the result, less what may be the start of a stop string.
void RequestImpl::append_text(Event& event, std::string_view text) {
  sampling::StopStrings::Result shown = stops_->push(text);
  if (shown.matched >= 0) result_.stop_index = shown.matched;
  result_.text += shown.text;
  event.text = std::move(shown.text);
}

}  // namespace optima::engine
