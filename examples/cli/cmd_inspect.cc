// optima inspect: what a model file holds. A file that this version cannot run (unknown
// architecture, vocabulary only) is shown all the same, with the reason.
#include <charconv>
#include <cstdlib>

#include "cli_util.h"
#include "commands.h"

namespace cli {
namespace {

// A longer array is shown by its length and its first items, unless --all.
constexpr int64_t kItemsShown = 8;

struct Args {
  ModelArgs model;
  bool all = false;
  bool json = false;
};

// Most real values of a file are 32 bits wide: 1e-05 rather than 9.999999747378752e-06.
double shortest(double value) {
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text - 1, narrow);
  *end = 0;
  return error == std::errc() ? std::strtod(text, nullptr) : value;
}

Json single(const optima_metadata& value) {
  switch (value.kind) {
    case OPTIMA_METADATA_INTEGER:
      return value.integer;
    case OPTIMA_METADATA_REAL:
      return shortest(value.real);
    case OPTIMA_METADATA_BOOLEAN:
      return value.integer != 0;
    case OPTIMA_METADATA_STRING:
      return std::string(value.string, static_cast<size_t>(value.string_bytes));
    default:
      return nullptr;
  }
}

Json metadata_value(const optima_model* model, const optima_metadata& value, bool all) {
  if (value.kind < OPTIMA_METADATA_INTEGERS) return single(value);
  const bool whole = all || value.count <= kItemsShown;
  Json items = Json::array();
  for (int64_t i = 0; i < (whole ? value.count : kItemsShown); ++i) {
    auto item = sized<optima_metadata>();
    optima_error* error = nullptr;
    check(optima_model_metadata_item(model, value.index, i, &item, &error), error);
    items.push_back(single(item));
  }
  if (whole) return items;
  return {{"count", value.count}, {"first", items}};
}

Json metadata(const optima_model* model, int64_t count, bool all) {
  Json out = Json::object();
  for (int64_t i = 0; i < count; ++i) {
    auto value = sized<optima_metadata>();
    optima_error* error = nullptr;
    check(optima_model_metadata_at(model, i, &value, &error), error);
    out[std::string(value.key, static_cast<size_t>(value.key_bytes))] =
        metadata_value(model, value, all);
  }
  return out;
}

Json tensors(const optima_model* model, int64_t count) {
  Json out = Json::array();
  for (int64_t i = 0; i < count; ++i) {
    auto tensor = sized<optima_tensor_info>();
    optima_error* error = nullptr;
    check(optima_model_tensor_at(model, i, &tensor, &error), error);
    out.push_back({{"name", std::string(tensor.name, static_cast<size_t>(tensor.name_bytes))},
                   {"type", tensor.type_name},
                   {"shape", std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank)},
                   {"bytes", tensor.bytes}});
  }
  return out;
}

const char* pooling_name(optima_pooling pooling) {
  static constexpr const char* kNames[] = {"", "mean", "cls", "last"};
  return pooling >= 0 && pooling <= OPTIMA_POOLING_LAST ? kNames[pooling] : "?";
}

Json describe(const LoadedModel& loaded, const std::string& reason, bool all) {
  const optima_model* model = loaded.model.get();
  const optima_model_info& info = loaded.info;
  Json out = {{"architecture", optima_model_architecture(model)},
              {"name", optima_model_name(model)},
              {"runs", reason.empty()}};
  if (!reason.empty()) out["reason"] = reason;
  const Json sizes = {{"layers", info.layers},
                      {"hidden", info.hidden},
                      {"heads", info.heads},
                      {"kv_heads", info.kv_heads},
                      {"head_dim", info.head_dim},
                      {"ffn", info.ffn},
                      {"vocabulary", info.vocabulary},
                      {"context_length", info.context_length},
                      {"bos", info.bos},
                      {"eos", info.eos},
                      {"adds_bos", info.adds_bos != 0},
                      {"adds_eos", info.adds_eos != 0},
                      {"has_tokenizer", info.has_tokenizer != 0},
                      {"generates", info.generates != 0},
                      {"embedding_width", info.embedding_width},
                      {"pooling", pooling_name(info.pooling)},
                      {"normalised", info.normalise == OPTIMA_NORMALISE_L2},
                      {"file_bytes", info.file_bytes}};
  out.update(sizes);
  out["metadata"] = metadata(model, info.metadata_count, all);
  out["tensors"] = tensors(model, info.tensor_count);
  return out;
}

// One line of at most `kWidth` bytes for people.
std::string shortened(const Json& value) {
  constexpr size_t kWidth = 90;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kWidth) return text;
  size_t end = kWidth;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text + ' ';
}

std::string as_text(const Json& all) {
  std::string out;
  for (const auto& [key, value] : all.items()) {
    if (key == "metadata" || key == "tensors") continue;
    out += padded(key, 16) + shortened(value) + '\n';
  }
  out += "\nmetadata\n";
  for (const auto& [key, value] : all["metadata"].items()) {
    out += "  " + padded(key, 44) + shortened(value) + '\n';
  }
  out += "\ntensors\n";
  for (const Json& tensor : all["tensors"]) {
    out += "  " + padded(tensor["name"].get<std::string>(), 36) +
           padded(tensor["type"].get<std::string>(), 8) + padded(tensor["shape"].dump(), 20) +
           tensor["bytes"].dump() + '\n';
  }
  return out;
}

void inspect(const Args& args) {
  std::string reason;
  LoadedModel loaded;
  try {
    loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
  } catch (const Failure& failure) {
    reason = failure.what();
    loaded = open_model(args.model, OPTIMA_CONTENT_VOCABULARY);
  }
  const Json all = describe(loaded, reason, args.all);
  if (args.json) {
    write_json(all);
  } else {
    write_out(as_text(all));
  }
}

}  // namespace

void add_inspect(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command("inspect", "Prints what a model file holds");
  add_model_options(command, args->model);
  command.flag("--all", args->all, "arrays of metadata in full");
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { inspect(*args); });
}

}  // namespace cli
