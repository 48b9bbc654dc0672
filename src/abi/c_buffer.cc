// optima_buffer: bytes, token ids or floats that the library made and the host frees.

#include "abi/buffer.h"

#include "abi/guard.h"
#include "abi/handle.h"

namespace optima::abi {
namespace {

template <typename Content>
optima_buffer* make(Content content) {
  auto buffer = std::make_unique<optima_buffer>();
  buffer->content = std::move(content);
  return buffer.release();
}

// What the buffer holds, if it is this; else null and a size of 0.
template <typename Content>
const Content* content_of(const optima_buffer* buffer, int64_t* size) {
  const Content* content = live(buffer) ? std::get_if<Content>(&buffer->content) : nullptr;
  if (size != nullptr) *size = content != nullptr ? static_cast<int64_t>(content->size()) : 0;
  return content;
}

template <typename Item>
const Item* guard_array(const optima_buffer* buffer, int64_t* count) {
  return guard(Fallback<const Item*>{nullptr}, [&]() -> const Item* {
    const auto* items = content_of<std::vector<Item>>(buffer, count);
    return items != nullptr ? items->data() : nullptr;
  });
}

}  // namespace

optima_buffer* make_buffer(std::string text) {
  return make(std::move(text));
}
optima_buffer* make_buffer(std::vector<int32_t> ids) {
  return make(std::move(ids));
}
optima_buffer* make_buffer(std::vector<float> floats) {
  return make(std::move(floats));
}

}  // namespace optima::abi

using namespace optima::abi;

const char* optima_buffer_text(const optima_buffer* buffer, int64_t* bytes) noexcept {
  return guard(Fallback<const char*>{nullptr}, [&]() -> const char* {
    const auto* text = content_of<std::string>(buffer, bytes);
    return text != nullptr ? text->c_str() : nullptr;
  });
}

const int32_t* optima_buffer_ids(const optima_buffer* buffer, int64_t* count) noexcept {
  return guard_array<int32_t>(buffer, count);
}

const float* optima_buffer_floats(const optima_buffer* buffer, int64_t* count) noexcept {
  return guard_array<float>(buffer, count);
}

void optima_buffer_destroy(optima_buffer* buffer) noexcept {
  guard([&] {
    if (live(buffer) && buffer->magic.exchange(0) == optima_buffer::kMagic) delete buffer;
  });
}
