// An engine with little KV memory, and what its requests answer in one with plenty.
#pragma once

#include "tests/engine/tiny_model.h"

namespace optima::engine {

// Of the tiny llama on the reference path: 2 layers of 2 heads of 8 floats, K and V.
inline constexpr int64_t kPageBytes = int64_t{16} * 2 * 2 * 8 * 2 * 4;

inline SessionOptions reference() {
  SessionOptions options;
  options.path = ComputePath::reference;
  return options;
}

inline EngineOptions pages(int64_t count, Drive drive = Drive::host) {
  EngineOptions options;
  options.threads = 1;
  options.drive = drive;
  options.kv_budget_bytes = count * kPageBytes;
  return options;
}

inline std::vector<int32_t> prompt_of(int64_t tokens, int32_t first) {
  std::vector<int32_t> ids = {first};
  for (int64_t i = 1; i < tokens; ++i)
    ids.push_back(static_cast<int32_t>(3 + (i * 7 + first) % 90));
  return ids;
}

class Tight {
 public:
  explicit Tight(const EngineOptions& options, const std::string& model = "llama-f32")
      : engine_{new_engine(options)},
        model_(must(engine_->load(model::PathSource{tiny_path(model + ".gguf")}, {}))) {}

  std::shared_ptr<Session> session(const SessionOptions& options = reference()) {
    return must(engine_->create_session(model_, options));
  }
  std::shared_ptr<Request> submit(const std::shared_ptr<Session>& session, RequestSpec spec) {
    return must(engine_->submit(session, std::move(spec)));
  }
  void finish_all(int64_t steps_max = 10'000) {
    while (must(engine_->step())) ASSERT_GT(steps_max--, 0) << "it does not end";
  }
  Engine* operator->() const { return engine_.engine.get(); }

 private:
  Closing engine_;
  std::shared_ptr<Model> model_;
};

inline RequestResult alone(const RequestSpec& spec, const std::string& model = "llama-f32") {
  EngineOptions options;
  options.threads = 1;
  options.drive = Drive::host;
  Tight engine(options, model);
  return must(engine->generate(engine.session(), spec, nullptr))->result();
}

}  // namespace optima::engine
