// Model: the file, its tokenizer, its chat template.
#pragma once

#include "optima/cpp/engine.hpp"

namespace optima {
inline namespace OPTIMA_CPP_MODE {

using ModelInfo = optima_model_info;

/// One message of a conversation.
struct Message {
  std::string role;
  std::string content;
};

/// One value of the file's metadata. Lives as long as the model.
struct Metadata {
  MetadataKind kind{};
  std::string_view key;
  std::string_view string;
  std::int64_t integer = 0;
  double real = 0;
  /// Items of an array; 0 for a single value.
  std::int64_t count = 0;
  /// Position among the keys.
  std::int64_t index = 0;
};

/// One tensor of the file. Lives as long as the model.
struct TensorInfo {
  std::string_view name;
  std::string_view type_name;
  /// Innermost (row) length first.
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
};

namespace detail {

inline void append_json(std::string& out, std::string_view text) {
  static const char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

inline std::string to_json(const std::vector<Message>& messages) {
  std::string out = "[";
  for (const Message& message : messages) {
    if (out.size() > 1) out += ',';
    out += "{\"role\":";
    append_json(out, message.role);
    out += ",\"content\":";
    append_json(out, message.content);
    out += '}';
  }
  return out + "]";
}

inline Metadata view(const optima_metadata& from) {
  Metadata value;
  value.kind = static_cast<MetadataKind>(from.kind);
  value.key = view(from.key, from.key_bytes);
  value.string = view(from.string, from.string_bytes);
  value.integer = from.integer;
  value.real = from.real;
  value.count = from.count;
  value.index = from.index;
  return value;
}

// A callback of C around a function that may throw.
struct Progress {
  const ProgressFunction& function;
  Carried carried;

  static std::int32_t call(void* user, float fraction) noexcept {
    auto& self = *static_cast<Progress*>(user);
    return self.carried.run<std::int32_t>(1, [&] { return self.function(fraction) ? 0 : 1; });
  }
};

}  // namespace detail

/// A loaded model: weights, tokenizer, metadata. Read-only; copies are the same model. All members
/// may be called from any thread.
class Model {
 public:
  /// Opens a GGUF file (of a split set any of its files) or a Hugging Face folder.
  static Outcome<Model> open(const Engine& engine, const std::string& path,
                             const ModelOptions& options = {}) {
    return open_by(
        engine, options,
        [&](const optima_model_options* plain, optima_model** out, optima_error** error) {
          return detail::api().model_open_path(engine.get(), path.data(), path.size(), plain, out,
                                               error);
        });
  }

  /// From a part of an open file, whose descriptor stays the caller's. length 0 = to the end.
  static Outcome<Model> open_fd(const Engine& engine, std::int32_t fd, std::int64_t offset = 0,
                                std::int64_t length = 0, const ModelOptions& options = {}) {
    return open_by(
        engine, options,
        [&](const optima_model_options* plain, optima_model** out, optima_error** error) {
          return detail::api().model_open_fd(engine.get(), fd, offset, length, plain, out, error);
        });
  }

  /// From memory that stays valid and unchanged until the model and its sessions are gone.
  static Outcome<Model> open_memory(const Engine& engine, const void* data, std::size_t bytes,
                                    const ModelOptions& options = {}) {
    return open_by(
        engine, options,
        [&](const optima_model_options* plain, optima_model** out, optima_error** error) {
          return detail::api().model_open_memory(engine.get(), data, bytes, plain, out, error);
        });
  }

  /// Sizes and special tokens.
  Outcome<ModelInfo> info() const {
    return detail::query<ModelInfo>([&](ModelInfo* out, optima_error** error) {
      return detail::api().model_get_info(get(), out, error);
    });
  }

  /// Such as "llama"; lives as long as the model, as all views below.
  std::string_view architecture() const { return detail::api().model_architecture(get()); }
  std::string_view name() const { return detail::api().model_name(get()); }
  /// Empty when it has none.
  std::string_view chat_template() const {
    std::int64_t bytes = 0;
    const char* text = detail::api().model_chat_template(get(), &bytes);
    return detail::view(text, bytes);
  }

  /// A metadata value by key; of kind none when there is no such key.
  Outcome<Metadata> metadata(std::string_view key) const {
    return metadata_by([&](optima_metadata* out, optima_error** error) {
      return detail::api().model_metadata_find(get(), key.data(), key.size(), out, error);
    });
  }
  /// The index-th key, in the file's order, of ModelInfo::metadata_count.
  Outcome<Metadata> metadata_at(std::int64_t index) const {
    return metadata_by([&](optima_metadata* out, optima_error** error) {
      return detail::api().model_metadata_at(get(), index, out, error);
    });
  }
  /// One item of an array.
  Outcome<Metadata> metadata_item(const Metadata& array, std::int64_t item) const {
    return metadata_by([&](optima_metadata* out, optima_error** error) {
      return detail::api().model_metadata_item(get(), array.index, item, out, error);
    });
  }
  /// The index-th tensor, in the file's order, of ModelInfo::tensor_count.
  Outcome<TensorInfo> tensor_at(std::int64_t index) const {
    auto out = detail::sized<optima_tensor_info>();
    return detail::invoke<TensorInfo>(
        [&](optima_error** error) {
          return detail::api().model_tensor_at(get(), index, &out, error);
        },
        [&] {
          return TensorInfo{detail::view(out.name, out.name_bytes), out.type_name,
                            std::vector<std::int64_t>(out.shape, out.shape + out.rank), out.bytes};
        });
  }

  /// A token as the vocabulary writes it; empty for an id out of range.
  std::string_view token_text(std::int32_t token) const {
    std::int64_t bytes = 0;
    const char* text = detail::api().model_token_text(get(), token, &bytes);
    return detail::view(text, bytes);
  }
  TokenKind token_kind(std::int32_t token) const {
    return static_cast<TokenKind>(detail::api().model_token_kind(get(), token));
  }
  /// Whether the token ends a generation.
  bool token_ends(std::int32_t token) const {
    return detail::api().model_token_ends(get(), token) != 0;
  }
  /// Id of the token that the vocabulary writes so, -1 when there is none.
  std::int32_t token_find(std::string_view text) const {
    return detail::api().model_token_find(get(), text.data(), text.size());
  }

  /// Token ids of a text (any bytes); text_flags.
  Outcome<std::vector<std::int32_t>> tokenize(std::string_view text,
                                              std::uint32_t flags = 0) const {
    return detail::read_buffer<std::vector<std::int32_t>>(
        [&](optima_buffer** out, optima_error** error) {
          return detail::api().model_tokenize(get(), text.data(), text.size(), flags, out, error);
        },
        detail::ids_of);
  }

  /// Bytes of token ids; text_flags.
  Outcome<std::string> detokenize(const std::vector<std::int32_t>& ids,
                                  std::uint32_t flags = 0) const {
    return detail::read_buffer<std::string>(
        [&](optima_buffer** out, optima_error** error) {
          return detail::api().model_detokenize(get(), ids.data(), ids.size(), flags, out, error);
        },
        detail::text_of);
  }

  /// Writes the conversation of ChatOptions::messages_json as a prompt, by the chat template.
  Outcome<std::string> render(const ChatOptions& options) const {
    const optima_chat_desc desc = detail::to_c(options);
    return detail::read_buffer<std::string>(
        [&](optima_buffer** out, optima_error** error) {
          return detail::api().model_render(get(), &desc, out, error);
        },
        detail::text_of);
  }
  Outcome<std::string> render(const std::vector<Message>& messages,
                              ChatOptions options = {}) const {
    options.messages_json = detail::to_json(messages);
    return render(options);
  }

  optima_model* get() const noexcept { return handle_.get(); }
  const std::shared_ptr<detail::Hub>& hub() const noexcept { return hub_; }

 private:
  Model(std::shared_ptr<detail::Hub> hub, optima_model* handle)
      : hub_(std::move(hub)), handle_(handle, detail::Destroy()) {}

  template <typename Call>
  static Outcome<Model> open_by(const Engine& engine, const ModelOptions& options, Call call) {
    detail::Progress progress{options.progress, {}};
    optima_model_options plain = detail::to_c(options);
    if (options.progress) {
      plain.progress = &detail::Progress::call;
      plain.user = &progress;
    }
    optima_model* handle = nullptr;
    return detail::invoke<Model>(
        [&](optima_error** error) {
          const optima_status status = call(&plain, &handle, error);
          detail::rethrow(progress.carried, error);
          return status;
        },
        [&] { return Model(engine.hub(), handle); });
  }

  template <typename Call>
  static Outcome<Metadata> metadata_by(Call call) {
    auto out = detail::sized<optima_metadata>();
    return detail::invoke<Metadata>([&](optima_error** error) { return call(&out, error); },
                                    [&] { return detail::view(out); });
  }

  std::shared_ptr<detail::Hub> hub_;
  std::shared_ptr<optima_model> handle_;
};

}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
