// A copy of a model's folder with one thing changed: a key of config.json, a tensor zeroed, or a
// prefix taken off the names of tensors.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace optima::engine {

// Sets a key at a dotted path, or removes it when the value is null.
inline void set_at(nlohmann::json& config, const std::string& path, const nlohmann::json& value) {
  nlohmann::json* at = &config;
  size_t begin = 0;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    at = &(*at)[path.substr(begin, dot - begin)];
    begin = dot + 1;
  }
  if (value.is_null()) {
    at->erase(path.substr(begin));
  } else {
    (*at)[path.substr(begin)] = value;
  }
}

// Removed at the end.
class ChangedFolder {
 public:
  ChangedFolder(const std::filesystem::path& folder, const nlohmann::json& mutation)
      : path_(std::filesystem::temp_directory_path() /
              (folder.filename().string() + std::to_string(::getpid()) + "_" +
               std::to_string(count_++))) {
    std::filesystem::create_directory(path_);
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() != ".gguf" && entry.path().extension() != ".bin")
        std::filesystem::copy(entry.path(), path_ / entry.path().filename());
    if (mutation.contains("config")) change_config(mutation["config"]);
    if (mutation.contains("tensor"))
      scale_tensor(mutation["tensor"], mutation["scale"].get<double>());
    if (mutation.contains("strip")) strip_names(mutation["strip"]);
  }
  ~ChangedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  void change_config(const nlohmann::json& changes) const {
    std::ifstream in(path_ / "config.json");
    nlohmann::json config = nlohmann::json::parse(in);
    in.close();
    for (const auto& [key, value] : changes.items()) set_at(config, key, value);
    std::ofstream(path_ / "config.json") << config;
  }

  void scale_tensor(const std::string& tensor, double scale) const {
    ASSERT_EQ(scale, 0) << "zeroes alone need no knowledge of the type";
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() != ".safetensors") continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      uint64_t bytes = 0;
      file.read(reinterpret_cast<char*>(&bytes), sizeof bytes);
      std::string header(bytes, '\0');
      file.read(header.data(), static_cast<std::streamsize>(bytes));
      const auto json = nlohmann::json::parse(header);
      if (!json.contains(tensor)) continue;
      const auto offsets = json[tensor]["data_offsets"].get<std::vector<uint64_t>>();
      const std::string zeroes(offsets[1] - offsets[0], '\0');
      file.seekp(static_cast<std::streamoff>(sizeof bytes + bytes + offsets[0]));
      file << zeroes;
      return;
    }
    FAIL() << "no tensor " << tensor;
  }

  void strip_names(const std::string& prefix) const {
    std::ifstream in(path_ / "model.safetensors", std::ios::binary);
    uint64_t bytes = 0;
    in.read(reinterpret_cast<char*>(&bytes), sizeof bytes);
    std::string header(bytes, '\0');
    in.read(header.data(), static_cast<std::streamsize>(bytes));
    const std::string data((std::istreambuf_iterator<char>(in)), {});
    in.close();
    auto renamed = nlohmann::json::object();
    const auto named = nlohmann::json::parse(header);
    for (const auto& [name, entry] : named.items())
      renamed[name.starts_with(prefix) ? name.substr(prefix.size()) : name] = entry;
    header = renamed.dump();
    header.append((8 - header.size() % 8) % 8, ' ');
    bytes = header.size();
    std::ofstream out(path_ / "model.safetensors", std::ios::binary);
    out.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    out << header << data;
  }

  static inline int count_ = 0;
  std::filesystem::path path_;
};

}  // namespace optima::engine
