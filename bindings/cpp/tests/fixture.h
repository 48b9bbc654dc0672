// The tiny models, and what transformers says of them (tests/goldens/tiny), for the tests of the
// C++ binding. They know the library by its public headers alone.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optima/optima.hpp>
#include <string>
#include <vector>

namespace optima_cpp_test {

inline std::string tiny_path(const std::string& file) {
  return std::string(OPTIMA_SOURCE_DIR "/tests/goldens/tiny/") + file;
}

struct Golden {
  explicit Golden(const std::string& model) {
    const auto json = nlohmann::json::parse(std::ifstream(tiny_path(model + ".json")));
    prompt = json["prompt"];
    prompt_ids = json["prompt_ids"].get<std::vector<std::int32_t>>();
    ids = json["continuation_ids"].get<std::vector<std::int32_t>>();
    text = json["continuation"];
  }
  // Greedy, to the golden's length.
  optima::RequestOptions options() const {
    optima::RequestOptions options;
    options.max_tokens = static_cast<std::int64_t>(ids.size());
    options.flags = optima::request_flags::ignore_eos;
    return options;
  }
  std::string prompt;
  std::vector<std::int32_t> prompt_ids;
  std::vector<std::int32_t> ids;
  std::string text;
};

template <typename Item>
std::vector<std::remove_const_t<Item>> to_vector(optima::Slice<Item> slice) {
  return {slice.begin(), slice.end()};
}

inline optima::Engine make_engine(optima::Drive drive = optima::Drive::library) {
  optima::EngineOptions options;
  options.threads = 1;
  options.drive = drive;
  return optima::Engine::create(options);
}

// Whether the bytes are whole UTF-8 code points (as many as their first bytes say).
inline bool is_whole(std::string_view text) {
  std::size_t follow = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) {
      if (follow == 0) return false;
      --follow;
    } else {
      if (follow != 0) return false;
      follow = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
    }
  }
  return follow == 0;
}

class BindingTest : public testing::Test {
 protected:
  const Golden golden_{"gemma3-f32"};
  optima::Engine engine_ = make_engine();
  optima::Model model_ = optima::Model::open(engine_, tiny_path("gemma3-f32.gguf"));
  optima::Session session_ = optima::Session::create(model_);

  std::vector<std::int32_t> golden_ids(optima::Session& session) {
    return to_vector(session.generate(golden_.prompt, golden_.options()).token_ids());
  }
  // An exception, a cancel or a refusal has left the session as good as new.
  void expect_usable() { EXPECT_EQ(golden_ids(session_), golden_.ids); }
};

}  // namespace optima_cpp_test
