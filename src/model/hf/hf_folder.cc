// Opens a Hugging Face folder; see hf_folder.h. No name in a file of the folder can lead outside
// it.
#include "model/hf/hf_folder.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "model/arch/arch.h"
#include "model/hf/coded_weights.h"
#include "model/hf/hf_composite.h"
#include "model/hf/hf_config.h"
#include "model/hf/hf_pooling.h"
#include "model/hf/hf_quantisation.h"
#include "model/hf/hf_tensors.h"
#include "model/hf/safetensors.h"

namespace optima::model {
namespace {

constexpr std::string_view kDocuments[] = {"config.json",           "tokenizer.json",
                                           "tokenizer_config.json", "generation_config.json",
                                           "chat_template.jinja",   "special_tokens_map.json",
                                           "tokenizer.model",       "tekken.json"};
constexpr int64_t kDocumentBytesMax = int64_t{256} << 20;
constexpr size_t kShardsMax = 4096;

class FolderReader {
 public:
  FolderReader(const FolderFiles& files, Allocator& allocator, const OpenOptions& options)
      : files_(files), allocator_(allocator), options_(options) {}

  Result<std::unique_ptr<ModelFile>> read() {
    parts_.format = FileFormat::hugging_face;
    parts_.name = files_.place();
    OPTIMA_TRY(report(0.0f));
    OPTIMA_TRY(read_documents());
    OPTIMA_TRY(read_config());
    OPTIMA_TRY(read_chat_template());
    OPTIMA_TRY(read_pooling());
    if (options_.content == FileContent::full) OPTIMA_TRY(read_weights());
    OPTIMA_TRY(report(1.0f));
    return ModelFile::create(std::move(parts_));
  }

 private:
  Status report(float fraction) const {
    if (!options_.progress || options_.progress(fraction)) return {};
    return Status(Code::cancelled,
                  text("the progress callback cancelled the load of ", files_.place()));
  }

  Result<std::span<const std::byte>> map(std::string_view name, const Progress& progress = {}) {
    OPTIMA_ASSIGN(std::unique_ptr<Bytes> bytes, files_.open(name, allocator_, progress));
    parts_.files.push_back(std::move(bytes));
    return parts_.files.back()->view();
  }

  Status read_documents() {
    for (const std::string_view name : kDocuments)
      if (files_.has(name)) OPTIMA_TRY(read_document(name));
    return {};
  }

