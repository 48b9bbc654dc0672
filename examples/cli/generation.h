// What `run` and `chat` share: the options of a generation, and running one with its text streamed.
#pragma once

#include <string>
#include <vector>

#include "cli_util.h"

namespace cli {

struct GenerationArgs {
  int64_t max_tokens = 0;
  float temperature = 0, top_p = 0, min_p = 0, typical_p = 0;
  int32_t top_k = 0;
  float repetition_penalty = 0, presence_penalty = 0, frequency_penalty = 0;
  uint64_t seed = 0;
  std::vector<std::string> stops;
  float top_n_sigma = 0, xtc_probability = 0, xtc_threshold = 0, mirostat_tau = 0;
  float dry_multiplier = 0;
  int64_t draft_tokens = 0;
  bool ignore_eos = false;
  // At most one of these.
  bool json_output = false;
  std::string json_schema, grammar, regex;
};
void add_generation_options(Command& command, GenerationArgs& args);

// Where the text of an answer goes while it is made.
struct Stream {
  enum class Text { shown, kept };  // written to stdout as it comes, or only gathered
  enum class Interrupt { go_on, stop };

  Text text = Text::shown;
  // Asked after each token; stop ends the answer and keeps it. May be null.
  Interrupt (*interrupted)() = nullptr;
  const optima_cancel* cancel = nullptr;
  std::string so_far;
};

// The args as the library reads them; `desc` points into the object. The prompt is the caller's.
class Description {
 public:
  explicit Description(const GenerationArgs& args);
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  optima_request_desc desc;

 private:
  std::vector<const char*> stops_;
  std::vector<size_t> stop_bytes_;
  std::string grammar_;
};

// One generation.
Result generate(optima_session* session, const std::vector<int32_t>& prompt,
                const GenerationArgs& args, Stream& stream);

std::string result_text(const optima_result* result);
std::vector<int32_t> result_ids(const optima_result* result);

// The conversation as the model's own template writes it, as token ids.
std::vector<int32_t> chat_prompt(const optima_model* model, const Json& messages);

}  // namespace cli
