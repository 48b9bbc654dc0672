// Text as it is made, by the model's chat template: stream MODEL.gguf ["question"]
#include <iostream>
#include <optima/optima.hpp>

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " MODEL.gguf [\"question\"]\n";
    return 2;
  }
  const std::string question = argc > 2 ? argv[2] : "Why is the sky blue?";
  const auto engine = optima::Engine::create();
  const auto model = optima::Model::open(engine, argv[1]);
  auto session = optima::Session::create(model);
  optima::RequestOptions options;
  options.max_tokens = 64;
  options.flags = optima::request_flags::no_add_special;  // the template writes them
  const std::string prompt = model.render({{"user", question}});
  for (const optima::Event& event : session.submit(prompt, options)) {
    std::cout << event.text << std::flush;  // whole characters
  }
  std::cout << "\n";
} catch (const optima::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
