// Today's C++ binding with a library of release 1.0: what both have works, and what is missing is
// an error that names it. lacks_client LIBRARY
#define OPTIMA_LOAD
#include <cstdio>
#include <optima/optima.hpp>

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  optima::load(argv[1]);
  try {
    optima::EngineOptions newer;
    newer.queue_max = 4;
    optima::Engine::create(newer);
    return 1;
  } catch (const optima::UnsupportedError& error) {
    std::printf("%s\n", error.what());
  }
  const auto engine = optima::Engine::create();
  const auto model = optima::Model::open(engine, "any");
  auto session = optima::Session::create(model);
  try {
    session.fork();
    return 1;
  } catch (const optima::VersionError& error) {
    std::printf("%s\n", error.what());
  }
} catch (const optima::Error& error) {
  std::fprintf(stderr, "lacks_client: %s\n", error.what());
  return 1;
}
