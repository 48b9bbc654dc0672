// Structs of the wrong size, of a newer host, with unknown extensions: each is an answer, never a
// crash, for every struct that crosses the boundary.
#include <functional>

#include "fixture.h"

namespace optima_test {
namespace {

// sizeof each struct in its first release.
template <typename Struct>
inline constexpr uint32_t kSizeMin = 0;
#include "abi/struct_sizes.inc"

// Room for a struct of a newer host.
template <typename Struct>
struct Larger {
  Struct value;
  unsigned char tail[64];
};

// Calls with a struct and expects the answers of c-abi rules for struct_size, reserved0 and next.
template <typename Struct>
void check_options(const char* name, const Struct& good,
                   const std::function<Outcome(const Struct*)>& call) {
  SCOPED_TRACE(name);
  EXPECT_EQ(call(&good).status, OPTIMA_OK) << call(&good).message();

  for (const uint32_t size : {0u, 1u, 4u, 15u, uint32_t{sizeof(Struct)} - 1, (1u << 16) + 1, ~0u}) {
    Struct bad = good;
    bad.struct_size = size;
    const Outcome outcome = call(&bad);
    EXPECT_EQ(outcome.status, OPTIMA_E_ARG) << size;
    EXPECT_NE(outcome.message().find(std::to_string(size)), std::string::npos) << outcome.message();
  }

  Larger<Struct> larger{good, {}};
  larger.value.struct_size = sizeof larger;
  EXPECT_EQ(call(&larger.value).status, OPTIMA_OK);
  larger.tail[63] = 1;
  EXPECT_EQ(call(&larger.value).status, OPTIMA_E_UNSUPPORTED);

  // What lies behind the struct of a host of the first release is not the library's to read.
  Struct older;
  std::memset(&older, 0x5a, sizeof older);
  std::memcpy(&older, &good, kSizeMin<Struct>);
  older.struct_size = kSizeMin<Struct>;
  EXPECT_EQ(call(&older).status, OPTIMA_OK) << call(&older).message();

  Struct reserved = good;
  reserved.reserved0 = 1;
  EXPECT_EQ(call(&reserved).status, OPTIMA_E_UNSUPPORTED);

  optima_ext ext = {7, sizeof(optima_ext), nullptr};
  Struct extended = good;
  extended.next = &ext;
  EXPECT_EQ(call(&extended).status, OPTIMA_E_UNSUPPORTED);
  ext.type |= OPTIMA_EXT_OPTIONAL;
  EXPECT_EQ(call(&extended).status, OPTIMA_OK);
  ext.next = &ext;
  EXPECT_EQ(call(&extended).status, OPTIMA_E_ARG) << "a loop of extensions";
}

template <typename Struct>
void check_out(const char* name, const std::function<Outcome(Struct*)>& call) {
  SCOPED_TRACE(name);
  EXPECT_EQ(call(nullptr).status, OPTIMA_E_ARG);
  for (const uint32_t size : {0u, uint32_t{sizeof(Struct)} - 1, (1u << 16) + 1, ~0u}) {
    auto bad = sized<Struct>();
    bad.struct_size = size;
    EXPECT_EQ(call(&bad).status, OPTIMA_E_ARG) << size;
  }
  Larger<Struct> larger;
  std::memset(&larger, 0xee, sizeof larger);
  larger.value.struct_size = sizeof(Struct) + 32;
  EXPECT_EQ(call(&larger.value).status, OPTIMA_OK);
  EXPECT_EQ(larger.value.struct_size, sizeof(Struct) + 32);
  EXPECT_EQ(larger.tail[31], 0) << "what the library does not know is zero";
  EXPECT_EQ(larger.tail[32], 0xee) << "nothing beyond struct_size is written";
}

using StructTest = TinyTest;

TEST_F(StructTest, EngineOptions) {
  check_options<optima_engine_options>(
      "engine", sized<optima_engine_options>(), [](const optima_engine_options* options) {
        optima_engine* engine = nullptr;
        Outcome outcome = outcome_of(
            [&](optima_error** err) { return optima_engine_create(options, &engine, err); });
        EXPECT_EQ(engine != nullptr, outcome.status == OPTIMA_OK);
        optima_engine_destroy(engine);
        return outcome;
      });
}

TEST_F(StructTest, ModelOptions) {
  const std::string path = tiny_path("llama-f32.gguf");
  check_options<optima_model_options>(
      "model", sized<optima_model_options>(), [&](const optima_model_options* options) {
        optima_model* model = nullptr;
        Outcome outcome = outcome_of([&](optima_error** err) {
          return optima_model_open_path(engine_.get(), path.data(), path.size(), options, &model,
                                        err);
        });
        optima_model_destroy(model);
        return outcome;
      });
}

TEST_F(StructTest, Io) {
  static std::string bytes;
  bytes = read_file(tiny_path("llama-f32.gguf"));
  auto io = sized<optima_io>();
  io.length = static_cast<int64_t>(bytes.size());
  io.read = [](void*, void* into, int64_t offset, int64_t count) -> int32_t {
    std::memcpy(into, bytes.data() + offset, static_cast<size_t>(count));
    return 0;
  };
  check_options<optima_io>("io", io, [&](const optima_io* in) {
    optima_model* model = nullptr;
    Outcome outcome = outcome_of([&](optima_error** err) {
      return optima_model_open_io(engine_.get(), in, nullptr, &model, err);
    });
    optima_model_destroy(model);
    return outcome;
  });
}

TEST_F(StructTest, Folder) {
  static const std::string bytes = "{";  // Broken: the struct is checked before.
  const char* const names[] = {"config.json"};
  const int64_t lengths[] = {1};
  auto folder = sized<optima_folder>();
  folder.names = names;
  folder.lengths = lengths;
  folder.file_count = 1;
  folder.read = [](void*, size_t, void* into, int64_t, int64_t) -> int32_t {
    std::memcpy(into, bytes.data(), 1);
    return 0;
  };
  check_options<optima_folder>("folder", folder, [&](const optima_folder* in) {
    Outcome outcome = outcome_of([&](optima_error** err) {
      optima_model* model = nullptr;
      return optima_model_open_folder(engine_.get(), in, nullptr, &model, err);
    });
    if (outcome.status == OPTIMA_E_FORMAT) outcome.status = OPTIMA_OK;
    return outcome;
  });
}

TEST_F(StructTest, SessionOptions) {
  check_options<optima_session_options>(
      "session", sized<optima_session_options>(), [&](const optima_session_options* options) {
        optima_session* session = nullptr;
        Outcome outcome = outcome_of([&](optima_error** err) {
          return optima_session_create(model_.get(), options, &session, err);
        });
        optima_session_destroy(session);
        return outcome;
      });
}

TEST_F(StructTest, RequestDesc) {
  check_options<optima_request_desc>("request", ask("old market", 1),
                                     [&](const optima_request_desc* desc) {
                                       return outcome_of([&](optima_error** err) {
                                         return optima_generate(session_.get(), desc, nullptr, err);
                                       });
                                     });
}

TEST_F(StructTest, ChatDesc) {
  auto desc = sized<optima_chat_desc>();
  desc.messages_json = "[]";
  desc.messages_json_bytes = 2;
  desc.template_source = "x";
  desc.template_source_bytes = 1;
  check_options<optima_chat_desc>("chat", desc, [&](const optima_chat_desc* in) {
    optima_buffer* buffer = nullptr;
    Outcome outcome = outcome_of(
        [&](optima_error** err) { return optima_model_render(model_.get(), in, &buffer, err); });
    optima_buffer_destroy(buffer);
    return outcome;
  });
}

TEST_F(StructTest, ProbeOptions) {
  check_options<optima_probe_options>(
      "probe", sized<optima_probe_options>(), [](const optima_probe_options* options) {
        auto report = sized<optima_probe_report>();
        return outcome_of([&](optima_error** err) { return optima_probe(options, &report, err); });
      });
}

TEST_F(StructTest, ReservedFieldsInside) {
  auto desc = ask("old market", 1);
  desc.reserved1 = 1;
  EXPECT_EQ(optima_generate(session_.get(), &desc, nullptr, nullptr), OPTIMA_E_UNSUPPORTED);
  desc = ask("old market", 1);
  desc.flags = 1u << 31;
  EXPECT_EQ(optima_generate(session_.get(), &desc, nullptr, nullptr), OPTIMA_E_UNSUPPORTED);
  auto options = sized<optima_session_options>();
  options.path = OPTIMA_PATH_DETERMINISTIC + 1;
  optima_session* session = nullptr;
  EXPECT_EQ(optima_session_create(model_.get(), &options, &session, nullptr), OPTIMA_E_UNSUPPORTED);
  EXPECT_EQ(session, nullptr);
}

TEST_F(StructTest, OutStructs) {
  const auto in = [](auto call) { return outcome_of(call); };
  check_out<optima_memory>("memory", [&](optima_memory* out) {
    return in([&](optima_error** err) { return optima_mem_query(engine_.get(), out, err); });
  });
  check_out<optima_model_info>("info", [&](optima_model_info* out) {
    return in([&](optima_error** err) { return optima_model_get_info(model_.get(), out, err); });
  });
  check_out<optima_metadata>("metadata", [&](optima_metadata* out) {
    return in(
        [&](optima_error** err) { return optima_model_metadata_at(model_.get(), 0, out, err); });
  });
  check_out<optima_tensor_info>("tensor", [&](optima_tensor_info* out) {
    return in(
        [&](optima_error** err) { return optima_model_tensor_at(model_.get(), 0, out, err); });
  });
  check_out<optima_probe_report>("probe", [&](optima_probe_report* out) {
    return in([&](optima_error** err) { return optima_probe(nullptr, out, err); });
  });
  check_out<optima_session_kv>("session", [&](optima_session_kv* out) {
    return in(
        [&](optima_error** err) { return optima_session_kv_query(session_.get(), out, err); });
  });
  check_out<optima_kv_audit_report>("audit", [&](optima_kv_audit_report* out) {
    return in([&](optima_error** err) { return optima_kv_audit(engine_.get(), out, err); });
  });
  const Result result = generate(session_, ask("old market", 1));
  check_out<optima_counters>("counters", [&](optima_counters* out) {
    return in([&](optima_error** err) { return optima_result_counters(result.get(), out, err); });
  });
}

TEST_F(StructTest, InitFunctionsEqualTheMacros) {
  const optima_engine_options engine = OPTIMA_ENGINE_OPTIONS_INIT;
  optima_engine_options other;
  std::memset(&other, 0xee, sizeof other);
  optima_engine_options_init(&other, sizeof other);
  EXPECT_EQ(std::memcmp(&engine, &other, sizeof other), 0);
  const optima_request_desc desc = OPTIMA_REQUEST_DESC_INIT;
  optima_request_desc other_desc;
  std::memset(&other_desc, 0xee, sizeof other_desc);
  optima_request_desc_init(&other_desc, sizeof other_desc);
  EXPECT_EQ(std::memcmp(&desc, &other_desc, sizeof desc), 0);
}

}  // namespace
}  // namespace optima_test
