// Embeddings against transformers (tests/goldens/embeddings): decoders and BERT, folder and GGUF,
// every pooling, each option of BERT's config.json changed in turn; batches; misuse.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/engine/changed_folder.h"
#include "tests/engine/compare.h"

namespace optima::engine {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path kGoldens = OPTIMA_SOURCE_DIR "/tests/goldens";
const fs::path kFolder = kGoldens / "embeddings";

Json read_json(const fs::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

model::Pooling pooling_of(const std::string& name) {
  if (name == "mean") return model::Pooling::mean;
  return name == "cls" ? model::Pooling::cls : model::Pooling::last;
}

SessionOptions embedding_options(ComputePath path = ComputePath::reference) {
  SessionOptions options;
  options.output = SessionOutput::embedding;
  options.path = path;
  return options;
}

RequestSpec embedding_request(std::vector<int32_t> ids, const EmbeddingSpec& how) {
  RequestSpec spec;
  spec.ids = std::move(ids);
  spec.has_ids = true;
  spec.embedding = how;
  return spec;
}

std::vector<float> embed(Engine& engine, const std::shared_ptr<Session>& session,
                         const RequestSpec& spec) {
  const auto request = must(engine.generate(session, spec, nullptr));
  EXPECT_TRUE(request->result().status.ok()) << request->result().status.message();
  EXPECT_EQ(request->result().finish, FinishReason::embedded);
  return request->result().embedding;
}

double largest(const std::vector<float>& values) {
  double out = 0;
  for (const float value : values) out = std::max(out, std::abs(static_cast<double>(value)));
  return out;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * double{b[i]};
    aa += double{a[i]} * double{a[i]};
    bb += double{b[i]} * double{b[i]};
  }
  return ab / std::sqrt(aa * bb);
}

constexpr double kTolerance = 1e-3;  // of the largest value
constexpr double kCosineMin = 0.999;

void compare(const std::vector<float>& truth, const std::vector<float>& found, ComputePath path) {
  ASSERT_EQ(found.size(), truth.size());
  if (path == ComputePath::reference) {
    EXPECT_LE(max_error(truth, found), kTolerance * largest(truth));
  } else {
    EXPECT_GE(cosine(truth, found), kCosineMin);
    EXPECT_NEAR(largest(found), largest(truth), 0.05 * largest(truth));
  }
}

struct Case {
  std::string name;
  fs::path model;
  ComputePath path;
};

// Every checkpoint, as folder and as GGUF, on all paths.
std::vector<Case> cases() {
  std::vector<std::pair<std::string, fs::path>> folders;
  const Json decoders = read_json(kFolder / "decoders.json");
  for (const auto& [name, golden] : decoders["models"].items())
    folders.emplace_back(name, kGoldens / "arch" / name);
  for (const char* name : {"bert", "bert_mlm"}) folders.emplace_back(name, kFolder / name);
  std::vector<Case> out;
  for (const auto& [name, folder] : folders)
    for (const ComputePath path :
         {ComputePath::reference, ComputePath::fast, ComputePath::deterministic}) {
      out.push_back({name, folder, path});
      out.push_back({name, folder / "model.gguf", path});
    }
  return out;
}

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.model;
}

Json golden_of(const std::string& name) {
  if (fs::exists(kFolder / name)) return read_json(kFolder / name / "golden.json");
  return read_json(kFolder / "decoders.json")["models"][name];
}

class Embeddings : public testing::TestWithParam<Case> {};

TEST_P(Embeddings, AreThoseOfTransformers) {
  const Json golden = golden_of(GetParam().name);
  const Closing engine{new_engine()};
  const auto model = must(engine->load(model::PathSource{GetParam().model.string()}, {}));
  const auto session = must(engine->create_session(model, embedding_options(GetParam().path)));
  for (size_t s = 0; s < golden["sequences"].size(); ++s) {
    const auto ids = golden["sequences"][s].get<std::vector<int32_t>>();
    for (const auto& [pooling, forms] : golden["embeddings"][s].items()) {
      SCOPED_TRACE("sequence " + std::to_string(s) + " " + pooling);
      EmbeddingSpec how{pooling_of(pooling), Normalise::off};
      compare(forms["plain"].get<std::vector<float>>(),
              embed(*engine.engine, session, embedding_request(ids, how)), GetParam().path);
      how.normalise = Normalise::l2;
      compare(forms["l2"].get<std::vector<float>>(),
              embed(*engine.engine, session, embedding_request(ids, how)), GetParam().path);
    }
  }
}

