// Every architecture against transformers, from its Hugging Face folder and from its GGUF file
// (tests/goldens/arch): whole prompts, token by token, several sequences in one batch; and each
// option of config.json changed in turn, which must change the logits as it does there.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/changed_folder.h"
#include "tests/engine/compare.h"

namespace optima::engine {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path kFolder = OPTIMA_SOURCE_DIR "/tests/goldens/arch";

enum class Form { folder, gguf };

struct Case {
  std::string name;
  Form form;
  ComputePath path;
};

struct Golden {
  Json json;
  std::vector<std::vector<int32_t>> sequences;
  std::vector<std::vector<float>> logits;  // [sequence][positions * vocabulary]
  int64_t vocabulary = 0;
  double scale = 0;  // standard deviation of the logits
  double tolerance = 0;
};

Golden read_golden(const std::string& name) {
  Golden golden;
  std::ifstream file(kFolder / name / "golden.json");
  golden.json = Json::parse(file);
  golden.sequences = golden.json["sequences"].get<std::vector<std::vector<int32_t>>>();
  golden.vocabulary = golden.json["vocabulary"];
  golden.scale = golden.json["logits_std"];
  golden.tolerance = golden.json["tolerance"];
  std::ifstream binary(kFolder / name / "logits.bin", std::ios::binary);
  for (const auto& sequence : golden.sequences) {
    auto& rows =
        golden.logits.emplace_back(sequence.size() * static_cast<size_t>(golden.vocabulary));
    binary.read(reinterpret_cast<char*>(rows.data()),
                static_cast<std::streamsize>(rows.size() * sizeof(float)));
  }
  EXPECT_TRUE(binary.good()) << name;
  return golden;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (fs::exists(entry.path() / "golden.json")) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const std::string& name : names())
    for (const ComputePath path : {ComputePath::reference, ComputePath::fast}) {
      out.push_back({name, Form::folder, path});
      if (fs::exists(kFolder / name / "model.gguf")) out.push_back({name, Form::gguf, path});
    }
  return out;
}

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.name;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.name + (info.param.form == Form::folder ? "_folder" : "_gguf") +
         (info.param.path == ComputePath::fast ? "_fast" : "_reference");
}

// Rotary frequencies that depend on the length are those of the session's context, so the sessions
// hold exactly what transformers was given.
SessionOptions options_for(const std::vector<int32_t>& sequence, ComputePath path) {
  SessionOptions options;
  options.context_tokens = static_cast<int64_t>(sequence.size());
  options.path = path;
  return options;
}

