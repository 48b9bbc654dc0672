// optima_session: one conversation.

#include <fstream>

#include "abi/buffer.h"
#include "abi/guard.h"
#include "abi/handle.h"
#include "abi/io.h"
#include "abi/structs.h"
#include "base/new_file.h"

using namespace optima::abi;
using optima::Code;
using optima::Status;

namespace {

optima::Result<optima::engine::SessionOptions> read_options(const optima_session_options* in) {
  OPTIMA_ASSIGN(const optima_session_options options, read_struct("session options", in));
  OPTIMA_TRY(check_constant("path", options.path, OPTIMA_PATH_DETERMINISTIC));
  OPTIMA_TRY(check_constant("kv_type", options.kv_type, OPTIMA_KV_TYPE_BF16));
  OPTIMA_TRY(check_constant("output", options.output, OPTIMA_OUTPUT_EMBEDDING));
  if (options.context_tokens < 0 || options.prefill_chunk_tokens < 0) {
    return Status(
        Code::invalid_argument,
        optima::text("context_tokens is ", options.context_tokens, ", prefill_chunk_tokens is ",
                     options.prefill_chunk_tokens, ": neither may be negative"));
  }
  optima::engine::SessionOptions out;
  out.context_tokens = options.context_tokens;
  out.prefill_chunk_tokens = options.prefill_chunk_tokens;
  out.path = static_cast<optima::engine::ComputePath>(options.path);
  out.output = static_cast<optima::engine::SessionOutput>(options.output);
  if (options.kv_type == OPTIMA_KV_TYPE_BF16) out.kv_type = optima::kernels::KvType::bf16;
  if (options.kv_type == OPTIMA_KV_TYPE_Q8_0) out.kv_type = optima::kernels::KvType::q8_0;
  if (options.draft_model != nullptr) {
    auto draft = enter(options.draft_model);
    if (!draft.ok()) return draft.take_status().in("draft_model");
    out.draft_model = (*draft)->model;
  }
  return out;
}

// A new session whose content `read` gives.
Status restore(optima_model* model, const optima_session_options* options,
               const optima::kv::SnapshotRead& read, optima_session** out) {
  OPTIMA_ASSIGN(const auto model_box, enter(model));
  OPTIMA_ASSIGN(const auto session_options, read_options(options));
  auto box = std::make_shared<SessionBox>();
  box->model = model_box;
  OPTIMA_ASSIGN(box->session,
                model_box->engine->engine->restore(model_box->model, session_options, read));
  *out = new optima_session(std::move(box));
  return {};
}

}  // namespace

optima_status optima_session_create(optima_model* model, const optima_session_options* options,
                                    optima_session** out, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto model_box, enter(model));
    OPTIMA_ASSIGN(const auto session_options, read_options(options));
    auto box = std::make_shared<SessionBox>();
    box->model = model_box;
    OPTIMA_ASSIGN(box->session,
                  model_box->engine->engine->create_session(model_box->model, session_options));
    *out = new optima_session(std::move(box));
    return {};
  });
}

void optima_session_destroy(optima_session* session) noexcept {
  guard([&] {
    if (const auto box = release(session)) box->close();
  });
}

int64_t optima_session_context_tokens(const optima_session* session) noexcept {
  return guard(Fallback<int64_t>{0}, [&]() -> int64_t {
    const auto box = enter(session);
    return box.ok() ? (*box)->session->context_tokens() : 0;
  });
}

optima_status optima_session_tokens(const optima_session* session, optima_buffer** out,
                                    optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto box, enter(session));
    *out = make_buffer(box->session->tokens());
    return {};
  });
}

optima_status optima_session_reset(optima_session* session, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(session));
    return box->session->truncate(0);
  });
}

optima_status optima_session_truncate(optima_session* session, int64_t tokens,
                                      optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(session));
    return box->session->truncate(tokens);
  });
}

optima_status optima_session_fork(const optima_session* session, optima_session** out,
                                  optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const auto from, enter(session));
    auto box = std::make_shared<SessionBox>();
    box->model = from->model;
    OPTIMA_ASSIGN(box->session, from->session->fork());
    *out = new optima_session(std::move(box));
    return {};
  });
}

optima_status optima_session_save(const optima_session* session, optima_write_fn write, void* user,
                                  optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(session));
    if (write == nullptr) return Status(Code::invalid_argument, "write: NULL");
    return box->session->save([&](const void* from, int64_t bytes) {
      int32_t failed = 1;
      contain([&] { failed = write(user, from, bytes); });
      return failed == 0;
    });
  });
}

int64_t optima_session_save_bytes(const optima_session* session) noexcept {
  return guard(Fallback<int64_t>{0}, [&]() -> int64_t {
    const auto box = enter(session);
    return box.ok() ? (*box)->session->save_bytes() : 0;
  });
}

optima_status optima_session_kv_query(const optima_session* session, optima_session_kv* out,
                                      optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(session));
    OPTIMA_TRY(check_out("out", out));
    const optima::engine::SessionKv of = box->session->kv();
    optima_session_kv kv{};
    kv.tokens = of.tokens;
    kv.pages = of.use.pages;
    kv.bytes = of.use.bytes;
    kv.shared_pages = of.use.shared_pages;
    kv.shared_bytes = of.use.shared_bytes;
    kv.kv_root = of.root;
    write_struct(out, kv);
    return {};
  });
}

optima_status optima_session_save_path(const optima_session* session, const char* path,
                                       size_t path_bytes, optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    OPTIMA_ASSIGN(const auto box, enter(session));
    OPTIMA_ASSIGN(const std::string name, read_path(path, path_bytes));
    OPTIMA_ASSIGN(optima::NewFile file, optima::NewFile::create(name));
    Status written;
    const Status saved = box->session->save([&](const void* from, int64_t bytes) {
      written = file.write(from, bytes);
      return written.ok();
    });
    OPTIMA_TRY(written);
    OPTIMA_TRY(saved);
    return file.keep();
  });
}

optima_status optima_session_restore(optima_model* model, const optima_session_options* options,
                                     const optima_io* io, optima_session** out,
                                     optima_error** err) noexcept {
  ReleaseOnce hook;
  return guard(err, [&]() -> Status {
    if (out != nullptr) *out = nullptr;
    OPTIMA_ASSIGN(const auto source, read_io(io, hook));
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    int64_t at = 0;
    const auto read = [&](void* into, int64_t bytes) {
      if (bytes > source.length - at || !source.read(into, at, bytes)) return false;
      at += bytes;
      return true;
    };
    return restore(model, options, read, out);
  });
}

optima_status optima_session_restore_path(optima_model* model,
                                          const optima_session_options* options, const char* path,
                                          size_t path_bytes, optima_session** out,
                                          optima_error** err) noexcept {
  return guard(err, [&]() -> Status {
    if (out == nullptr) return Status(Code::invalid_argument, "out: NULL");
    *out = nullptr;
    OPTIMA_ASSIGN(const std::string name, read_path(path, path_bytes));
    // Read, not mapped: the file may be shortened meanwhile.
    std::ifstream file(name, std::ios::binary);
    if (!file.is_open()) return Status(Code::io, name + ": cannot be opened");
    const auto read = [&](void* into, int64_t count) {
      return static_cast<bool>(file.read(static_cast<char*>(into), count));
    };
    return restore(model, options, read, out).in(name);
  });
}
