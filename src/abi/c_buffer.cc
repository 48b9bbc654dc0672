// optima_buffer: bytes or token ids that the library made and the host frees.

#include "abi/buffer.h"

#include "abi/guard.h"
#include "abi/handle.h"

namespace optima::abi {

optima_buffer* make_buffer(std::string text) {
  auto buffer = std::make_unique<optima_buffer>();
  buffer->text = std::move(text);
  return buffer.release();
}

optima_buffer* make_buffer(std::vector<int32_t> ids) {
  auto buffer = std::make_unique<optima_buffer>();
  buffer->holds_ids = true;
  buffer->ids = std::move(ids);
  return buffer.release();
}

}  // namespace optima::abi

using namespace optima::abi;

const char* optima_buffer_text(const optima_buffer* buffer, int64_t* bytes) noexcept {
  if (bytes != nullptr) *bytes = 0;
  return guard(Fallback<const char*>{nullptr}, [&]() -> const char* {
    if (!live(buffer) || buffer->holds_ids) return nullptr;
    if (bytes != nullptr) *bytes = static_cast<int64_t>(buffer->text.size());
    return buffer->text.c_str();
  });
}

const int32_t* optima_buffer_ids(const optima_buffer* buffer, int64_t* count) noexcept {
  if (count != nullptr) *count = 0;
  return guard(Fallback<const int32_t*>{nullptr}, [&]() -> const int32_t* {
    if (!live(buffer) || !buffer->holds_ids) return nullptr;
    if (count != nullptr) *count = static_cast<int64_t>(buffer->ids.size());
    return buffer->ids.data();
  });
}

void optima_buffer_destroy(optima_buffer* buffer) noexcept {
  guard([&] {
    if (live(buffer) && buffer->magic.exchange(0) == optima_buffer::kMagic) delete buffer;
  });
}
