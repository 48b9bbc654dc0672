// Text, tokens and what is beside them: the C++ binding says what the goldens say.
#include <cmath>
#include <cstdio>
#include <limits>

#include "fixture.h"

namespace optima_cpp_test {
namespace {

using GenerateTest = BindingTest;

// Makes the model say exactly these tokens.
optima::LogitsFunction force(const std::vector<std::int32_t>& ids, std::size_t prompt_tokens) {
  return [=](optima::Slice<float> logits, optima::Slice<const std::int32_t> tokens) {
    const std::size_t at = tokens.size() - prompt_tokens;
    for (float& logit : logits) logit = -std::numeric_limits<float>::infinity();
    logits[static_cast<std::size_t>(ids[at])] = 0;
  };
}

TEST_F(GenerateTest, SaysWhatTheGoldenSays) {
  std::string streamed;
  std::vector<std::int32_t> ids;
  const auto result =
      session_.generate(golden_.prompt, golden_.options(), [&](const optima::Event& event) {
        streamed += event.text;
        if (event.type == optima::EventType::token) ids.push_back(event.token);
      });
  EXPECT_EQ(ids, golden_.ids);
  EXPECT_EQ(to_vector(result.token_ids()), golden_.ids);
  EXPECT_EQ(to_vector(result.prompt_ids()), golden_.prompt_ids);
  EXPECT_EQ(result.text(), golden_.text);
  EXPECT_EQ(streamed, golden_.text);
  EXPECT_EQ(result.finish(), optima::Finish::length);
  EXPECT_EQ(result.counters().output_tokens, static_cast<std::int64_t>(golden_.ids.size()));
  EXPECT_EQ(to_vector(session_.generate(golden_.prompt_ids, golden_.options()).token_ids()),
            golden_.ids);
  result.require_whole();
}

TEST_F(GenerateTest, TextOverTokensComesInWholeCharacters) {
  const std::string text = u8"\u00e9\u20ac\U0001f600z";
  const auto model = optima::Model::open(engine_, tiny_path("llama-q8_0.gguf"));
  auto session = optima::Session::create(model);
  const auto ids = model.tokenize(text);
  ASSERT_GT(ids.size(), 4u);  // else no character is split
  auto options = golden_.options();
  options.max_tokens = static_cast<std::int64_t>(ids.size());
  options.on_logits = force(ids, model.tokenize("a").size());
  std::string streamed;
  std::string bytes;
  std::size_t split = 0;
  for (const optima::Event& event : session.submit("a", options)) {
    EXPECT_TRUE(is_whole(event.text)) << event.text;
    split += !is_whole(event.bytes);
    streamed += event.text;
    bytes += event.bytes;
  }
  EXPECT_GT(split, 0u);
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(bytes, text);
}

TEST_F(GenerateTest, TokenizesAndBack) {
  EXPECT_EQ(model_.tokenize(golden_.prompt), golden_.prompt_ids);
  EXPECT_EQ(model_.detokenize(golden_.ids), golden_.text);
  const auto info = model_.info();
  EXPECT_EQ(model_.architecture(), "gemma3");
  EXPECT_EQ(info.bos, golden_.prompt_ids.front());
  EXPECT_EQ(model_.metadata("general.architecture").string, "gemma3");
  EXPECT_EQ(model_.metadata("no.such.key").kind, optima::MetadataKind::none);
  EXPECT_EQ(model_.metadata_at(0).index, 0);
  const auto tokens = model_.metadata("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens.count, info.vocabulary);
  EXPECT_EQ(model_.metadata_item(tokens, 287).string, model_.token_text(287));
  EXPECT_EQ(model_.token_find(model_.token_text(287)), 287);
  EXPECT_EQ(model_.token_kind(info.bos), optima::TokenKind::control);
  EXPECT_TRUE(model_.token_ends(info.eos));
  EXPECT_EQ(model_.tensor_at(0).name.substr(0, 10), "token_embd");
}

TEST_F(GenerateTest, AnswersAConversation) {
  const auto model = optima::Model::open(engine_, tiny_path("llama-q8_0.gguf"));
  auto session = optima::Session::create(model);
  const std::string said = "a \"quoted\"\\ line\n\x01";
  // As the file's ChatML template writes it.
  const std::string prompt = "<|im_start|>user\n" + said + "<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(model.render({{"user", said}}), prompt);
  auto options = golden_.options();
  options.max_tokens = 5;
  const auto answered = to_vector(session.chat({{"user", said}}, options).token_ids());
  options.flags |= optima::request_flags::no_add_special;
  EXPECT_EQ(answered, to_vector(session.generate(prompt, options).token_ids()));
}

TEST_F(GenerateTest, ReportsLogitsAndLogprobs) {
  auto options = golden_.options();
  const auto last = static_cast<std::int64_t>(golden_.prompt_ids.size()) - 1;
  options.logits_positions = {last};
  options.logprobs = 2;
  const auto waited = session_.generate(golden_.prompt, options);
  auto request = session_.submit(golden_.prompt, options);
  request.wait();
  const auto submitted = request.result();
  const auto size = static_cast<std::size_t>(model_.info().vocabulary);
  for (const auto* result : {&waited, &submitted}) {
    ASSERT_EQ(result->logits().size(), size);
    const auto best = std::max_element(result->logits().begin(), result->logits().end());
    EXPECT_EQ(best - result->logits().begin(), golden_.ids.front());
    ASSERT_EQ(result->top_logprobs(0).size(), 2u);
    EXPECT_EQ(result->top_logprobs(0)[0].token, golden_.ids.front());
    EXPECT_FLOAT_EQ(result->top_logprobs(0)[0].logprob, result->logprobs()[0]);
  }
}

TEST_F(GenerateTest, StopsAtStrings) {
  auto options = golden_.options();
  options.stops = {"nowhere", "quiet"};
  const auto result = session_.generate(golden_.prompt, options);
  EXPECT_EQ(result.finish(), optima::Finish::stop_string);
  EXPECT_EQ(result.stop_index(), 1);
  EXPECT_EQ(result.text(), golden_.text.substr(0, golden_.text.find("quiet")));
}

TEST_F(GenerateTest, ForksSavesAndRestores) {
  optima::RequestOptions prompt_only;
  prompt_only.flags = optima::request_flags::prompt_only;
  session_.generate(golden_.prompt, prompt_only);
  auto fork = session_.fork();
  auto more = golden_.options();
  more.flags |= optima::request_flags::append;
  EXPECT_EQ(to_vector(fork.generate("", more).token_ids()), golden_.ids);
  EXPECT_EQ(session_.tokens(), golden_.prompt_ids);
  EXPECT_GT(session_.kv().shared_pages, 0);

  const std::string path = testing::TempDir() + "optima_cpp_saved";
  session_.save(path);
  auto restored = optima::Session::restore(model_, path);
  std::remove(path.c_str());
  EXPECT_EQ(to_vector(restored.generate("", more).token_ids()), golden_.ids);
  session_.truncate(3);
  EXPECT_EQ(session_.tokens().size(), 3u);
  session_.reset();
  EXPECT_TRUE(session_.tokens().empty());
  EXPECT_THROW(optima::Session::restore(model_, "/nowhere/saved"), optima::IoError);
}

TEST_F(GenerateTest, Embeds) {
  optima::SessionOptions options;
  options.output = optima::Output::embedding;
  auto session = optima::Session::create(model_, options);
  optima::RequestOptions unit;
  unit.normalise = optima::Normalise::l2;
  const auto one = session.embed(golden_.prompt, unit);
  const auto many = session.embed_texts(std::vector<std::string>{"garden", golden_.prompt}, unit);
  const auto width = static_cast<std::size_t>(model_.info().embedding_width);
  ASSERT_EQ(one.size(), width);
  ASSERT_EQ(many.size(), 2 * width);
  double length = 0;
  double product = 0;
  for (std::size_t i = 0; i < width; ++i) {
    length += double{one[i]} * one[i];
    product += double{one[i]} * many[width + i];
  }
  EXPECT_NEAR(length, 1, 1e-5);
  EXPECT_NEAR(product, 1, 1e-3);  // the same text, in a batch with another
  EXPECT_THROW(session.generate("a"), optima::StateError);
}

TEST_F(GenerateTest, EnginesTellOfThemselves) {
  session_.generate(golden_.prompt, golden_.options());
  EXPECT_EQ(engine_.threads(), 1);
  EXPECT_EQ(engine_.metrics().output_tokens, golden_.ids.size());
  EXPECT_NE(engine_.metrics_text("one").find("engine=\"one\""), std::string::npos);
  EXPECT_GT(engine_.memory().kv_bytes, 0);
  EXPECT_GT(optima::probe().threads, 0);
  EXPECT_EQ(optima::version(), optima_version());
  EXPECT_NE(optima::feature_bits() & optima::features::gguf, 0u);
}

TEST(LogTest, MessagesReachTheFunction) {
  std::string all;
  optima::EngineOptions options;
  options.threads = 1;
  options.log_level = optima::LogLevel::debug;
  options.log = [&](optima::LogLevel, std::string_view message) {
    all += message;
    throw 1;
  };
  {
    const auto engine = optima::Engine::create(options);
    const auto model = optima::Model::open(engine, tiny_path("llama-f32.gguf"));
    optima::Session::create(model).generate("a", Golden("llama-f32").options());
  }
  EXPECT_FALSE(all.empty());
}

}  // namespace
}  // namespace optima_cpp_test
