// Every template of optima.hpp, made once: compile_test.py compiles this in each mode.
#include <optima/optima.hpp>
#if __cplusplus >= 202002L
#include <ranges>
static_assert(std::ranges::input_range<optima::Request>);
static_assert(std::is_aggregate_v<optima::RequestOptions>);
#endif

static_assert(!std::is_copy_constructible_v<optima::Session>);
static_assert(std::is_nothrow_move_constructible_v<optima::Session>);
static_assert(std::is_copy_constructible_v<optima::Model>);

namespace {

#ifdef OPTIMA_NO_EXCEPTIONS
template <typename T>
T& value(optima::Expected<T>& outcome) {
  return *outcome;
}
#else
template <typename T>
T& value(T& outcome) {
  return outcome;
}
#endif

}  // namespace

int main() {
  const optima::EngineOptions engine_options;
  auto engine = optima::Engine::create(engine_options);
  auto model = optima::Model::open(value(engine), "model.gguf");
  auto opened = optima::Session::create(value(model));
  optima::Session& session = value(opened);
  optima::RequestOptions options;
  auto silent = session.generate("prompt", options, [](const optima::Event&) {});
  auto result = session.generate(std::string("prompt"), options, [](const auto& event) {
    return event.text.empty() ? optima::Verdict::continue_ : optima::Verdict::stop;
  });
  auto chat = session.chat({{"user", "hello"}}, options, [](const optima::Event&) {});
  auto request = session.submit(std::vector<std::int32_t>{1, 2, 3}, options);
  std::size_t bytes = 0;
  for (const optima::Event& event : value(request)) bytes += event.text.size();
  auto embedded = session.embed_texts(std::vector<std::string_view>{"one"});
  return value(result).text().size() + bytes + value(embedded).size() == 0 ? 1 : 0;
}
