// Opening from all four kinds of source, loading that is cancelled or fails, and what a model says
// about itself, its tokens and its text.
#include <fcntl.h>
#include <unistd.h>

#include <functional>

#include "fixture.h"

namespace optima_test {
namespace {

const char* const kFile = "llama-f32.gguf";

optima_model_info info_of(const Model& model) {
  auto info = sized<optima_model_info>();
  must([&](optima_error** err) { return optima_model_get_info(model.get(), &info, err); });
  return info;
}

// A file in memory behind read callbacks that can be told to fail.
struct FakeFile {
  std::string bytes = read_file(tiny_path(kFile));
  int64_t fail_after = INT64_MAX;
  int reads = 0;
  int released = 0;

  optima_io io() {
    auto io = sized<optima_io>();
    io.length = static_cast<int64_t>(bytes.size());
    io.user = this;
    io.read = [](void* user, void* into, int64_t offset, int64_t count) -> int32_t {
      auto& file = *static_cast<FakeFile*>(user);
      ++file.reads;
      if (offset + count > file.fail_after) return 1;
      if (offset < 0 || offset + count > static_cast<int64_t>(file.bytes.size())) return 2;
      std::memcpy(into, file.bytes.data() + offset, static_cast<size_t>(count));
      return 0;
    };
    io.release = [](void* user) { ++static_cast<FakeFile*>(user)->released; };
    return io;
  }
};

class ModelTest : public testing::Test {
 protected:
  Outcome open(const std::function<optima_status(optima_model**, optima_error**)>& call) {
    optima_model* model = nullptr;
    Outcome outcome = outcome_of([&](optima_error** err) { return call(&model, err); });
    EXPECT_EQ(model != nullptr, outcome.status == OPTIMA_OK) << outcome.message();
    model_.reset(model);
    return outcome;
  }
  Outcome open_memory(const std::string& bytes, const optima_model_options* options = nullptr) {
    return open([&](optima_model** out, optima_error** err) {
      return optima_model_open_memory(engine_.get(), bytes.data(), bytes.size(), options, out, err);
    });
  }
  void expect_tiny() {
    ASSERT_NE(model_, nullptr);
    const auto info = info_of(model_);
    EXPECT_EQ(info.vocabulary, tiny_golden()["vocabulary"].get<int>());
    EXPECT_EQ(info.has_tokenizer, 1);
    EXPECT_EQ(info.file_bytes, static_cast<int64_t>(read_file(tiny_path(kFile)).size()));
    EXPECT_GT(info.layers, 0);
    EXPECT_GT(info.tensor_count, 0);
    EXPECT_GT(info.load_ns, 0);
  }

