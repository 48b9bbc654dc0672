// The small models of tests/goldens/tiny with what transformers computed for them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace optima::engine {

struct TinyModel {
  std::string path;
  std::vector<int32_t> prompt;
  std::vector<int32_t> continuation;  // greedy
  std::vector<float> logits;          // [prompt + continuation, vocabulary]
  int64_t vocabulary = 0;
  double logits_std = 0;

  std::vector<int32_t> all() const {
    std::vector<int32_t> ids = prompt;
    ids.insert(ids.end(), continuation.begin(), continuation.end());
    return ids;
  }
};

inline std::string tiny_path(const std::string& name) {
  return std::string(OPTIMA_SOURCE_DIR "/tests/goldens/tiny/") + name;
}

inline TinyModel tiny_model(const std::string& name) {
  TinyModel model;
  model.path = tiny_path(name + ".gguf");
  std::ifstream json_file(tiny_path(name + ".json"));
  const nlohmann::json json = nlohmann::json::parse(json_file);
  model.prompt = json["prompt_ids"].get<std::vector<int32_t>>();
  model.continuation = json["continuation_ids"].get<std::vector<int32_t>>();
  model.vocabulary = json["vocabulary"].get<int64_t>();
  model.logits_std = json["logits_std"].get<double>();
  std::ifstream file(tiny_path(name + ".logits"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  model.logits.resize(bytes.size() / sizeof(float));
  std::memcpy(model.logits.data(), bytes.data(), bytes.size());
  return model;
}

// A value, or a test failure that shows the status.
template <typename T>
T must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    throw std::runtime_error(result.status().message());
  }
  return result.take();
}

inline std::shared_ptr<Engine> new_engine(EngineOptions options = {}) {
  if (options.threads == 0) options.threads = 2;
  return must(Engine::create(options));
}

// Closes the engine at the end of a scope, as the C boundary does.
struct Closing {
  std::shared_ptr<Engine> engine;
  ~Closing() {
    engine->close();
    const kv::AuditReport report = engine->audit_kv();
    EXPECT_EQ(engine->metrics().kv_audit_faults, 0u) << "at last: " << report.text();
  }
  Engine* operator->() const { return engine.get(); }
};

inline std::shared_ptr<Session> new_session(Engine& engine, const std::string& path,
                                            SessionOptions options = {}) {
  return must(engine.create_session(must(engine.load(model::PathSource{path}, {})), options));
}

inline RequestSpec ids_request(std::vector<int32_t> ids, int64_t max_tokens) {
  RequestSpec spec;
  spec.ids = std::move(ids);
  spec.has_ids = true;
  spec.max_tokens = max_tokens;
  spec.ignore_eos = true;
  return spec;
}

inline std::vector<int32_t> output_ids(const RequestResult& result) {
  std::vector<int32_t> ids;
  for (const OutputToken& token : result.tokens) ids.push_back(token.id);
  return ids;
}

}  // namespace optima::engine
