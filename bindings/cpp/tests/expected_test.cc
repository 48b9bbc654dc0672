// The binding without exceptions, and without linking the library: errors are values, and a library
// that is not there is one of them. Compiled with -fno-exceptions. expected_test LIBRARY MODEL
#define OPTIMA_LOAD
#include <cstdio>
#include <optima/optima.hpp>

namespace {

int fail(const char* what, const optima::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.what());
  return 1;
}

int unexpected(const char* what) {
  std::fprintf(stderr, "expected_test: %s\n", what);
  return 1;
}

bool contains(const optima::Error& error, const char* part) {
  const std::string_view text = error.what();
  return text.find(part) != text.npos && text.find('\n') == text.npos;
}

// One line that names what was looked for, and where.
int missing() {
  const auto by_path = optima::load("/nowhere/libsitsoptima.so.1");
  if (by_path || by_path.error().status() != optima::Status::io ||
      !contains(by_path.error(), "/nowhere/libsitsoptima.so.1 (looked there only)")) {
    return unexpected("a missing file was not named");
  }
  const auto by_name = optima::load("libsitsoptima-absent.so.1");
  if (by_name || !contains(by_name.error(), "libsitsoptima-absent.so.1") ||
      !contains(by_name.error(), "LD_LIBRARY_PATH")) {
    return unexpected("a missing library was not named");
  }
  const auto other = optima::load("libm.so.6");
  if (other || other.error().status() != optima::Status::version) {
    return unexpected("another library was taken");
  }
  return 0;
}

int generate(const char* path) {
  const auto engine = optima::Engine::create();
  if (!engine) return fail("engine", engine.error());
  const auto absent = optima::Model::open(*engine, "/nowhere/model.gguf");
  if (absent || absent.error().status() != optima::Status::io) return unexpected("a missing model");
  const auto model = optima::Model::open(*engine, path);
  if (!model) return fail(path, model.error());
  auto session = optima::Session::create(*model);
  if (!session) return fail("session", session.error());
  optima::RequestOptions options;
  options.max_tokens = 8;
  options.flags = optima::request_flags::ignore_eos;
  std::string streamed;
  const auto on_event = [&](const optima::Event& event) { streamed += event.bytes; };
  const auto result = session->generate("a garden", options, on_event);
  if (!result) return fail("generate", result.error());
  if (streamed.empty() || result->bytes() != streamed) return unexpected("another output");
  if (!result->require_whole()) return unexpected("a whole output is whole");
  auto request = session->submit("a garden", options);
  if (!request) return fail("submit", request.error());
  std::string polled;
  for (const optima::Event& event : *request) polled += event.bytes;
  const auto same = request->result();
  if (!same) return fail("result", same.error());
  if (polled != streamed || same->bytes() != streamed) return unexpected("another polled output");
  const auto embedded = session->embed("a");
  if (embedded || embedded.error().status() != optima::Status::state) {
    return unexpected("an embedding of a session for text");
  }
  const auto chat = session->chat({{"user", "a garden"}}, options);
  if (!chat) return fail("chat", chat.error());
  options.max_tokens = -1;
  const auto wrong = session->chat({{"user", "a garden"}}, options);
  return wrong ? unexpected("-1 tokens are none") : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (missing() != 0) return 1;
  const auto loaded = optima::load(argv[1]);
  if (!loaded) return fail("load", loaded.error());
  return generate(argv[2]);
}