  Engine engine_ = make_engine();
  Model model_;
};

TEST_F(ModelTest, FourSources) {
  model_ = open_tiny(engine_, kFile);
  expect_tiny();

  const std::string bytes = read_file(tiny_path(kFile));
  EXPECT_EQ(open_memory(bytes).status, OPTIMA_OK);
  expect_tiny();

  char path[] = "/tmp/optima_model_test_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  unlink(path);
  const std::string before(4096, 'x');
  const std::string framed = before + bytes + "after";
  ASSERT_EQ(write(fd, framed.data(), framed.size()), static_cast<ssize_t>(framed.size()));
  const auto opened = open([&](optima_model** out, optima_error** err) {
    return optima_model_open_fd(engine_.get(), fd, 4096, static_cast<int64_t>(bytes.size()),
                                nullptr, out, err);
  });
  close(fd);  // The library has its own.
  EXPECT_EQ(opened.status, OPTIMA_OK) << opened.message();
  expect_tiny();

  FakeFile file;
  const optima_io io = file.io();
  const auto read = open([&](optima_model** out, optima_error** err) {
    return optima_model_open_io(engine_.get(), &io, nullptr, out, err);
  });
  EXPECT_EQ(read.status, OPTIMA_OK) << read.message();
  EXPECT_EQ(file.released, 1);
  EXPECT_GT(file.reads, 0);
  expect_tiny();
}

TEST_F(ModelTest, BadSources) {
  const auto path = [&](const char* name) {
    return open([&](optima_model** out, optima_error** err) {
      return optima_model_open_path(engine_.get(), name, OPTIMA_NTS, nullptr, out, err);
    });
  };
  const Outcome missing = path("/nowhere/model.gguf");
  EXPECT_EQ(missing.status, OPTIMA_E_IO);
  EXPECT_NE(missing.message().find("/nowhere/model.gguf"), std::string::npos);
  EXPECT_EQ(path("").status, OPTIMA_E_ARG);
  EXPECT_EQ(open_memory("").status, OPTIMA_E_ARG);
  EXPECT_EQ(open_memory("GGUF").status, OPTIMA_E_FORMAT);
  const std::string bytes = read_file(tiny_path(kFile));
  EXPECT_EQ(open_memory(bytes.substr(0, bytes.size() / 2)).status, OPTIMA_E_FORMAT);
  const auto bad_fd = open([&](optima_model** out, optima_error** err) {
    return optima_model_open_fd(engine_.get(), 10'000, 0, 0, nullptr, out, err);
  });
  EXPECT_EQ(bad_fd.status, OPTIMA_E_IO);
  for (const auto& [fd, offset, length] :
       {std::tuple{-1, 0, 0}, std::tuple{0, -1, 0}, std::tuple{0, 0, -1}}) {
    optima_model* model = nullptr;
    EXPECT_EQ(optima_model_open_fd(engine_.get(), fd, offset, length, nullptr, &model, nullptr),
              OPTIMA_E_ARG);
  }
  FakeFile broken;
  broken.fail_after = 1000;
  const optima_io io = broken.io();
  const auto unread = open([&](optima_model** out, optima_error** err) {
    return optima_model_open_io(engine_.get(), &io, nullptr, out, err);
  });
  EXPECT_EQ(unread.status, OPTIMA_E_IO) << unread.message();
  EXPECT_EQ(broken.released, 1);
  // A failed load leaves nothing behind.
  EXPECT_EQ(open_memory(bytes).status, OPTIMA_OK);
}

TEST_F(ModelTest, ProgressRisesAndCancels) {
  struct Progress {
    std::vector<float> fractions;
    size_t cancel_at = SIZE_MAX;
    int released = 0;
  } progress;
  auto options = sized<optima_model_options>();
  options.user = &progress;
  options.progress = [](void* user, float fraction) -> int32_t {
    auto& p = *static_cast<Progress*>(user);
    p.fractions.push_back(fraction);
    return p.fractions.size() >= p.cancel_at ? 1 : 0;
  };
  options.release = [](void* user) { ++static_cast<Progress*>(user)->released; };
  const std::string bytes = read_file(tiny_path(kFile));
  EXPECT_EQ(open_memory(bytes, &options).status, OPTIMA_OK);
  ASSERT_FALSE(progress.fractions.empty());
  EXPECT_TRUE(std::is_sorted(progress.fractions.begin(), progress.fractions.end()));
  EXPECT_FLOAT_EQ(progress.fractions.back(), 1.0f);
  EXPECT_EQ(progress.released, 1);
  progress.cancel_at = progress.fractions.size() + 1;
  EXPECT_EQ(open_memory(bytes, &options).status, OPTIMA_E_CANCELLED);
  EXPECT_EQ(progress.released, 2);
}

TEST_F(ModelTest, AProgressCallbackThatThrowsCancels) {
  auto options = sized<optima_model_options>();
  options.progress = [](void*, float) -> int32_t { throw 1; };
  EXPECT_EQ(open_memory(read_file(tiny_path(kFile)), &options).status, OPTIMA_E_CANCELLED);
}

TEST_F(ModelTest, VocabularyOnlyCannotRun) {
  auto options = sized<optima_model_options>();
  options.content = OPTIMA_CONTENT_VOCABULARY;
  const std::string bytes = read_file(tiny_path(kFile));
  ASSERT_EQ(open_memory(bytes, &options).status, OPTIMA_OK);
  EXPECT_EQ(info_of(model_).layers, 0);
  EXPECT_EQ(info_of(model_).vocabulary, tiny_golden()["vocabulary"].get<int>());
  optima_session* session = nullptr;
  EXPECT_EQ(optima_session_create(model_.get(), nullptr, &session, nullptr), OPTIMA_E_STATE);
}

TEST_F(ModelTest, MetadataByKeyIndexAndItem) {
  model_ = open_tiny(engine_, kFile);
  EXPECT_STREQ(optima_model_architecture(model_.get()), "llama");
  const auto find = [&](const char* key) {
    auto out = sized<optima_metadata>();
    must([&](optima_error** err) {
      return optima_model_metadata_find(model_.get(), key, OPTIMA_NTS, &out, err);
    });
    return out;
  };
  const auto architecture = find("general.architecture");
  ASSERT_EQ(architecture.kind, OPTIMA_METADATA_STRING);
  EXPECT_EQ(std::string(architecture.string, static_cast<size_t>(architecture.string_bytes)),
            "llama");
  EXPECT_EQ(find("no.such.key").kind, OPTIMA_METADATA_NONE);
  EXPECT_EQ(find("llama.block_count").integer, info_of(model_).layers);

  const auto tokens = find("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.kind, OPTIMA_METADATA_STRINGS);
  EXPECT_EQ(tokens.count, info_of(model_).vocabulary);
  auto item = sized<optima_metadata>();
  must([&](optima_error** err) {
    return optima_model_metadata_item(model_.get(), tokens.index, 0, &item, err);
  });
  ASSERT_EQ(item.kind, OPTIMA_METADATA_STRING);
  int64_t bytes = 0;
  const char* first = optima_model_token_text(model_.get(), 0, &bytes);
  EXPECT_EQ(std::string(item.string, static_cast<size_t>(item.string_bytes)),
            std::string(first, static_cast<size_t>(bytes)));
  EXPECT_EQ(optima_model_metadata_item(model_.get(), tokens.index, tokens.count, &item, nullptr),
            OPTIMA_E_ARG);
  EXPECT_EQ(optima_model_metadata_item(model_.get(), architecture.index, 0, &item, nullptr),
            OPTIMA_E_ARG);

  const int64_t count = info_of(model_).metadata_count;
  for (int64_t i = 0; i < count; ++i) {
    auto at = sized<optima_metadata>();
    must([&](optima_error** err) { return optima_model_metadata_at(model_.get(), i, &at, err); });
    EXPECT_EQ(at.index, i);
    EXPECT_NE(at.kind, OPTIMA_METADATA_NONE);
  }
  auto at = sized<optima_metadata>();
  EXPECT_EQ(optima_model_metadata_at(model_.get(), count, &at, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(optima_model_metadata_at(model_.get(), -1, &at, nullptr), OPTIMA_E_ARG);
}

TEST_F(ModelTest, Tensors) {
  model_ = open_tiny(engine_, kFile);
  const auto info = info_of(model_);
  bool embedding = false;
  for (int64_t i = 0; i < info.tensor_count; ++i) {
    auto tensor = sized<optima_tensor_info>();
    must([&](optima_error** err) { return optima_model_tensor_at(model_.get(), i, &tensor, err); });
    const int64_t values = tensor.shape[0] * tensor.shape[1] * tensor.shape[2] * tensor.shape[3];
    EXPECT_STREQ(tensor.type_name, "F32");
    EXPECT_EQ(tensor.bytes, 4 * values);
    if (std::string(tensor.name, static_cast<size_t>(tensor.name_bytes)) == "token_embd.weight") {
      embedding = true;
      EXPECT_EQ(tensor.rank, 2);
      EXPECT_EQ(tensor.shape[0], info.hidden);
      EXPECT_EQ(tensor.shape[1], info.vocabulary);
    }
  }
  EXPECT_TRUE(embedding);
}

TEST_F(ModelTest, TokensAndText) {
  model_ = open_tiny(engine_, kFile);
  const auto golden = tiny_golden();
  const std::string prompt = golden["prompt"];
  const auto wanted = golden["prompt_ids"].get<std::vector<int32_t>>();
  optima_buffer* ids_buffer = nullptr;
  must([&](optima_error** err) {
    return optima_model_tokenize(model_.get(), prompt.data(), prompt.size(), 0, &ids_buffer, err);
  });
  const Buffer ids(ids_buffer);
  int64_t count = 0;
  const int32_t* data = optima_buffer_ids(ids.get(), &count);
  EXPECT_EQ(std::vector<int32_t>(data, data + count), wanted);
  EXPECT_EQ(optima_buffer_text(ids.get(), &count), nullptr);
  EXPECT_EQ(count, 0);

  optima_buffer* text_buffer = nullptr;
  must([&](optima_error** err) {
    return optima_model_detokenize(model_.get(), wanted.data(), wanted.size(), 0, &text_buffer,
                                   err);
  });
  const Buffer text(text_buffer);
  int64_t bytes = 0;
  const char* characters = optima_buffer_text(text.get(), &bytes);
  EXPECT_EQ(std::string(characters, static_cast<size_t>(bytes)), prompt);
  EXPECT_EQ(characters[bytes], '\0');

  const int32_t outside[] = {1 << 20};
  optima_buffer* none = nullptr;
  EXPECT_EQ(optima_model_detokenize(model_.get(), outside, 1, 0, &none, nullptr), OPTIMA_E_ARG);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(optima_model_tokenize(model_.get(), "x", 1, 1u << 20, &none, nullptr),
            OPTIMA_E_UNSUPPORTED);

  const auto info = info_of(model_);
  EXPECT_EQ(optima_model_token_text(model_.get(), info.vocabulary, &bytes), nullptr);
  EXPECT_EQ(optima_model_token_text(model_.get(), -1, &bytes), nullptr);
  EXPECT_EQ(optima_model_token_kind(model_.get(), -1), 0);
  EXPECT_EQ(optima_model_token_ends(model_.get(), info.vocabulary), 0);
  if (info.eos >= 0) {
    EXPECT_EQ(optima_model_token_ends(model_.get(), info.eos), 1);
    const char* name = optima_model_token_text(model_.get(), info.eos, &bytes);
    EXPECT_EQ(optima_model_token_find(model_.get(), name, static_cast<size_t>(bytes)), info.eos);
    EXPECT_EQ(optima_model_token_kind(model_.get(), info.eos), OPTIMA_TOKEN_CONTROL);
  }
  EXPECT_EQ(optima_model_token_find(model_.get(), "no such token", OPTIMA_NTS), -1);
}

TEST_F(ModelTest, ChatTemplate) {
  model_ = open_tiny(engine_, kFile);
  auto desc = sized<optima_chat_desc>();
  desc.messages_json = R"([{"role": "user", "content": "hi"}])";
  desc.messages_json_bytes = OPTIMA_NTS;
  desc.template_source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<a>{% endif %}";
  desc.template_source_bytes = OPTIMA_NTS;
  const auto render = [&](std::string& text) {
    optima_buffer* buffer = nullptr;
    Outcome outcome = outcome_of(
        [&](optima_error** err) { return optima_model_render(model_.get(), &desc, &buffer, err); });
    const Buffer owned(buffer);
    if (buffer != nullptr) text = optima_buffer_text(buffer, nullptr);
    return outcome;
  };
  std::string text;
  ASSERT_EQ(render(text).status, OPTIMA_OK) << render(text).message();
  EXPECT_EQ(text, "<user>hi<a>");
  desc.flags = OPTIMA_CHAT_NO_GENERATION_PROMPT;
  ASSERT_EQ(render(text).status, OPTIMA_OK);
  EXPECT_EQ(text, "<user>hi");
  desc.messages_json = "[{";
  EXPECT_EQ(render(text).status, OPTIMA_E_ARG);
  desc.messages_json = "[]";
  desc.template_source = "{% if %}";
  EXPECT_EQ(render(text).status, OPTIMA_E_ARG);
  desc.template_source = nullptr;
  EXPECT_EQ(render(text).status, OPTIMA_E_ARG) << "NULL with OPTIMA_NTS";
}

}  // namespace
}  // namespace optima_test
