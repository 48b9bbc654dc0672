// tokenize_stdin VOCABULARY: reads cases (flags, text) on stdin, writes the ids of each on stdout,
// both in the encoding of vocabulary_file.h. tests/long/tokenizer_parity.py drives it.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "tests/tokenizer/vocabulary_file.h"

namespace {

void write_number(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

int fail(const std::string& message) {
  std::cerr << "tokenize_stdin: " << message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace optima::tokenizer;
  if (argc != 2) return fail("usage: tokenize_stdin VOCABULARY < CASES");
  const std::optional<std::string> bytes = read_file(argv[1]);
  if (!bytes) return fail("cannot read the vocabulary");
  FileReader vocabulary_reader(*bytes);
  VocabularyFile file;
  if (!file.read(vocabulary_reader)) return fail("the vocabulary is damaged");
  auto tokenizer = Tokenizer::create(file.spec());
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
  }
  std::fwrite(output.data(), 1, output.size(), stdout);
  return 0;
}
