// The shortest way to an answer: hello MODEL.gguf ["prompt"]
#include <iostream>
#include <optima/optima.hpp>

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " MODEL.gguf [\"prompt\"]\n";
    return 2;
  }
  const std::string prompt = argc > 2 ? argv[2] : "The capital of France is";
  const auto engine = optima::Engine::create();
  const auto model = optima::Model::open(engine, argv[1]);
  auto session = optima::Session::create(model);
  optima::RequestOptions options;
  options.max_tokens = 32;
  std::cout << prompt << session.generate(prompt, options).text() << "\n";
} catch (const optima::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
