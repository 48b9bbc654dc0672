// optima chat: a conversation in one session. Each turn hands over the whole conversation; the
// session computes only what it does not hold yet. Ctrl-C ends the answer, not the program: the
// token callback then stops, and while the prompt is still being read the cancel latch does it.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "commands.h"
#include "generation.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  SessionArgs session;
  GenerationArgs generation;
  std::string system;
};

// Shared with the signal handler: the latch of the answer in progress.
std::atomic<const optima_cancel*> latch{nullptr};
std::atomic<bool> has_text{false};
std::atomic<bool> stop_wanted{false};
static_assert(std::atomic<const optima_cancel*>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  stop_wanted.store(true);
  const optima_cancel* cancel = latch.load();
  if (cancel != nullptr && !has_text.load()) optima_cancel_trigger(cancel);
}

Stream::Interrupt interrupted() {
  return stop_wanted.load() ? Stream::Interrupt::stop : Stream::Interrupt::go_on;
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: it also ends the reading of a line
  sigaction(SIGINT, &action, nullptr);
}

// A line without its end; nothing at the end of the input.
std::optional<std::string> read_line() {
  char* line = nullptr;
  size_t capacity = 0;
  errno = 0;
  const ssize_t length = getline(&line, &capacity, stdin);
  std::string text(length > 0 ? line : "", length > 0 ? static_cast<size_t>(length) : 0);
  std::free(line);
  if (length < 0) {
    if (errno != EINTR) return std::nullopt;
    clearerr(stdin);
    return "";
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The assistant's answer, as far as it came.
std::string answer(const LoadedModel& loaded, optima_session* session, const Args& args,
                   const Json& messages) {
  const auto cancel = make<Cancel>(optima_cancel_create);
  const std::vector<int32_t> prompt = chat_prompt(loaded.model.get(), messages);
  Stream stream;
  stream.cancel = cancel.get();
  stream.interrupted = [] {
    has_text.store(true);
    return interrupted();
  };
  stop_wanted.store(false);
  has_text.store(false);
  latch.store(cancel.get());
  struct Unlatch {
    ~Unlatch() { latch.store(nullptr); }
  } unlatch;
  generate(session, prompt, args.generation, stream);
  write_out("\n");
  return stream.so_far;
}

void chat(const Args& args) {
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
  const Session session = make_session(loaded, args.session);
  const bool interactive = isatty(STDIN_FILENO) == 1;
  if (interactive) std::fprintf(stderr, "Ctrl-C stops an answer, Ctrl-D ends.\n");
  Json messages = Json::array();
  if (!args.system.empty()) messages.push_back({{"role", "system"}, {"content", args.system}});
  catch_interrupts();
  while (true) {
    if (interactive) std::fprintf(stderr, "> ");
    const std::optional<std::string> line = read_line();
    if (!line) break;
    if (line->empty()) {
      if (interactive) std::fprintf(stderr, "\n");
      continue;
    }
    messages.push_back({{"role", "user"}, {"content", *line}});
    try {
      const std::string text = answer(loaded, session.get(), args, messages);
      if (text.empty() && stop_wanted.load()) {
        messages.erase(messages.end() - 1);  // It was stopped before it was read.
      } else {
        messages.push_back({{"role", "assistant"}, {"content", text}});
      }
    } catch (const Failure& failure) {
      // A person can shorten the message and go on; a script must notice.
      if (!interactive) throw;
      std::fprintf(stderr, "optima: %s\n", failure.what());
      messages.erase(messages.end() - 1);
    }
  }
  if (interactive) std::fprintf(stderr, "\n");
}

}  // namespace

void add_chat(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command("chat", "A conversation; each line of stdin is a message");
  add_model_options(command, args->model);
  add_generation_options(command, args->generation);
  add_draft_options(command, args->model, args->generation.draft_tokens);
  add_context_option(command, args->session);
  add_kv_type_option(command, args->session);
  command.text("--system", args->system, "system message");
  command.action([args] { chat(*args); });
}

}  // namespace cli
