// What a model file says about itself: metadata by key and by index, items of arrays, tensors.

#include <type_traits>

#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/structs.h"
#include "kernels/quant/weight_type.h"

namespace optima::abi {
namespace {

using model::MetadataValue;

Status check_index(std::string_view name, int64_t index, size_t count) {
  if (index >= 0 && static_cast<uint64_t>(index) < count) return {};
  return Status(Code::invalid_argument,
                text(name, " is ", index, ", there are ", static_cast<int64_t>(count)),
                {.wanted = index, .available = static_cast<int64_t>(count)});
}

void put(optima_metadata& out, int64_t value) {
  out.kind = OPTIMA_METADATA_INTEGER;
  out.integer = value;
  out.real = static_cast<double>(value);
}
void put(optima_metadata& out, double value) {
  out.kind = OPTIMA_METADATA_REAL;
  out.real = value;
}
void put(optima_metadata& out, bool value) {
  out.kind = OPTIMA_METADATA_BOOLEAN;
  out.integer = value ? 1 : 0;
}
void put(optima_metadata& out, std::string_view value) {
  out.kind = OPTIMA_METADATA_STRING;
  out.string = value.data();
  out.string_bytes = static_cast<int64_t>(value.size());
}
void put(optima_metadata& out, const MetadataValue::Ints& items) {
  out.kind = OPTIMA_METADATA_INTEGERS;
  out.count = static_cast<int64_t>(items.size());
}
void put(optima_metadata& out, const MetadataValue::Floats& items) {
  out.kind = OPTIMA_METADATA_REALS;
  out.count = static_cast<int64_t>(items.size());
}
void put(optima_metadata& out, const MetadataValue::Bools& items) {
  out.kind = OPTIMA_METADATA_BOOLEANS;
  out.count = static_cast<int64_t>(items.size());
}
void put(optima_metadata& out, const MetadataValue::Strings& items) {
  out.kind = OPTIMA_METADATA_STRINGS;
  out.count = static_cast<int64_t>(items.size());
}

void describe(const model::Metadata& metadata, size_t index, optima_metadata& out) {
  const auto& [key, value] = metadata.entries()[index];
  std::visit([&](const auto& v) { put(out, v); }, value.value);
  out.key = key.data();
  out.key_bytes = static_cast<int64_t>(key.size());
  out.index = static_cast<int64_t>(index);
}

struct PutItem {
  optima_metadata& out;
  int64_t item;

  template <typename Value>
  Status operator()(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string_view>) {
      return Status(Code::invalid_argument, "the metadata value is not an array");
    } else {
      OPTIMA_TRY(check_index("item", item, value.size()));
      const auto& chosen = value[static_cast<size_t>(item)];
      if constexpr (std::is_same_v<Value, MetadataValue::Bools>) {
        put(out, chosen != 0);
      } else {
        put(out, chosen);
      }
      return {};
    }
  }
};

}  // namespace
}  // namespace optima::abi

using namespace optima::abi;
using optima::Status;

optima_status optima_model_metadata_at(const optima_model* model, int64_t index,
                                       optima_metadata* out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_TRY(check_out("out", out));
    const optima::model::Metadata& metadata = box->model->file().metadata();
    OPTIMA_TRY(check_index("index", index, metadata.entries().size()));
    optima_metadata view{};
    describe(metadata, static_cast<size_t>(index), view);
    write_struct(out, view);
    return {};
  });
}

optima_status optima_model_metadata_find(const optima_model* model, const char* key,
                                         size_t key_bytes, optima_metadata* out,
                                         optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_TRY(check_out("out", out));
    OPTIMA_ASSIGN(const std::string_view wanted, read_text("key", key, key_bytes));
    const optima::model::Metadata& metadata = box->model->file().metadata();
    optima_metadata view{};
    view.index = -1;
    const auto& entries = metadata.entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].first == wanted) describe(metadata, i, view);
    }
    write_struct(out, view);
    return {};
  });
}

optima_status optima_model_metadata_item(const optima_model* model, int64_t index, int64_t item,
                                         optima_metadata* out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_TRY(check_out("out", out));
    const auto& entries = box->model->file().metadata().entries();
    OPTIMA_TRY(check_index("index", index, entries.size()));
    optima_metadata view{};
    view.index = index;
    OPTIMA_TRY(std::visit(PutItem{view, item}, entries[static_cast<size_t>(index)].second.value));
    write_struct(out, view);
    return {};
  });
}

optima_status optima_model_tensor_at(const optima_model* model, int64_t index,
                                     optima_tensor_info* out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(model));
    OPTIMA_TRY(check_out("out", out));
    const auto& tensors = box->model->file().tensors();
    OPTIMA_TRY(check_index("index", index, tensors.size()));
    const optima::model::Tensor& tensor = tensors[static_cast<size_t>(index)];
    const auto* type = optima::kernels::find_weight_type(static_cast<int32_t>(tensor.type));
    optima_tensor_info info{};
    info.rank = tensor.rank;
    info.name = tensor.name.data();
    info.name_bytes = static_cast<int64_t>(tensor.name.size());
    info.type_name = type == nullptr ? "" : type->name;
    for (size_t i = 0; i < tensor.shape.size(); ++i) info.shape[i] = tensor.shape[i];
    info.bytes = tensor.bytes;
    write_struct(out, info);
    return {};
  });
}
