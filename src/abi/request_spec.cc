// Reads a request description. Ranges that the engine or the sampler checks (temperature, top_p,
// token ids, ...) are left to them; here stands what only the boundary can see: pointers, counts,
// flags and texts.

#include "abi/request_spec.h"

#include <algorithm>

#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/structs.h"

namespace optima::abi {
namespace {

constexpr uint32_t kFlagsKnown = OPTIMA_REQUEST_APPEND | OPTIMA_REQUEST_NO_ADD_SPECIAL |
                                 OPTIMA_REQUEST_NO_PARSE_SPECIAL | OPTIMA_REQUEST_IGNORE_EOS |
                                 OPTIMA_REQUEST_SHOW_SPECIAL | OPTIMA_REQUEST_PROMPT_ONLY |
                                 OPTIMA_REQUEST_PROMPT_LOGPROBS | OPTIMA_REQUEST_CONTEXT_SHIFT;

template <typename Item>
Result<std::vector<Item>> read_array(std::string_view name, const Item* data, size_t count) {
  OPTIMA_TRY(check_array(name, data, count, sizeof(Item)));
  if (count == 0) return std::vector<Item>();
  return std::vector<Item>(data, data + count);
}

Status read_prompt(const optima_request_desc& desc, engine::RequestSpec& spec) {
  if (desc.prompt != nullptr && desc.prompt_ids != nullptr) {
    return Status(Code::invalid_argument, "prompt and prompt_ids: both are set");
  }
  if (desc.prompt == nullptr && desc.prompt_ids == nullptr) {
    return Status(Code::invalid_argument,
                  text("prompt and prompt_ids: both are NULL (lengths ", desc.prompt_bytes, " and ",
                       desc.prompt_id_count, ")"));
  }
  spec.has_ids = desc.prompt_ids != nullptr;
  if (spec.has_ids) {
    OPTIMA_ASSIGN(spec.ids, read_array("prompt_ids", desc.prompt_ids, desc.prompt_id_count));
    return {};
  }
  OPTIMA_ASSIGN(spec.text, read_text("prompt", desc.prompt, desc.prompt_bytes));
  return {};
}

void read_flags(uint32_t flags, engine::RequestSpec& spec) {
  const auto set = [flags](uint32_t bit) { return (flags & bit) != 0; };
  spec.prompt_mode =
      set(OPTIMA_REQUEST_APPEND) ? engine::PromptMode::append : engine::PromptMode::whole;
  spec.add_special = !set(OPTIMA_REQUEST_NO_ADD_SPECIAL);
  spec.parse_special = !set(OPTIMA_REQUEST_NO_PARSE_SPECIAL);
  spec.ignore_eos = set(OPTIMA_REQUEST_IGNORE_EOS);
  spec.show_special = set(OPTIMA_REQUEST_SHOW_SPECIAL);
  spec.prompt_only = set(OPTIMA_REQUEST_PROMPT_ONLY);
  spec.context_shift = set(OPTIMA_REQUEST_CONTEXT_SHIFT);
}

Status read_stops(const optima_request_desc& desc, engine::RequestSpec& spec) {
  OPTIMA_TRY(check_array("stops", desc.stops, desc.stop_count, sizeof(char*)));
  for (size_t i = 0; i < desc.stop_count; ++i) {
    const size_t bytes = desc.stop_bytes == nullptr ? OPTIMA_NTS : desc.stop_bytes[i];
    OPTIMA_ASSIGN(const std::string_view stop,
                  read_text(text("stops[", i, "]"), desc.stops[i], bytes));
    spec.stop_strings.emplace_back(stop);
  }
  OPTIMA_ASSIGN(spec.stop_tokens,
                read_array("stop_tokens", desc.stop_tokens, desc.stop_token_count));
  return {};
}

Status read_sampling(const optima_request_desc& desc, sampling::SamplingParams& sampling) {
  OPTIMA_TRY(
      check_array("logit_bias", desc.logit_bias, desc.logit_bias_count, sizeof(optima_logit_bias)));
  for (size_t i = 0; i < desc.logit_bias_count; ++i) {
    sampling.logit_bias.emplace_back(desc.logit_bias[i].token, desc.logit_bias[i].bias);
  }
  sampling.temperature = desc.temperature;
  sampling.top_k = desc.top_k;
  sampling.top_p = desc.top_p;
  sampling.min_p = desc.min_p;
  sampling.typical_p = desc.typical_p;
  sampling.repetition_penalty = desc.repetition_penalty;
  sampling.presence_penalty = desc.presence_penalty;
  sampling.frequency_penalty = desc.frequency_penalty;
  sampling.penalty_window = desc.penalty_window;
  sampling.seed = desc.seed;
  sampling.logprobs = desc.logprobs;
  sampling.top_n_sigma = desc.top_n_sigma;
  sampling.xtc_probability = desc.xtc_probability;
  sampling.xtc_threshold = desc.xtc_threshold;
  sampling.mirostat_tau = desc.mirostat_tau;
  sampling.mirostat_eta = desc.mirostat_eta;
  sampling.dynamic_range = desc.dynamic_range;
  sampling.dynamic_exponent = desc.dynamic_exponent;
  sampling.dry_multiplier = desc.dry_multiplier;
  sampling.dry_base = desc.dry_base;
  sampling.dry_allowed_length = desc.dry_allowed_length;
  sampling.dry_window = desc.dry_window;
  OPTIMA_ASSIGN(sampling.dry_breakers,
                read_array("dry_breakers", desc.dry_breakers, desc.dry_breaker_count));
  return {};
}

Status read_grammar(const optima_request_desc& desc, engine::RequestSpec& spec) {
  OPTIMA_TRY(check_constant("grammar_kind", desc.grammar_kind, OPTIMA_GRAMMAR_REGEX));
  if (desc.grammar_kind == OPTIMA_GRAMMAR_NONE) {
    if (desc.grammar == nullptr) return {};
    return Status(Code::invalid_argument, "grammar: set, but grammar_kind is 0");
  }
  engine::GrammarSpec grammar;
  grammar.kind = static_cast<sampling::GrammarKind>(desc.grammar_kind - OPTIMA_GRAMMAR_JSON);
  if (desc.grammar_kind != OPTIMA_GRAMMAR_JSON) {
    if (desc.grammar == nullptr) return Status(Code::invalid_argument, "grammar: NULL");
    OPTIMA_ASSIGN(grammar.text, read_text("grammar", desc.grammar, desc.grammar_bytes));
  }
  spec.grammar = std::move(grammar);
  return {};
}

// The host's hook; what it throws, or answers but 0, ends the request.
sampling::LogitsHook make_hook(const optima_request_desc& desc, std::shared_ptr<EngineBox> box) {
  if (desc.on_logits == nullptr) return {};
  return [hook = desc.on_logits, user = desc.user, box = std::move(box)](
             std::span<float> logits, std::span<const int32_t> tokens) -> Status {
    int32_t verdict = 1;
    box->enter_callback();
    const Caught caught = contain([&] {
      verdict = hook(user, logits.data(), static_cast<int64_t>(logits.size()), tokens.data(),
                     static_cast<int64_t>(tokens.size()));
    });
    box->leave_callback();
    if (caught.code != Code::ok)
      return Status(Code::internal, text("on_logits threw: ", caught.text));
    if (verdict != 0) return Status(Code::invalid_state, text("on_logits answered ", verdict));
    return {};
  };
}

Status read_scores(const optima_request_desc& desc, engine::RequestSpec& spec) {
  if (desc.prompt_logprobs_from < 0) {
    return Status(
        Code::invalid_argument,
        text("prompt_logprobs_from is ", desc.prompt_logprobs_from, ", must not be negative"));
  }
  if ((desc.flags & OPTIMA_REQUEST_PROMPT_LOGPROBS) != 0) {
    spec.prompt_logprobs_from = std::max<int64_t>(desc.prompt_logprobs_from, 1);
  }
  OPTIMA_ASSIGN(spec.logits_positions,
                read_array("logits_positions", desc.logits_positions, desc.logits_position_count));
  OPTIMA_TRY(check_array("logits_out", desc.logits_out, desc.logits_capacity, sizeof(float)));
  spec.logits_out = desc.logits_out;
  spec.logits_capacity = static_cast<int64_t>(desc.logits_capacity);
  return {};
}

Status read_embedding(const optima_request_desc& desc, engine::RequestSpec& spec) {
  OPTIMA_TRY(check_constant("pooling", desc.pooling, OPTIMA_POOLING_LAST));
  OPTIMA_TRY(check_constant("normalise", desc.normalise, OPTIMA_NORMALISE_L2));
  spec.embedding.emplace();
  if (desc.pooling != OPTIMA_POOLING_MODEL)
    spec.embedding->pooling = static_cast<model::Pooling>(desc.pooling);
  spec.embedding->normalise = static_cast<engine::Normalise>(desc.normalise);
  return {};
}

Status refuse_embedding(const optima_request_desc& desc) {
  if (desc.pooling == 0 && desc.normalise == 0) return {};
  return Status(Code::invalid_argument,
                text("pooling is ", desc.pooling, ", normalise is ", desc.normalise,
                     ": they belong to embeddings, this request generates"));
}

}  // namespace

ReleaseOnce take_hook(const optima_request_desc* in) {
  const optima_request_desc desc = given_fields(in);
  return {desc.release, desc.user};
}

Result<engine::RequestSpec> read_request(const optima_request_desc& desc,
                                         std::shared_ptr<EngineBox> box,
                                         engine::SessionOutput purpose) {
  engine::RequestSpec spec;
  OPTIMA_TRY(check_flags("flags", desc.flags, kFlagsKnown));
  OPTIMA_TRY(read_prompt(desc, spec));
  read_flags(desc.flags, spec);
  OPTIMA_TRY(read_stops(desc, spec));
  OPTIMA_TRY(read_sampling(desc, spec.sampling));
  OPTIMA_TRY(read_grammar(desc, spec));
  spec.logits_hook = make_hook(desc, std::move(box));
  OPTIMA_TRY(read_scores(desc, spec));
  OPTIMA_TRY(purpose == engine::SessionOutput::embedding ? read_embedding(desc, spec)
                                                         : refuse_embedding(desc));
  if (desc.max_tokens < 0 || desc.deadline_ms < 0) {
    return Status(Code::invalid_argument,
                  text("max_tokens is ", desc.max_tokens, ", deadline_ms is ", desc.deadline_ms,
                       ": neither may be negative"));
  }
  spec.max_tokens = desc.max_tokens;
  spec.drafts_max = desc.draft_tokens;
  spec.deadline_ms = desc.deadline_ms;
  spec.priority = desc.priority;
  spec.shift_keep_tokens = desc.shift_keep_tokens;
  if (desc.cancel != nullptr) {
    OPTIMA_TRY(check(desc.cancel));
    spec.cancel = desc.cancel->flag;
  }
  return spec;
}

}  // namespace optima::abi