// The model's own pooling and normalisation, from text.
TEST_P(Embeddings, OfTextsTheModelsOwnWay) {
  const Json golden = golden_of(GetParam().name);
  if (!golden.contains("texts")) return;
  const bool folder = fs::is_directory(GetParam().model);
  const Closing engine{new_engine()};
  const auto model = must(engine->load(model::PathSource{GetParam().model.string()}, {}));
  const auto session = must(engine->create_session(model, embedding_options(GetParam().path)));
  // GGUF has a key for the pooling, none for the norm.
  const bool normalised = folder && golden["normalised"].get<bool>();
  for (size_t i = 0; i < golden["texts"].size(); ++i) {
    RequestSpec spec;
    spec.text = golden["texts"][i];
    spec.embedding.emplace();
    const auto request = must(engine->generate(session, spec, nullptr));
    EXPECT_EQ(request->result().prompt_ids, golden["text_ids"][i].get<std::vector<int32_t>>());
    const Json& forms = golden["text_embeddings"][i][golden["pooling"].get<std::string>()];
    compare(forms[normalised ? "l2" : "plain"].get<std::vector<float>>(),
            request->result().embedding, GetParam().path);
  }
}

// The embeddings of all sequences, computed in one pass.
std::vector<std::vector<float>> embed_together(Engine& engine, const std::shared_ptr<Model>& model,
                                               ComputePath path,
                                               const std::vector<RequestSpec>& specs) {
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Request>> requests;
  for (const RequestSpec& spec : specs) {
    sessions.push_back(must(engine.create_session(model, embedding_options(path))));
    requests.push_back(must(engine.submit(sessions.back(), spec)));
  }
  EXPECT_TRUE(must(engine.step()));
  std::vector<std::vector<float>> out;
  for (const auto& request : requests) {
    EXPECT_TRUE(request->done()) << "one pass is enough";
    out.push_back(request->result().embedding);
  }
  return out;
}

