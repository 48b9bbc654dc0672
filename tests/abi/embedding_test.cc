// Embeddings through the C ABI: one, many at once, submitted; equal to the goldens; misuse refused.
#include <cmath>

#include "fixture.h"

namespace optima_test {
namespace {

const std::string kFolder = OPTIMA_SOURCE_DIR "/tests/goldens/embeddings/bert";

nlohmann::json bert_golden() {
  return nlohmann::json::parse(read_file(kFolder + "/golden.json"));
}

Model open_bert(const Engine& engine) {
  optima_model* model = nullptr;
  must([&](optima_error** err) {
    return optima_model_open_path(engine.get(), kFolder.c_str(), OPTIMA_NTS, nullptr, &model, err);
  });
  return Model(model);
}

Session embedding_session(const Model& model) {
  auto options = sized<optima_session_options>();
  options.output = OPTIMA_OUTPUT_EMBEDDING;
  options.path = OPTIMA_PATH_REFERENCE;
  optima_session* session = nullptr;
  must([&](optima_error** err) {
    return optima_session_create(model.get(), &options, &session, err);
  });
  return Session(session);
}

Result embed(const Session& session, const optima_request_desc& desc) {
  optima_result* result = nullptr;
  must([&](optima_error** err) { return optima_embed(session.get(), &desc, &result, err); });
  return Result(result);
}

std::vector<float> embedding_of(const Result& result) {
  int64_t count = 0;
  const float* values = optima_result_embedding(result.get(), &count);
  return {values, values + count};
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  float largest = 0;
  for (const float value : wanted) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-3f * largest);
}

class EmbeddingTest : public testing::Test {
 protected:
  std::vector<float> wanted(size_t text, const char* pooling, const char* form) const {
    return golden_["text_embeddings"][text][pooling][form].get<std::vector<float>>();
  }

