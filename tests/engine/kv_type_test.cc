// Sessions whose keys and values are not kept as f16: near those, and in all else the same: chunks,
// forks, snapshots, windows, the prefix cache, what a page costs.
#include "tests/engine/compare.h"

namespace optima::engine {
namespace {

using kernels::KvType;

SessionOptions options_of(KvType type, ComputePath path = ComputePath::fast) {
  SessionOptions options;
  options.kv_type = type;
  options.path = path;
  return options;
}

std::string saved(const std::shared_ptr<Session>& session) {
  std::string bytes;
  EXPECT_TRUE(session
                  ->save([&](const void* from, int64_t count) {
                    bytes.append(static_cast<const char*>(from), static_cast<size_t>(count));
                    return true;
                  })
                  .ok());
  EXPECT_EQ(session->save_bytes(), static_cast<int64_t>(bytes.size()));
  return bytes;
}

kv::SnapshotRead reader(const std::string& bytes, size_t& at) {
  return [&bytes, &at](void* into, int64_t count) {
    if (bytes.size() - at < static_cast<size_t>(count)) return false;
    std::memcpy(into, bytes.data() + at, static_cast<size_t>(count));
    at += static_cast<size_t>(count);
    return true;
  };
}

class KvTypes : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Session> session(const SessionOptions& options) {
    return must(engine_->create_session(model_, options));
  }
  std::vector<float> logits(const std::shared_ptr<Session>& of) {
    return prompt_logits(*engine_.engine, of, tiny_.all(), tiny_.vocabulary);
  }

  // However the prompt comes to be there, the tokens after it are the same.
  void check_same_bits(KvType type) {
    SessionOptions options = options_of(type, ComputePath::deterministic);
    const std::vector<float> want = logits(session(options));
    options.prefill_chunk_tokens = 7;
    EXPECT_EQ(logits(session(options)), want) << "in chunks";

    const auto first = session(options);
    const int64_t tokens = 21;
    RequestSpec begin = ids_request({tiny_.prompt.begin(), tiny_.prompt.begin() + tokens}, 0);
    begin.prompt_only = true;
    must(engine_->generate(first, begin, nullptr));
    const std::string bytes = saved(first);
    size_t at = 0;
    const auto restored = must(engine_->restore(model_, options, reader(bytes, at)));
    EXPECT_EQ(saved(restored), bytes);
    const auto fork = must(first->fork());
    for (const auto& each : {first, fork, restored}) {
      const auto request = must(engine_->generate(each, ids_request(tiny_.prompt, 8), nullptr));
      EXPECT_GE(request->result().counters.cached_tokens, tokens);
      EXPECT_EQ(output_ids(request->result()),
                output_ids(
                    must(engine_->generate(session(options), ids_request(tiny_.prompt, 8), nullptr))
                        ->result()));
    }
  }

  const TinyModel tiny_ = tiny_model(GetParam());
  const Closing engine_{new_engine()};
  const std::shared_ptr<Model> model_ = must(engine_->load(model::PathSource{tiny_.path}, {}));
};

// Keys and values err by 1 / 254 of their block's largest, or by 1 / 256 of themselves. The
// divergence is that of an 8-bit format, as for these models' int8 weights (logits_test.cc).
TEST_P(KvTypes, LogitsAreNearThoseOfF16) {
  const std::vector<float> half = logits(session(options_of(KvType::f16)));
  for (const KvType type : {KvType::q8_0, KvType::bf16}) {
    const std::vector<float> other = logits(session(options_of(type)));
    EXPECT_NE(half, other);
    EXPECT_LE(mean_kld(half, other, tiny_.vocabulary), 1e-2) << kv_type_name(type);
    EXPECT_LE(mean_kld(tiny_.logits, other, tiny_.vocabulary), 1e-2) << kv_type_name(type);
  }
}

TEST_P(KvTypes, ChunksForksAndSnapshotsGiveTheSameBits) {
  check_same_bits(KvType::q8_0);
  check_same_bits(KvType::bf16);
}

TEST_P(KvTypes, AnotherTypeIsNeitherSharedNorRestored) {
  RequestSpec spec = ids_request(tiny_.prompt, 0);
  spec.prompt_only = true;
  const auto half = session(options_of(KvType::f16));
  must(engine_->generate(half, spec, nullptr));
  const auto eighth = session(options_of(KvType::q8_0));
  const auto request = must(engine_->generate(eighth, spec, nullptr));
  EXPECT_EQ(request->result().counters.cached_tokens, 0);
  EXPECT_NE(half->kv().root, eighth->kv().root);
  EXPECT_EQ(half->kv().use.pages, eighth->kv().use.pages);
  // A byte for two, and two bytes of scale for each 32 dimensions begun.
  EXPECT_LT(eighth->kv().use.bytes, half->kv().use.bytes * 0.66);
  EXPECT_GT(eighth->kv().use.bytes, half->kv().use.bytes / 2);
  const std::string bytes = saved(half);
  size_t at = 0;
  const auto refused = engine_->restore(model_, options_of(KvType::q8_0), reader(bytes, at));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::version);
  EXPECT_NE(refused.status().message().find("KV type is 0, here it is 3"), std::string::npos)
      << refused.status().message();
}

TEST_P(KvTypes, TheReferencePathKeeps32BitsAlone) {
  const auto refused =
      engine_->create_session(model_, options_of(KvType::q8_0, ComputePath::reference));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::unsupported);
  EXPECT_NE(refused.status().message().find("q8_0"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, KvTypes, testing::Values("llama-f32", "gemma3-f32"),
                         [](const auto& parameter) {
                           return std::string(parameter.param, strcspn(parameter.param, "-"));
                         });

}  // namespace
}  // namespace optima::engine
