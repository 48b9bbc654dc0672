// A Hugging Face folder behind read callbacks: the same tokens as the folder on disk has by its
// golden, and every way in which a host's folder can be wrong.
#include <filesystem>
#include <functional>

#include "fixture.h"

namespace optima_test {
namespace {

// The files of a checkpoint in memory, and what the library did with them.
struct FakeFolder {
  explicit FakeFolder(const std::string& checkpoint = "llama") {
    const std::string folder = OPTIMA_SOURCE_DIR "/tests/goldens/arch/" + checkpoint;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string kind = entry.path().extension();
      if (kind == ".json" || kind == ".jinja" || kind == ".safetensors") {
        names.push_back(entry.path().filename());
        files.push_back(read_file(entry.path()));
      }
    }
    golden = nlohmann::json::parse(read_file(folder + "/golden.json"));
  }
  size_t index_of(const std::string& name) const {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  }

  // The struct points into the object.
  optima_folder view() {
    pointers.clear();
    lengths.clear();
    for (const std::string& name : names) pointers.push_back(name.c_str());
    for (const std::string& file : files) lengths.push_back(static_cast<int64_t>(file.size()));
    auto folder = sized<optima_folder>();
    folder.names = pointers.data();
    folder.lengths = lengths.data();
    folder.file_count = files.size();
    folder.user = this;
    folder.read = [](void* user, size_t file, void* into, int64_t offset,
                     int64_t bytes) -> int32_t {
      auto& self = *static_cast<FakeFolder*>(user);
      if (file == self.failing) return 1;
      std::memcpy(into, self.files.at(file).data() + offset, static_cast<size_t>(bytes));
      return 0;
    };
    folder.release = [](void* user) { ++static_cast<FakeFolder*>(user)->released; };
    return folder;
  }

  std::vector<std::string> names, files;
  std::vector<const char*> pointers;
  std::vector<int64_t> lengths;
  nlohmann::json golden;
  size_t failing = SIZE_MAX;
  int released = 0;
};

class FolderTest : public testing::Test {
 protected:
  Outcome open(const optima_folder* folder, const optima_model_options* options = nullptr) {
    optima_model* model = nullptr;
    Outcome outcome = outcome_of([&](optima_error** err) {
      return optima_model_open_folder(engine_.get(), folder, options, &model, err);
    });
    EXPECT_EQ(model != nullptr, outcome.status == OPTIMA_OK) << outcome.message();
    model_.reset(model);
    return outcome;
  }
  void expect_failure(FakeFolder& files, optima_status status, const std::string& part) {
    const optima_folder folder = files.view();
    const int released = files.released;
    const Outcome outcome = open(&folder);
    EXPECT_EQ(outcome.status, status) << outcome.message();
    EXPECT_NE(outcome.message().find(part), std::string::npos) << outcome.message();
    EXPECT_EQ(files.released, released + 1);
  }

  Engine engine_ = make_engine();
  Model model_;
};

TEST_F(FolderTest, GivesTheTokensOfItsGolden) {
  for (const char* checkpoint : {"llama", "llama_llama3", "gpt2"}) {
    SCOPED_TRACE(checkpoint);
    FakeFolder files(checkpoint);
    const optima_folder folder = files.view();
    const Outcome outcome = open(&folder);
    ASSERT_EQ(outcome.status, OPTIMA_OK) << outcome.message();
    EXPECT_EQ(files.released, 1);
    const std::string text = files.golden["text"];
    const auto wanted = files.golden["continuation_ids"].get<std::vector<int32_t>>();
    auto desc = ask(text.c_str(), static_cast<int64_t>(wanted.size()));
    desc.flags = OPTIMA_REQUEST_IGNORE_EOS;
    EXPECT_EQ(token_ids(generate(make_session(model_), desc)), wanted);
  }
}

TEST_F(FolderTest, BadFolders) {
  FakeFolder files;
  expect_failure(files, OPTIMA_OK, "");
  files.failing = files.index_of("model.safetensors");
  expect_failure(files, OPTIMA_E_IO, "model.safetensors");
  files.failing = SIZE_MAX;

  FakeFolder twice;
  twice.names.back() = twice.names.front();
  expect_failure(twice, OPTIMA_E_ARG, twice.names.front());
  FakeFolder nameless;
  nameless.names.back().clear();
  expect_failure(nameless, OPTIMA_E_ARG, "no name");
  FakeFolder without;
  without.names[without.index_of("model.safetensors")] = "elsewhere";
  expect_failure(without, OPTIMA_E_FORMAT, "neither model.safetensors");
  FakeFolder empty;
  empty.files[empty.index_of("config.json")].clear();
  expect_failure(empty, OPTIMA_E_ARG, "config.json");
  FakeFolder cut;
  std::string& weights = cut.files[cut.index_of("model.safetensors")];
  weights.resize(weights.size() / 2);
  expect_failure(cut, OPTIMA_E_FORMAT, "model.safetensors");
}

TEST_F(FolderTest, BadArguments) {
  FakeFolder files;
  const auto with = [&](const std::function<void(optima_folder&)>& spoil) {
    optima_folder folder = files.view();
    spoil(folder);
    return open(&folder);
  };
  EXPECT_EQ(open(nullptr).status, OPTIMA_E_ARG);
  EXPECT_EQ(with([](optima_folder& folder) { folder.read = nullptr; }).status, OPTIMA_E_ARG);
  EXPECT_EQ(with([](optima_folder& folder) { folder.names = nullptr; }).status, OPTIMA_E_ARG);
  EXPECT_EQ(with([](optima_folder& folder) { folder.lengths = nullptr; }).status, OPTIMA_E_ARG);
  EXPECT_EQ(with([](optima_folder& folder) { folder.file_count = SIZE_MAX; }).status, OPTIMA_E_ARG);
  EXPECT_EQ(with([&](optima_folder&) { files.pointers[0] = nullptr; }).status, OPTIMA_E_ARG);
  const Outcome negative = with([&](optima_folder&) { files.lengths[1] = -7; });
  EXPECT_EQ(negative.status, OPTIMA_E_ARG);
  EXPECT_NE(negative.message().find("-7"), std::string::npos) << negative.message();
  EXPECT_EQ(with([](optima_folder& folder) {
              folder.read = [](void*, size_t, void*, int64_t, int64_t) -> int32_t { throw 1; };
            }).status,
            OPTIMA_E_IO);
}

TEST_F(FolderTest, ProgressCancels) {
  FakeFolder files;
  const optima_folder folder = files.view();
  auto options = sized<optima_model_options>();
  options.progress = [](void*, float) -> int32_t { return 1; };
  EXPECT_EQ(open(&folder, &options).status, OPTIMA_E_CANCELLED);
  EXPECT_EQ(files.released, 1);
}

}  // namespace
}  // namespace optima_test