  Status read_document(std::string_view name) {
    OPTIMA_ASSIGN(const std::span<const std::byte> bytes, map(name));
    if (static_cast<int64_t>(bytes.size()) > kDocumentBytesMax)
      return Status(Code::format,
                    text(name, " has ", bytes.size(), " bytes, the limit is ", kDocumentBytesMax));
    parts_.documents.emplace(
        name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return {};
  }

  Result<json::Value> parse(std::string_view name) const {
    const auto document = parts_.documents.find(name);
    if (document == parts_.documents.end())
      return Status(Code::format, text("no ", name, " in the folder"));
    Result<json::Value> value = json::parse(document->second);
    if (!value.ok()) return Status(Code::format, text(name, ": ", value.status().message()));
    return value;
  }

  Status read_config() {
    OPTIMA_ASSIGN(const json::Value root, parse("config.json"));
    const HfConfig config(root);
    OPTIMA_ASSIGN(const auto type, config.string("model_type"));
    if (!type) return Status(Code::format, "config.json: 'model_type' is missing");
    OPTIMA_TRY(add_general("general.name", files_.name()));
    if (options_.content == FileContent::vocabulary)
      return add_general("general.architecture", *type);
    composite_ = find_hf_composite(*type);
    return composite_ != nullptr ? read_composite(config) : read_options(config, *type);
  }

  // A model of texts and more: the options of its text part are an object of their own.
  Status read_composite(const HfConfig& root) {
    const json::Value* options = root.find("text_config");
    if (options == nullptr || options->object() == nullptr)
      return Status(Code::format, "config.json: 'text_config' is no object of options");
    OPTIMA_ASSIGN(const auto given, HfConfig(*options).string("model_type"));
    const std::string type = given.value_or(std::string(composite_->text_type));
    OPTIMA_ASSIGN(const json::Value defaults, json::parse(hf_text_defaults(type)));
    const HfConfig config(*options, &defaults);
    Status status = read_options(config, type);
    if (!status.ok()) return std::move(status).in("text_config");
    OPTIMA_ASSIGN(const auto tied, root.boolean("tie_word_embeddings"));
    if (tied) tied_ = *tied || tied_.value_or(false);
    if (!quantisation_.coded) {
      OPTIMA_ASSIGN(quantisation_, read_hf_quantisation(root));
    }
    return check_composite_keys(root);
  }

  Status read_options(const HfConfig& config, const std::string& type) {
    form_ = find_hf_form(type);
    if (form_ == nullptr)
      return Status(Code::unsupported,
                    text("model_type ", in_quotes(type), " is not known; known are ",
                         hf_model_types(), ", and the text parts of ", hf_composite_types()));
    OPTIMA_TRY(add_general("general.architecture", form_->architecture));
    OPTIMA_TRY(check_layers(config));
    MetadataWriter out(parts_, form_->architecture);
    OPTIMA_TRY(form_->translate(config, out));
    OPTIMA_ASSIGN(quantisation_, read_hf_quantisation(config));
    OPTIMA_ASSIGN(tied_, config.boolean("tie_word_embeddings"));
    OPTIMA_TRY(config.all_read());
    OPTIMA_ASSIGN(const auto heads, config.integer("num_attention_heads"));
    heads_ = heads.value_or(0);
    return {};
  }

  // Before anything is as long as there are layers.
  static Status check_layers(const HfConfig& config) {
    constexpr int64_t kLayersMax = 1024;
    for (const char* key : {"num_hidden_layers", "n_layer"}) {
      OPTIMA_ASSIGN(const auto layers, config.integer(key));
      if (layers && (*layers < 1 || *layers > kLayersMax))
        return Status(
            Code::format,
            text("config.json: '", key, "' is ", *layers, ", allowed are 1 to ", kLayersMax),
            {*layers, -1, kLayersMax});
    }
    return {};
  }

  Status add_general(std::string_view key, std::string_view value) {
    parts_.strings.emplace_back(value);
    return parts_.metadata.insert(key, {std::string_view(parts_.strings.back())});
  }

  // A file of its own comes before the one in tokenizer_config.json, which may hold several.
  Status read_chat_template() {
    const auto file = parts_.documents.find("chat_template.jinja");
    if (file != parts_.documents.end())
      return parts_.metadata.insert("tokenizer.chat_template", {file->second});
    if (parts_.documents.find("tokenizer_config.json") == parts_.documents.end()) return {};
    OPTIMA_ASSIGN(const json::Value config, parse("tokenizer_config.json"));
    const json::Value* value = config.find("chat_template");
    if (value == nullptr) return {};
    if (value->string() != nullptr) return add_general("tokenizer.chat_template", *value->string());
    if (value->array() == nullptr) return {};
    for (const json::Value& entry : *value->array()) {
      const json::Value* name = entry.find("name");
      const json::Value* body = entry.find("template");
      if (name != nullptr && body != nullptr && name->string() != nullptr &&
          body->string() != nullptr && *name->string() == "default")
        return add_general("tokenizer.chat_template", *body->string());
    }
    return {};
  }

  // Folders of sentence-transformers have a modules.json and a folder for each module.
  Status read_pooling() {
    constexpr std::string_view kModules = "modules.json";
    if (form_ == nullptr || !files_.has(kModules)) return {};
    OPTIMA_TRY(read_document(kModules));
    OPTIMA_ASSIGN(const json::Value list, parse(kModules));
    OPTIMA_ASSIGN(const PoolingModules modules, read_modules(list));
    MetadataWriter out(parts_, form_->architecture);
    OPTIMA_TRY(out.flag("embedding.normalise", modules.normalises));
    if (modules.pooling_folder.empty()) return {};
    const std::string name = modules.pooling_folder + "/config.json";
    OPTIMA_TRY(read_document(name));
    OPTIMA_ASSIGN(const json::Value config, parse(name));
    return translate_pooling(config, out);
  }

  // The shard of each tensor, from the index.
  Result<std::vector<std::string>> shard_names() {
    constexpr std::string_view kIndex = "model.safetensors.index.json";
    if (!files_.has(kIndex)) {
      if (files_.has("model.safetensors")) return std::vector<std::string>{"model.safetensors"};
      return Status(Code::format, text("neither model.safetensors nor ", kIndex, " in the folder"));
    }
    OPTIMA_ASSIGN(const std::span<const std::byte> bytes, map(kIndex));
    Result<json::Value> index =
        json::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    if (!index.ok()) return Status(Code::format, text(kIndex, ": ", index.status().message()));
    const json::Value* map = index->find("weight_map");
    if (map == nullptr || map->object() == nullptr)
      return Status(Code::format, text(kIndex, ": 'weight_map' is no object"));
    std::set<std::string> names;
    for (const json::Member& entry : *map->object()) {
      const std::string* name = entry.value.string();
      if (name == nullptr || name->empty() || name->find('/') != std::string::npos ||
          name->find('\0') != std::string::npos || *name == "." || *name == "..")
        return Status(Code::format, text(kIndex, ": the file of tensor ", in_quotes(entry.key),
                                         " is ", in_quotes(name != nullptr ? *name : ""),
                                         ", no name of a file in the folder"));
      names.insert(*name);
      shard_of_.emplace(entry.key, *name);
    }
    if (names.empty() || names.size() > kShardsMax)
      return Status(Code::format,
                    text(kIndex, ": ", names.size(), " files, allowed are 1 to ", kShardsMax));
    return std::vector<std::string>(names.begin(), names.end());
  }

  // `progress` hears of bytes that are read; mapping takes no time.
  Status read_shard(const std::string& name, const Progress& progress,
                    std::vector<SafeTensor>& tensors) {
    OPTIMA_ASSIGN(const std::span<const std::byte> bytes, map(name, progress));
    Result<std::vector<SafeTensor>> found = parse_safetensors(bytes);
    if (!found.ok()) return found.take_status().in(name);
    for (SafeTensor& tensor : *found) {
      // A tensor in another shard than the index says is a copy that nobody asked for.
      const auto wanted = shard_of_.find(tensor.name);
      if (!shard_of_.empty() && (wanted == shard_of_.end() || wanted->second != name)) continue;
      found_.insert(tensor.name);
      tensors.push_back(std::move(tensor));
    }
    return {};
  }

  Status read_weights() {
    OPTIMA_ASSIGN(const std::vector<std::string> shards, shard_names());
    std::vector<SafeTensor> tensors;
    for (size_t i = 0; i < shards.size(); ++i) {
      const auto progress = [&](float fraction) {
        const float done = (static_cast<float>(i) + fraction) / static_cast<float>(shards.size());
        return fraction <= 0.0f || done >= 1.0f || report(done).ok();
      };
      OPTIMA_TRY(read_shard(shards[i], progress, tensors));
    }
    for (const auto& [tensor, shard] : shard_of_)
      if (found_.find(tensor) == found_.end())
        return Status(Code::format, text("tensor ", in_quotes(tensor), " is not in ",
                                         in_quotes(shard), ", where the index puts it"));
    if (composite_ != nullptr) {
      size_t left_out = 0;
      tensors = take_text_part(std::move(tensors), left_out);
      OPTIMA_TRY(add_general("general.left_out",
                             text("images and sound are not supported: ", left_out, " tensors of ",
                                  composite_->model_type, " are left out, texts are answered")));
    }
    CodedWeights codes(quantisation_, parts_, allocator_);
    OPTIMA_ASSIGN(const std::vector<SafeTensor> weights, codes.decode(tensors, options_));
    HfTensors out(*form_, heads_, parts_, allocator_);
    OPTIMA_TRY(out.add_all(weights));
    return resolve_head();
  }

  // Where config.json says that head and embedding are one, a head in the file is a copy of it.
  Status resolve_head() {
    const auto is_head = [](const Tensor& tensor) { return tensor.name == "output.weight"; };
    const auto head = std::find_if(parts_.tensors.begin(), parts_.tensors.end(), is_head);
    if (tied_ && *tied_ && head != parts_.tensors.end()) parts_.tensors.erase(head);
    if (tied_ && !*tied_ && head == parts_.tensors.end() && has_head())
      return Status(Code::format, "the head's tensor (lm_head.weight) is missing");
    return {};
  }

  // An encoder has none.
  bool has_head() const {
    const auto is_head = [](const HfTensorName& row) { return row.gguf == "output.weight"; };
    return std::any_of(form_->tensors.begin(), form_->tensors.end(), is_head) ||
           std::any_of(form_->shared.begin(), form_->shared.end(), is_head);
  }

  const FolderFiles& files_;
  Allocator& allocator_;
  const OpenOptions& options_;
  ModelFileParts parts_;
  const HfForm* form_ = nullptr;
  const HfComposite* composite_ = nullptr;
  HfQuantisation quantisation_;
  int64_t heads_ = 0;
  std::optional<bool> tied_;
  std::map<std::string, std::string, std::less<>> shard_of_;
  std::set<std::string> found_;
};

}  // namespace

Result<std::unique_ptr<ModelFile>> open_hf_folder(const FolderFiles& files, Allocator& allocator,
                                                  const OpenOptions& options) {
  Result<std::unique_ptr<ModelFile>> file = FolderReader(files, allocator, options).read();
  if (!file.ok()) return file.take_status().in(files.place());
  return file;
}

}  // namespace optima::model
