// tokenize_stdin VOCABULARY [KIND]: reads cases (flags, text) on stdin, writes the ids of each on
// stdout, both in the encoding of vocabulary_file.h. Without KIND the file is such a vocabulary or
// a tokenizer.json. With flag 4 the ids are followed by the bytes that they decode to. Driven by
// the scripts of tests/long.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "tests/tokenizer/vocabulary_file.h"
#include "tokenizer/hf/sentencepiece_model.h"
#include "tokenizer/hf/tiktoken.h"
#include "tokenizer/hf/tokenizer_json.h"

namespace {

void write_number(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

int fail(const std::string& message) {
  std::cerr << "tokenize_stdin: " << message << '\n';
  return 1;
}

// `kind`: vocabulary (a file as vocabulary_file.h has it), json (tokenizer.json), sentencepiece,
// tekken, or a family of tiktoken files.
optima::Result<std::unique_ptr<optima::tokenizer::Tokenizer>> load(std::string_view kind,
                                                                   const std::string& bytes) {
  using namespace optima::tokenizer;
  if (kind == "json") return load_tokenizer_json(bytes, {});
  if (kind == "sentencepiece") return load_sentencepiece_model(bytes, {});
  if (kind == "tekken") return load_tekken(bytes);
  if (kind != "vocabulary") return load_tiktoken(bytes, kind);
  FileReader reader(bytes);
  VocabularyFile file;
  if (!file.read(reader)) return optima::Status(optima::Code::format, "the vocabulary is damaged");
  return Tokenizer::create(file.spec());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace optima::tokenizer;
  if (argc < 2 || argc > 3) return fail("usage: tokenize_stdin VOCABULARY [KIND] < CASES");
  const std::optional<std::string> bytes = read_file(argv[1]);
  if (!bytes) return fail("cannot read the vocabulary");
  auto tokenizer = load(argc == 3                 ? argv[2]
                        : bytes->starts_with('{') ? "json"
                                                  : "vocabulary",
                        *bytes);
  if (!tokenizer) return fail(tokenizer.status().message());

  const std::string input(std::istreambuf_iterator<char>(std::cin), {});
  FileReader reader(input);
  std::string output;
  while (!reader.at_end()) {
    const uint64_t flags = reader.number();
    const std::string_view text = reader.string();
    if (!reader.ok()) return fail("the cases are damaged");
    auto ids = (*tokenizer)
                   ->encode(text, (flags & 1) != 0 ? Special::add : Special::omit,
                            (flags & 2) != 0 ? SpecialText::parse : SpecialText::literal);
    if (!ids) return fail(ids.status().message());
    write_number(ids->size(), output);
    for (const int32_t id : *ids) write_number(static_cast<uint64_t>(id), output);
    if ((flags & 4) == 0) continue;
    auto decoded =
        (*tokenizer)->decode(*ids, (flags & 2) != 0 ? SpecialText::parse : SpecialText::literal);
    if (!decoded) return fail(decoded.status().message());
    write_number(decoded->size(), output);
    output.append(*decoded);
  }
  std::fwrite(output.data(), 1, output.size(), stdout);
  return 0;
}
