// Eight conversations on one model, answered side by side and read by one thread:
// many_sessions MODEL.gguf
#include <iostream>
#include <optima/optima.hpp>

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " MODEL.gguf\n";
    return 2;
  }
  constexpr std::size_t kConversations = 8;
  auto engine = optima::Engine::create();
  const auto model = optima::Model::open(engine, argv[1]);
  std::vector<optima::Session> sessions;
  std::vector<optima::Request> requests;
  std::vector<std::string> answers(kConversations);
  optima::RequestOptions options;
  options.max_tokens = 12;
  for (std::size_t i = 0; i < kConversations; ++i) {
    sessions.push_back(optima::Session::create(model));
    requests.push_back(sessions[i].submit("Room " + std::to_string(i) + " holds", options));
  }
  for (std::size_t open = kConversations; open != 0;) {
    engine.poll(-1);  // sleeps until something has happened
    for (std::size_t i = 0; i < kConversations; ++i) {
      while (const optima::Event* event = requests[i].try_next()) {
        answers[i] += event->text;
        open -= event->type == optima::EventType::done;
      }
    }
  }
  for (std::size_t i = 0; i < kConversations; ++i) {
    std::cout << "Room " << i << " holds" << answers[i] << "\n";
  }
} catch (const optima::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