  nlohmann::json golden_ = bert_golden();
  std::vector<std::string> texts_ = golden_["texts"];
  Engine engine_ = make_engine();
  Model model_ = open_bert(engine_);
  Session session_ = embedding_session(model_);
};

TEST_F(EmbeddingTest, OneText) {
  auto desc = ask(texts_[0].c_str(), 0);
  const Result own = embed(session_, desc);
  EXPECT_EQ(optima_result_finish(own.get()), OPTIMA_FINISH_EMBEDDED);
  EXPECT_STREQ(optima_finish_name(OPTIMA_FINISH_EMBEDDED), "embedded");
  expect_near(embedding_of(own), wanted(0, "mean", "l2"));
  auto counters = sized<optima_counters>();
  must([&](optima_error** err) { return optima_result_counters(own.get(), &counters, err); });
  EXPECT_EQ(counters.prompt_tokens, static_cast<int64_t>(golden_["text_ids"][0].size()));
  EXPECT_EQ(counters.output_tokens, 0);
  desc.pooling = OPTIMA_POOLING_LAST;
  desc.normalise = OPTIMA_NORMALISE_OFF;
  expect_near(embedding_of(embed(session_, desc)), wanted(0, "last", "plain"));
  desc.pooling = OPTIMA_POOLING_CLS;
  desc.normalise = OPTIMA_NORMALISE_L2;
  expect_near(embedding_of(embed(session_, desc)), wanted(0, "cls", "l2"));
}

TEST_F(EmbeddingTest, ManyTextsAtOnce) {
  std::vector<const char*> texts;
  for (const std::string& text : texts_) texts.push_back(text.c_str());
  for (int i = 0; i < 100; ++i) texts.push_back(texts[static_cast<size_t>(i) % texts_.size()]);
  optima_buffer* buffer = nullptr;
  must([&](optima_error** err) {
    return optima_embed_texts(session_.get(), nullptr, texts.data(), nullptr, texts.size(), &buffer,
                              err);
  });
  const Buffer owned(buffer);
  int64_t count = 0;
  const float* values = optima_buffer_floats(buffer, &count);
  const auto width = static_cast<size_t>(count) / texts.size();
  ASSERT_EQ(static_cast<size_t>(count), width * texts.size());
  for (size_t i = 0; i < texts.size(); ++i)
    expect_near({values + i * width, values + (i + 1) * width},
                wanted(i % texts_.size(), "mean", "l2"));
  EXPECT_EQ(optima_buffer_ids(buffer, &count), nullptr);
  EXPECT_EQ(count, 0);
}

TEST_F(EmbeddingTest, NoTextsAreNoFloats) {
  optima_buffer* buffer = nullptr;
  must([&](optima_error** err) {
    return optima_embed_texts(session_.get(), nullptr, nullptr, nullptr, 0, &buffer, err);
  });
  const Buffer owned(buffer);
  int64_t count = -1;
  optima_buffer_floats(buffer, &count);
  EXPECT_EQ(count, 0);
}

TEST_F(EmbeddingTest, SubmittedRequests) {
  std::vector<Session> sessions;
  std::vector<Request> requests;
  for (const std::string& text : texts_) {
    sessions.push_back(embedding_session(model_));
    auto desc = ask(text.c_str(), 0);
    optima_request* request = nullptr;
    must([&](optima_error** err) {
      return optima_submit(sessions.back().get(), &desc, &request, err);
    });
    requests.emplace_back(request);
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    int32_t done = 0;
    must([&](optima_error** err) {
      return optima_request_wait(requests[i].get(), 10'000, &done, err);
    });
    ASSERT_EQ(done, 1);
    optima_result* result = nullptr;
    must(
        [&](optima_error** err) { return optima_request_result(requests[i].get(), &result, err); });
    expect_near(embedding_of(Result(result)), wanted(i, "mean", "l2"));
  }
}

TEST_F(EmbeddingTest, TheModelSaysHow) {
  auto info = sized<optima_model_info>();
  must([&](optima_error** err) { return optima_model_get_info(model_.get(), &info, err); });
  EXPECT_EQ(info.generates, 0);
  EXPECT_EQ(info.embedding_width, info.hidden);
  EXPECT_EQ(info.pooling, OPTIMA_POOLING_MEAN);
  EXPECT_EQ(info.normalise, OPTIMA_NORMALISE_L2);
  const Model decoder = open_tiny(engine_);
  must([&](optima_error** err) { return optima_model_get_info(decoder.get(), &info, err); });
  EXPECT_EQ(info.generates, 1);
  EXPECT_EQ(info.pooling, OPTIMA_POOLING_LAST);
  EXPECT_EQ(info.normalise, OPTIMA_NORMALISE_OFF);
}

TEST_F(EmbeddingTest, EncodersDoNotGenerate) {
  optima_session* session = nullptr;
  const Outcome outcome = outcome_of([&](optima_error** err) {
    return optima_session_create(model_.get(), nullptr, &session, err);
  });
  EXPECT_EQ(outcome.status, OPTIMA_E_UNSUPPORTED);
  EXPECT_EQ(session, nullptr);
  EXPECT_NE(outcome.message().find("encoder"), std::string::npos) << outcome.message();
}

TEST_F(EmbeddingTest, SessionsDoOneThing) {
  const auto desc = ask("a ship", 0);
  const Outcome generated = outcome_of(
      [&](optima_error** err) { return optima_generate(session_.get(), &desc, nullptr, err); });
  EXPECT_EQ(generated.status, OPTIMA_E_STATE) << generated.message();
  const Model decoder = open_tiny(engine_);
  const Session generating = make_session(decoder);
  const Outcome embedded = outcome_of(
      [&](optima_error** err) { return optima_embed(generating.get(), &desc, nullptr, err); });
  EXPECT_EQ(embedded.status, OPTIMA_E_STATE) << embedded.message();
  generate(generating, ask("a ship", 1));
}

TEST_F(EmbeddingTest, WhatHasNoUseIsRefused) {
  struct Row {
    const char* what;
    void (*spoil)(optima_request_desc&);
    optima_status status;
  };
  static const int64_t position = 0;
  static const int32_t token = 1;
  static const char* const stop = "x";
  static float logits[1024];
  const Row rows[] = {
      {"max_tokens", [](auto& d) { d.max_tokens = 1; }, OPTIMA_E_ARG},
      {"append", [](auto& d) { d.flags = OPTIMA_REQUEST_APPEND; }, OPTIMA_E_ARG},
      {"prompt_only", [](auto& d) { d.flags = OPTIMA_REQUEST_PROMPT_ONLY; }, OPTIMA_E_ARG},
      {"logprobs", [](auto& d) { d.flags = OPTIMA_REQUEST_PROMPT_LOGPROBS; }, OPTIMA_E_ARG},
      {"grammar", [](auto& d) { d.grammar_kind = OPTIMA_GRAMMAR_JSON; }, OPTIMA_E_ARG},
      {"stops",
       [](auto& d) {
         d.stops = &stop;
         d.stop_count = 1;
       },
       OPTIMA_E_ARG},
      {"stop_tokens",
       [](auto& d) {
         d.stop_tokens = &token;
         d.stop_token_count = 1;
       },
       OPTIMA_E_ARG},
      {"logits",
       [](auto& d) {
         d.logits_positions = &position;
         d.logits_position_count = 1;
         d.logits_out = logits;
         d.logits_capacity = 1024;
       },
       OPTIMA_E_ARG},
      {"pooling", [](auto& d) { d.pooling = 4; }, OPTIMA_E_UNSUPPORTED},
      {"pooling", [](auto& d) { d.pooling = -1; }, OPTIMA_E_UNSUPPORTED},
      {"normalise", [](auto& d) { d.normalise = 3; }, OPTIMA_E_UNSUPPORTED},
  };
  for (const Row& row : rows) {
    auto desc = ask("a ship", 0);
    row.spoil(desc);
    const Outcome outcome = outcome_of(
        [&](optima_error** err) { return optima_embed(session_.get(), &desc, nullptr, err); });
    EXPECT_EQ(outcome.status, row.status) << row.what << ": " << outcome.message();
  }
  embed(session_, ask("a ship", 0));
}

TEST_F(EmbeddingTest, PoolingBelongsToEmbeddings) {
  const Model decoder = open_tiny(engine_);
  const Session generating = make_session(decoder);
  auto desc = ask("a ship", 1);
  desc.pooling = OPTIMA_POOLING_MEAN;
  const Outcome outcome = outcome_of(
      [&](optima_error** err) { return optima_generate(generating.get(), &desc, nullptr, err); });
  EXPECT_EQ(outcome.status, OPTIMA_E_ARG);
  EXPECT_NE(outcome.message().find("pooling"), std::string::npos) << outcome.message();
  auto options = sized<optima_session_options>();
  optima_session* none = nullptr;
  options.output = 2;
  EXPECT_EQ(optima_session_create(decoder.get(), &options, &none, nullptr), OPTIMA_E_UNSUPPORTED);
  options.output = 0;
  options.reserved1 = 1;
  EXPECT_EQ(optima_session_create(decoder.get(), &options, &none, nullptr), OPTIMA_E_UNSUPPORTED);
}

TEST_F(EmbeddingTest, TooLongTextsAreNamedWithNumbers) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "a ";
  const auto desc = ask(words.c_str(), 0);
  const Outcome one = outcome_of(
      [&](optima_error** err) { return optima_embed(session_.get(), &desc, nullptr, err); });
  EXPECT_EQ(one.status, OPTIMA_E_CONTEXT_FULL);
  EXPECT_EQ(optima_error_wanted(one.error.get()), 62);
  EXPECT_EQ(optima_error_limit(one.error.get()), 40);
  const char* const texts[] = {"a ship", words.c_str(), "a ship"};
  optima_buffer* buffer = nullptr;
  const Outcome many = outcome_of([&](optima_error** err) {
    return optima_embed_texts(session_.get(), nullptr, texts, nullptr, 3, &buffer, err);
  });
  EXPECT_EQ(many.status, OPTIMA_E_CONTEXT_FULL);
  EXPECT_EQ(buffer, nullptr);
  EXPECT_NE(many.message().find("1 of 3"), std::string::npos) << many.message();
}

TEST_F(EmbeddingTest, BadTexts) {
  optima_buffer* buffer = nullptr;
  const char* const texts[] = {"a", nullptr};
  const size_t huge[] = {1, SIZE_MAX - 1};
  const auto run = [&](const optima_request_desc* desc, const char* const* data,
                       const size_t* bytes, size_t count) {
    return optima_embed_texts(session_.get(), desc, data, bytes, count, &buffer, nullptr);
  };
  EXPECT_EQ(run(nullptr, texts, nullptr, 2), OPTIMA_E_ARG);
  EXPECT_EQ(run(nullptr, nullptr, nullptr, 1), OPTIMA_E_ARG);
  EXPECT_EQ(run(nullptr, texts, nullptr, SIZE_MAX), OPTIMA_E_ARG);
  EXPECT_EQ(run(nullptr, texts, huge, 2), OPTIMA_E_ARG);
  auto with_prompt = ask("a", 0);
  EXPECT_EQ(run(&with_prompt, texts, nullptr, 1), OPTIMA_E_ARG);
  auto released = sized<optima_request_desc>();
  int releases = 0;
  released.user = &releases;
  released.release = count_release;
  EXPECT_EQ(run(&released, texts, nullptr, 1), OPTIMA_OK);
  optima_buffer_destroy(buffer);
  EXPECT_EQ(releases, 1);
  EXPECT_EQ(run(&released, texts, nullptr, 2), OPTIMA_E_ARG);
  EXPECT_EQ(releases, 2);
}

TEST_F(EmbeddingTest, CancelIsLatched) {
  optima_cancel* latch = nullptr;
  must([&](optima_error** err) { return optima_cancel_create(&latch, err); });
  const Cancel cancel(latch);
  optima_cancel_trigger(latch);
  auto desc = ask("a ship", 0);
  desc.cancel = latch;
  const Result result = embed(session_, desc);
  EXPECT_EQ(optima_result_finish(result.get()), OPTIMA_FINISH_CANCELLED);
  EXPECT_TRUE(embedding_of(result).empty());
  auto how = sized<optima_request_desc>();
  how.cancel = latch;
  const char* const texts[] = {"a", "b"};
  optima_buffer* buffer = nullptr;
  EXPECT_EQ(optima_embed_texts(session_.get(), &how, texts, nullptr, 2, &buffer, nullptr),
            OPTIMA_E_CANCELLED);
  EXPECT_EQ(buffer, nullptr);
}

TEST_F(EmbeddingTest, KeysFillTheStructs) {
  optima_options* options = nullptr;
  must([&](optima_error** err) {
    return optima_options_create(OPTIMA_OPTIONS_REQUEST, &options, err);
  });
  const Options owned(options);
  const auto set = [&](const char* key, const char* value) {
    return optima_options_set(options, key, OPTIMA_NTS, value, OPTIMA_NTS, nullptr);
  };
  EXPECT_EQ(set("pooling", "cls"), OPTIMA_OK);
  EXPECT_EQ(set("normalise", "l2"), OPTIMA_OK);
  EXPECT_EQ(set("pooling", "max"), OPTIMA_E_ARG);
  EXPECT_EQ(set("prompt", texts_[0].c_str()), OPTIMA_OK);
  const auto* desc = static_cast<const optima_request_desc*>(optima_options_struct(options));
  expect_near(embedding_of(embed(session_, *desc)), wanted(0, "cls", "l2"));
}

}  // namespace
}  // namespace optima_test