// A sequence's embedding is the same whatever is beside it in a pass, and all sequences in one pass
// give what each gives alone. The fast path adds the products of few rows and of many in different
// orders, and a last bit may push a key or a value to the next f16: alone it may differ by that.
TEST_P(Embeddings, OfABatchAreThoseOfOne) {
  const Json golden = golden_of(GetParam().name);
  const ComputePath path = GetParam().path;
  EngineOptions host_driven;
  host_driven.drive = Drive::host;
  const Closing engine{new_engine(host_driven)};
  const auto model = must(engine->load(model::PathSource{GetParam().model.string()}, {}));
  const auto alone = must(engine->create_session(model, embedding_options(path)));
  const EmbeddingSpec mean{model::Pooling::mean, Normalise::off};
  std::vector<RequestSpec> specs;
  std::vector<std::vector<float>> wanted;
  for (const Json& sequence : golden["sequences"]) {
    specs.push_back(embedding_request(sequence.get<std::vector<int32_t>>(), mean));
    wanted.push_back(embed(*engine.engine, alone, specs.back()));
  }
  const auto forward = embed_together(*engine.engine, model, path, specs);
  std::reverse(specs.begin(), specs.end());
  auto backward = embed_together(*engine.engine, model, path, specs);
  std::reverse(backward.begin(), backward.end());
  // Where many rows are rounded to bfloat16, by some steps of that.
  const double fast_step = rounds_to_bfloat16(path) ? 0x1p-6 : 0x1p-11;
  const double step = path == ComputePath::fast ? fast_step : 1e-5;
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE(max_error(forward[i], backward[i]), 1e-5 * largest(wanted[i]));
    EXPECT_LE(max_error(wanted[i], forward[i]), step * largest(wanted[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Embeddings, testing::ValuesIn(cases()), [](const auto& row) {
  const char* path = row.param.path == ComputePath::fast            ? "_fast"
                     : row.param.path == ComputePath::deterministic ? "_deterministic"
                                                                    : "_reference";
  return row.param.name + (row.param.model.extension() == ".gguf" ? "_gguf" : "_folder") + path;
});

class BertOptions : public testing::TestWithParam<std::string> {};

TEST_P(BertOptions, EachChangesTheEmbeddingAsItDoesInTransformers) {
  const Json golden = golden_of(GetParam());
  const auto ids = golden["sequences"].back().get<std::vector<int32_t>>();
  const Closing engine{new_engine()};
  for (const Json& mutation : golden["mutations"]) {
    SCOPED_TRACE(mutation.contains("config") ? mutation["config"].dump()
                                             : mutation["tensor"].dump());
    EXPECT_GE(mutation["moves"].get<double>(), 10 * kTolerance);
    const ChangedFolder changed(kFolder / GetParam(), mutation);
    const auto model = must(engine->load(model::PathSource{changed.path()}, {}));
    const auto session = must(engine->create_session(model, embedding_options()));
    const RequestSpec spec = embedding_request(ids, {model::Pooling::mean, Normalise::off});
    compare(mutation["mean"].get<std::vector<float>>(), embed(*engine.engine, session, spec),
            ComputePath::reference);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BertOptions, testing::Values("bert", "bert_mlm"),
                         [](const auto& row) { return row.param; });

// ---- sessions ----

std::shared_ptr<Model> load(Engine& engine, const fs::path& path) {
  return must(engine.load(model::PathSource{path.string()}, {}));
}

std::vector<int32_t> longest_sequence(const std::string& name) {
  return golden_of(name)["sequences"].back().get<std::vector<int32_t>>();
}

TEST(EmbeddingSession, DecodersTakeAPromptChunkByChunk) {
  const Closing engine{new_engine()};
  const auto model = load(*engine.engine, kGoldens / "arch/llama_llama3");
  const auto ids = longest_sequence("llama_llama3");
  const auto whole = must(engine->create_session(model, embedding_options()));
  SessionOptions options = embedding_options();
  options.prefill_chunk_tokens = 7;
  const auto chunked = must(engine->create_session(model, options));
  for (const model::Pooling pooling :
       {model::Pooling::mean, model::Pooling::cls, model::Pooling::last}) {
    const RequestSpec spec = embedding_request(ids, {pooling, Normalise::off});
    const std::vector<float> wanted = embed(*engine.engine, whole, spec);
    EXPECT_LE(max_error(wanted, embed(*engine.engine, chunked, spec)), 1e-5 * largest(wanted));
  }
}

// What is pooled has to be computed: the mean needs all rows, the last one only itself.
TEST(EmbeddingSession, ThePrefixIsReusedWhereItsRowsAreNotPooled) {
  const Closing engine{new_engine()};
  const auto model = load(*engine.engine, kGoldens / "arch/llama_llama3");
  const auto session = must(engine->create_session(model, embedding_options()));
  const auto ids = longest_sequence("llama_llama3");
  const auto cached = [&](model::Pooling pooling) {
    const auto request =
        must(engine->generate(session, embedding_request(ids, {pooling, Normalise::off}), nullptr));
    return request->result().counters.cached_tokens;
  };
  EXPECT_EQ(cached(model::Pooling::mean), 0);
  EXPECT_EQ(cached(model::Pooling::last), static_cast<int64_t>(ids.size()) - 1);
  EXPECT_EQ(cached(model::Pooling::mean), 0);
  EXPECT_EQ(cached(model::Pooling::cls), 0);
}

TEST(EmbeddingSession, EncodersReuseNothing) {
  const Closing engine{new_engine()};
  const auto model = load(*engine.engine, kFolder / "bert");
  const auto session = must(engine->create_session(model, embedding_options()));
  const auto ids = longest_sequence("bert");
  const RequestSpec spec = embedding_request(ids, {model::Pooling::last, Normalise::off});
  const std::vector<float> first = embed(*engine.engine, session, spec);
  const auto again = must(engine->generate(session, spec, nullptr));
  EXPECT_EQ(again->result().counters.cached_tokens, 0);
  EXPECT_EQ(again->result().embedding, first);
}

TEST(EmbeddingSession, EncodersTakeAPromptInOnePiece) {
  const Closing engine{new_engine()};
  const auto model = load(*engine.engine, kFolder / "bert");
  SessionOptions options = embedding_options();
  options.prefill_chunk_tokens = 8;
  const auto session = must(engine->create_session(model, options));
  const EmbeddingSpec mean{model::Pooling::mean, Normalise::off};
  const auto ids = longest_sequence("bert");
  const Status refused =
      engine->generate(session, embedding_request(ids, mean), nullptr).take_status();
  EXPECT_EQ(refused.code(), Code::context_full);
  EXPECT_EQ(refused.numbers().wanted, static_cast<int64_t>(ids.size()));
  EXPECT_EQ(refused.numbers().limit, 8);
  const std::vector<int32_t> fits(ids.begin(), ids.begin() + 8);
  EXPECT_EQ(embed(*engine.engine, session, embedding_request(fits, mean)).size(), 40u);
}

TEST(EmbeddingSession, AnEncoderGeneratesNothing) {
  const Closing engine{new_engine()};
  const auto model = load(*engine.engine, kFolder / "bert");
  EXPECT_EQ(engine->create_session(model, {}).status().code(), Code::unsupported);
}

TEST(EmbeddingSession, GeneratingAndEmbeddingDoNotMix) {
  const Closing engine{new_engine()};
  const auto model = load(*engine.engine, kGoldens / "arch/llama_llama3");
  const auto embedding = must(engine->create_session(model, embedding_options()));
  const auto generating = must(engine->create_session(model, {}));
  const RequestSpec embed_it = embedding_request({3, 4, 5}, {});
  EXPECT_EQ(engine->generate(generating, embed_it, nullptr).status().code(), Code::invalid_state);
  EXPECT_EQ(engine->generate(embedding, ids_request({3, 4, 5}, 2), nullptr).status().code(),
            Code::invalid_state);
  // Both at once, each through a program of its own.
  const auto first = must(engine->submit(embedding, embed_it));
  const auto second = must(engine->submit(generating, ids_request({3, 4, 5}, 2)));
  EXPECT_TRUE(first->wait(10'000));
  EXPECT_TRUE(second->wait(10'000));
  EXPECT_EQ(first->result().finish, FinishReason::embedded);
  EXPECT_EQ(second->result().tokens.size(), 2u);
}

// The first row, which is all of it here, was pooled by then.
TEST(EmbeddingSession, CancelledBetweenChunksThereIsNoEmbedding) {
  EngineOptions host_driven;
  host_driven.drive = Drive::host;
  const Closing engine{new_engine(host_driven)};
  const auto model = load(*engine.engine, kGoldens / "arch/llama_llama3");
  SessionOptions options = embedding_options();
  options.prefill_chunk_tokens = 7;
  const auto session = must(engine->create_session(model, options));
  const auto ids = longest_sequence("llama_llama3");
  const RequestSpec spec = embedding_request(ids, {model::Pooling::cls, Normalise::off});
  const std::vector<float> wanted = embed(*engine.engine, session, spec);
  int64_t done = 0;
  const auto request = must(engine->generate(session, spec, [&](const Event& event) {
    if (event.type == EventType::prefill) done = event.tokens_done;
    return Verdict::cancel;
  }));
  EXPECT_EQ(done, 7);
  EXPECT_EQ(request->result().finish, FinishReason::cancelled);
  EXPECT_TRUE(request->result().embedding.empty());
  EXPECT_EQ(session->tokens(), ids) << "as before the request";
  EXPECT_EQ(embed(*engine.engine, session, spec), wanted);
}

TEST(EmbeddingSession, ADeadlineEndsIt) {
  EngineOptions host_driven;
  host_driven.drive = Drive::host;
  const Closing engine{new_engine(host_driven)};
  const auto model = load(*engine.engine, kFolder / "bert");
  const auto session = must(engine->create_session(model, embedding_options()));
  RequestSpec spec = embedding_request({2, 7, 3}, {});
  spec.deadline_ms = 1;
  const auto request = must(engine->submit(session, spec));
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  while (must(engine->step())) {
  }
  EXPECT_EQ(request->result().finish, FinishReason::deadline);
  EXPECT_TRUE(request->result().embedding.empty());
}

TEST(EmbeddingSession, OneRequestThatCannotBeginEndsAll) {
  const Closing engine{new_engine()};
  const auto model = load(*engine.engine, kFolder / "bert");
  const auto session = must(engine->create_session(model, embedding_options()));
  std::vector<RequestSpec> specs(3, embedding_request({2, 7, 3}, {}));
  specs[1].ids.assign(41, 7);
  const auto refused = engine->run_all(session, specs);
  EXPECT_EQ(refused.status().code(), Code::context_full);
  EXPECT_NE(refused.status().message().find("request 1 of 3"), std::string::npos)
      << refused.status().message();
  specs[1].ids = {2, 3};
  EXPECT_EQ(must(engine->run_all(session, specs)).size(), 3u);
}

// ---- what is refused ----

TEST(EmbeddingFiles, OptionsThatAreNotComputedAreNamed) {
  const Closing engine{new_engine()};
  const std::pair<const char*, Json> rows[] = {{"is_decoder", true},
                                               {"add_cross_attention", true},
                                               {"position_embedding_type", "relative_key"},
                                               {"hidden_act", "tanh"},
                                               {"no_such_option", 1}};
  for (const auto& [key, value] : rows) {
    const ChangedFolder changed(kFolder / "bert", {{"config", {{key, value}}}});
    const auto model = engine->load(model::PathSource{changed.path()}, {});
    EXPECT_EQ(model.status().code(), Code::unsupported) << key;
    EXPECT_NE(model.status().message().find(key), std::string::npos) << model.status().message();
  }
}

TEST(EmbeddingFiles, EncodersNeedNoTiedHead) {
  const Closing engine{new_engine()};
  for (const Json& value : {Json(false), Json(true), Json()}) {
    const ChangedFolder changed(kFolder / "bert", {{"config", {{"tie_word_embeddings", value}}}});
    EXPECT_TRUE(engine->load(model::PathSource{changed.path()}, {}).ok()) << value;
  }
}

// Models that make embeddings are often saved without the class that holds the head.
TEST(EmbeddingFiles, NamesWithoutThePrefixOfTheWholeModel) {
  const Closing engine{new_engine()};
  const std::pair<fs::path, const char*> rows[] = {{kGoldens / "arch/qwen3", "model."},
                                                   {kGoldens / "arch/gpt2", "transformer."},
                                                   {kFolder / "bert_mlm", "bert."}};
  for (const auto& [folder, prefix] : rows) {
    const ChangedFolder changed(folder, {{"strip", prefix}});
    const RequestSpec spec = embedding_request({3, 40, 50}, {});
    const auto embedding = [&](const fs::path& path) {
      const auto session =
          must(engine->create_session(load(*engine.engine, path), embedding_options()));
      return embed(*engine.engine, session, spec);
    };
    EXPECT_EQ(embedding(changed.path()), embedding(folder)) << folder;
  }
}

// A GGUF file with one number of its metadata changed: key, type and value follow each other.
TEST(EmbeddingFiles, PoolingsOfGgufFiles) {
  const Closing engine{new_engine()};
  std::ifstream file(kFolder / "bert/model.gguf", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::string key = "bert.pooling_type";
  const size_t at = bytes.find(key) + key.size() + sizeof(uint32_t);
  ASSERT_EQ(bytes[at], 1) << "mean";
  const auto load_with = [&](char pooling) {
    bytes[at] = pooling;
    return engine->load(model::MemorySource{reinterpret_cast<const std::byte*>(bytes.data()),
                                            static_cast<int64_t>(bytes.size())},
                        {});
  };
  EXPECT_EQ(must(load_with(0))->config()->pooling, model::Pooling::mean) << "of encoders";
  EXPECT_EQ(must(load_with(2))->config()->pooling, model::Pooling::cls);
  EXPECT_EQ(must(load_with(3))->config()->pooling, model::Pooling::last);
  const Status rank = load_with(4).take_status();
  EXPECT_EQ(rank.code(), Code::unsupported);
  EXPECT_NE(rank.message().find("rank"), std::string::npos) << rank.message();
  EXPECT_EQ(load_with(5).status().code(), Code::format);
}

}  // namespace
}  // namespace optima::engine