// Whether the matrices are blocks of a quantised type, so that activations are rounded to int8.
bool runs_in_blocks(const std::string& name) {
  for (const char* part : {"mxfp4", "int8", "int4"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

class Architectures : public testing::TestWithParam<Case> {
 protected:
  Architectures() : golden_(read_golden(GetParam().name)) {}

  std::string path() const {
    const fs::path folder = kFolder / GetParam().name;
    return (GetParam().form == Form::folder ? folder : folder / "model.gguf").string();
  }

  // fp32 rounding alone on the reference path. The fast path has f16 KV and, where the weights are
  // quantised, int8 activations, and on some CPUs bfloat16 ones.
  void compare(size_t sequence, const std::vector<float>& logits) const {
    const std::vector<float>& truth = golden_.logits[sequence];
    ASSERT_EQ(logits.size(), truth.size());
    if (GetParam().path == ComputePath::reference) {
      EXPECT_LE(max_error(truth, logits), golden_.tolerance * golden_.scale)
          << "sequence " << sequence;
    } else {
      const bool quantised =
          runs_in_blocks(GetParam().name) || rounds_to_bfloat16(ComputePath::fast);
      EXPECT_LE(mean_kld(truth, logits, golden_.vocabulary), quantised ? kKldQuantised : kKldMax)
          << "sequence " << sequence;
    }
  }

  Golden golden_;
};

TEST_P(Architectures, Prefill) {
  const Closing engine{new_engine()};
  const auto model = must(engine->load(model::PathSource{path()}, {}));
  for (size_t s = 0; s < golden_.sequences.size(); ++s) {
    const auto& ids = golden_.sequences[s];
    const auto session = must(engine->create_session(model, options_for(ids, GetParam().path)));
    compare(s, prompt_logits(*engine.engine, session, ids, golden_.vocabulary));
  }
}

TEST_P(Architectures, TokenByToken) {
  const Closing engine{new_engine()};
  const auto model = must(engine->load(model::PathSource{path()}, {}));
  const size_t last = golden_.sequences.size() - 1;
  const auto& ids = golden_.sequences[last];
  const auto session = must(engine->create_session(model, options_for(ids, GetParam().path)));
  compare(last, token_by_token_logits(*engine.engine, session, ids, golden_.vocabulary));
}

// From text to ids to text, with the tokenizer that the folder or file brings.
TEST_P(Architectures, AnswersTheText) {
  if (!golden_.json.contains("text")) return;  // the length of a text decides its frequencies
  const Closing engine{new_engine()};
  SessionOptions options;
  options.path = ComputePath::reference;
  const auto model = must(engine->load(model::PathSource{path()}, {}));
  const auto session = must(engine->create_session(model, options));
  const auto wanted = golden_.json["continuation_ids"].get<std::vector<int32_t>>();
  RequestSpec spec;
  spec.text = golden_.json["text"];
  spec.max_tokens = static_cast<int64_t>(wanted.size());
  spec.ignore_eos = true;
  const auto request = must(engine->generate(session, spec, nullptr));
  EXPECT_EQ(request->result().prompt_ids, golden_.json["text_ids"].get<std::vector<int32_t>>());
  EXPECT_EQ(output_ids(request->result()), wanted);
}

// Two sequences take their tokens one by one while the third is in prefill, all in one batch.
TEST_P(Architectures, MixedBatch) {
  EngineOptions host_driven;
  host_driven.drive = Drive::host;
  const Closing engine{new_engine(host_driven)};
  const auto model = must(engine->load(model::PathSource{path()}, {}));
  const size_t count = golden_.sequences.size();
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::vector<float>> logits;
  std::vector<std::shared_ptr<Request>> requests;
  for (size_t s = 0; s < count; ++s) {
    const auto& ids = golden_.sequences[s];
    SessionOptions options = options_for(ids, GetParam().path);
    if (s + 1 < count) options.prefill_chunk_tokens = 1;
    sessions.push_back(must(engine->create_session(model, options)));
    RequestSpec spec = ids_request(ids, 0);
    spec.prompt_only = true;
    for (size_t i = 0; i < ids.size(); ++i)
      spec.logits_positions.push_back(static_cast<int64_t>(i));
    auto& rows = logits.emplace_back(golden_.logits[s].size(), NAN);
    spec.logits_out = rows.data();
    spec.logits_capacity = static_cast<int64_t>(rows.size());
    if (s + 1 == count) {
      EXPECT_TRUE(must(engine->step()));
    }
    requests.push_back(must(engine->submit(sessions.back(), std::move(spec))));
  }
  while (must(engine->step())) {
  }
  for (size_t s = 0; s < count; ++s) {
    ASSERT_TRUE(requests[s]->done());
    ASSERT_TRUE(requests[s]->result().status.ok()) << requests[s]->result().status.message();
    compare(s, logits[s]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Architectures, testing::ValuesIn(cases()), case_name);

// ---- options ----

// Values that no released model of the family has; they are refused by name.
bool may_be_refused(const std::string& name, const Json& mutation) {
  static const std::map<std::string, std::vector<std::string>> kRefused = {
      // The sequence is longer than the context that is left.
      {"llama_dynamic", {"rope_parameters", "rope_parameters.factor"}}};
  const auto row = kRefused.find(name);
  if (row == kRefused.end() || !mutation.contains("config")) return false;
  for (const auto& [key, value] : mutation["config"].items())
    if (std::find(row->second.begin(), row->second.end(), key) != row->second.end()) return true;
  return false;
}

class Options : public testing::TestWithParam<std::string> {};

// The sequence that holds a row of logits.bin, and the row's position in it.
struct RowPlace {
  size_t sequence, position;
};
RowPlace place_of(const Golden& golden, size_t row) {
  size_t sequence = 0;
  while (row >= golden.sequences[sequence].size()) row -= golden.sequences[sequence++].size();
  return {sequence, row};
}

// Logits of the changed folder; empty when it was refused, which only what we do not compute may
// be.
std::vector<float> changed_logits(Engine& engine, const std::string& name, const Json& change,
                                  const Golden& golden, size_t sequence) {
  const ChangedFolder changed(kFolder / name, change);
  auto model = engine.load(model::PathSource{changed.path()}, {});
  if (!model.ok()) {
    EXPECT_EQ(model.status().code(), Code::unsupported)
        << change.dump() << ": " << model.status().message();
    return {};
  }
  const auto& ids = golden.sequences[sequence];
  auto session = engine.create_session(model.take(), options_for(ids, ComputePath::reference));
  if (!session.ok()) {
    EXPECT_EQ(session.status().code(), Code::invalid_argument) << session.status().message();
    return {};
  }
  return prompt_logits(engine, session.take(), ids, golden.vocabulary);
}

// A mutation holds some of transformers' logits of the row where it shows most, and by how much.
TEST_P(Options, EachChangesTheLogitsAsItDoesInTransformers) {
  const Golden golden = read_golden(GetParam());
  const Closing engine{new_engine()};
  ASSERT_FALSE(golden.json["mutations"].empty());
  for (const Json& mutation : golden.json["mutations"]) {
    EXPECT_GE(mutation["moves"].get<double>(), 10 * golden.tolerance) << mutation.dump();
    const RowPlace place = place_of(golden, mutation["row"]);
    const std::vector<float> logits =
        changed_logits(*engine.engine, GetParam(), mutation, golden, place.sequence);
    if (logits.empty()) {
      EXPECT_TRUE(may_be_refused(GetParam(), mutation)) << mutation.dump();
      continue;
    }
    const float* row = logits.data() + place.position * static_cast<size_t>(golden.vocabulary);
    for (size_t i = 0; i < mutation["ids"].size(); ++i)
      EXPECT_NEAR(row[mutation["ids"][i].get<size_t>()], mutation["logits"][i].get<double>(),
                  2 * golden.tolerance * golden.scale)
          << mutation.dump();
  }
}

// Defaults left out, and the other spelling of the rope keys.
TEST_P(Options, OtherSpellingsChangeNothing) {
  const Golden golden = read_golden(GetParam());
  const Closing engine{new_engine()};
  if (!golden.json.contains("same")) return;
  const size_t last = golden.sequences.size() - 1;
  for (const Json& change : golden.json["same"]) {
    const std::vector<float> logits =
        changed_logits(*engine.engine, GetParam(), change, golden, last);
    ASSERT_FALSE(logits.empty()) << change.dump();
    EXPECT_LE(max_error(golden.logits[last], logits), golden.tolerance * golden.scale)
        << change.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Options, testing::ValuesIn(names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace optima::engine
