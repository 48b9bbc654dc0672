// optima embed: texts in, one vector each out. All texts run together, as many in a pass as fit.
#include <array>
#include <charconv>

#include "cli_util.h"
#include "commands.h"

namespace cli {
namespace {

struct Args {
  ModelArgs model;
  SessionArgs session;
  std::vector<std::string> texts;
  std::string pooling = "model";
  std::string normalise = "model";
  bool no_add_special = false;
  bool json = false;
};

// The number of a name among those of the constants, which count from 0.
template <size_t kCount>
int32_t index_of(const std::string& name, const std::array<const char*, kCount>& names,
                 const char* option) {
  std::string known;
  for (size_t i = 0; i < kCount; ++i) {
    if (name == names[i]) return static_cast<int32_t>(i);
    known += std::string(i == 0 ? "" : ", ") + names[i];
  }
  throw Failure(std::string(option) + " " + name + ": known are " + known, kExitUsage);
}

std::string shortest(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "?";
}

struct Vectors {
  std::vector<float> values;
  size_t width = 0;
};

Vectors embed(const LoadedModel& loaded, const Args& args) {
  auto options = sized<optima_session_options>();
  options.context_tokens = args.session.context_tokens;
  options.path = path_of(args.session);
  options.kv_type = kv_type_of(args.session);
  options.output = OPTIMA_OUTPUT_EMBEDDING;
  const auto session = make<Session>(optima_session_create, loaded.model.get(), &options);
  auto desc = sized<optima_request_desc>();
  desc.pooling = index_of<4>(args.pooling, {"model", "mean", "cls", "last"}, "--pooling");
  desc.normalise = index_of<3>(args.normalise, {"model", "off", "l2"}, "--normalise");
  if (args.no_add_special) desc.flags |= OPTIMA_REQUEST_NO_ADD_SPECIAL;
  std::vector<const char*> texts;
  std::vector<size_t> bytes;
  for (const std::string& text : args.texts) {
    texts.push_back(text.data());
    bytes.push_back(text.size());
  }
  const auto buffer = make<Buffer>(optima_embed_texts, session.get(), &desc, texts.data(),
                                   bytes.data(), texts.size());
  int64_t count = 0;
  const float* values = optima_buffer_floats(buffer.get(), &count);
  return {{values, values + count}, static_cast<size_t>(loaded.info.embedding_width)};
}

void print(const Vectors& vectors, const Args& args) {
  Json all = Json::array();
  std::string lines;
  for (size_t i = 0; i < args.texts.size(); ++i) {
    const auto begin = vectors.values.begin() + static_cast<ptrdiff_t>(i * vectors.width);
    const std::vector<float> one(begin, begin + static_cast<ptrdiff_t>(vectors.width));
    if (args.json) {
      all.push_back({{"text", args.texts[i]}, {"embedding", one}});
      continue;
    }
    for (size_t k = 0; k < one.size(); ++k) lines += (k == 0 ? "" : " ") + shortest(one[k]);
    lines += '\n';
  }
  if (args.json) {
    write_json({{"width", vectors.width}, {"embeddings", all}});
  } else {
    write_out(lines);
  }
}

void embed_command(Args args) {
  if (args.texts.empty()) args.texts.push_back(given_or_stdin(std::nullopt));
  const LoadedModel loaded = open_model(args.model, OPTIMA_CONTENT_FULL);
  print(embed(loaded, args), args);
}

}  // namespace

void add_embed(Program& program) {
  const auto args = std::make_shared<Args>();
  Command command = program.command("embed", "Embeddings: one vector of each text");
  add_model_options(command, args->model);
  add_context_option(command, args->session);
  add_path_options(command, args->session);
  command.list("TEXT,-p,--prompt", args->texts, "text, one or several (else stdin)");
  command.text("--pooling", args->pooling, "model (its own way), mean, cls or last");
  command.text("--normalise", args->normalise, "model (its own way), off or l2");
  command.flag("--no-add-special", args->no_add_special, "no BOS or EOS by the file's rule");
  command.flag("--json", args->json, "print one JSON object");
  command.action([args] { embed_command(*args); });
}

}  // namespace cli
