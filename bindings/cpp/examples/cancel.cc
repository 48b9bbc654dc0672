// Three ways to end a request early: cancel MODEL.gguf
#include <chrono>
#include <iostream>
#include <optima/optima.hpp>
#include <thread>

namespace {

void tell(const char* way, const optima::Result& result) {
  std::cout << way << ": " << optima::name(result.finish()) << ", " << result.token_ids().size()
            << " tokens\n";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " MODEL.gguf\n";
    return 2;
  }
  const auto engine = optima::Engine::create();
  const auto model = optima::Model::open(engine, argv[1]);
  auto session = optima::Session::create(model);
  optima::RequestOptions options;
  options.flags = optima::request_flags::ignore_eos;
  const char* prompt = "Once upon a time";

  // From another thread, by a latch that the request names.
  const auto cancel = optima::Cancel::create();
  options.cancel = &cancel;
  std::thread impatient([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel.trigger();
  });
  tell("latch", session.generate(prompt, options));
  impatient.join();
  options.cancel = nullptr;

  // By what the callback returns: here after three tokens, which are kept.
  const auto three = [](const optima::Event& event) {
    return event.index < 2 ? optima::Verdict::continue_ : optima::Verdict::stop;
  };
  tell("verdict", session.generate(prompt, options, three));

  // By time.
  options.deadline_ms = 20;
  tell("deadline", session.generate(prompt, options));
} catch (const optima::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
