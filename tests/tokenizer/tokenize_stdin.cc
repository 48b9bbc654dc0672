// tokenize_stdin VOCABULARY [KIND]: reads frames of cases on stdin and writes their ids on stdout;
// one run serves millions of cases. Without KIND the file is a vocabulary of vocabulary_file.h or a
// tokenizer.json. Driven by the scripts of tests/long.
//
// A frame: u64 bytes of what follows; then, in the encoding of vocabulary_file.h, flags (1 = with
// special tokens added, 2 = special tokens parsed, 4 = decode too), the number of cases, the texts.
// Its answer: u64 ids in all; u32 ids of each case; the ids as u32; with flag 4 also u64 bytes in
// all, u32 bytes of each case, the bytes that the ids decode to; then u64 nanoseconds of all
// encoding, u64 the case that took longest for its size, u64 its nanoseconds.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "tests/tokenizer/vocabulary_file.h"
#include "tokenizer/hf/sentencepiece_model.h"
#include "tokenizer/hf/tiktoken.h"
#include "tokenizer/hf/tokenizer_json.h"

static_assert(std::endian::native == std::endian::little);

namespace {

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

using optima::tokenizer::Special;
using optima::tokenizer::SpecialText;
using optima::tokenizer::Tokenizer;
using Ids = std::vector<int32_t>;

struct Frame {
  Special special = Special::omit;
  SpecialText special_text = SpecialText::literal;
  bool decodes = false;
  std::vector<std::string_view> texts;
};

class Server {
 public:
  explicit Server(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // False at the end of the input, or with error() when something is wrong.
  bool answer_one() {
    uint64_t bytes = 0;
    if (std::fread(&bytes, sizeof bytes, 1, stdin) != 1) return false;
    request_.resize(bytes);
    Frame frame;
    if (std::fread(request_.data(), 1, bytes, stdin) != bytes || !read(frame)) {
      return report("the cases are damaged");
    }
    std::vector<Ids> answers(frame.texts.size());
    const bool done =
        encode(frame, answers) && (!frame.decodes || decode(frame, answers)) && !failed();
    std::fflush(stdout);
    return done;
  }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  bool report(const std::string& message) {
    error_ = message;
    return false;
  }

  bool read(Frame& frame) const {
    optima::tokenizer::FileReader reader(request_);
    const uint64_t flags = reader.number();
    frame.special = (flags & 1) != 0 ? Special::add : Special::omit;
    frame.special_text = (flags & 2) != 0 ? SpecialText::parse : SpecialText::literal;
    frame.decodes = (flags & 4) != 0;
    frame.texts.resize(std::min<uint64_t>(reader.number(), request_.size()));
    for (std::string_view& text : frame.texts) text = reader.string();
    return reader.ok() && reader.at_end();
  }

  bool encode_one(const Frame& frame, size_t which, Ids& ids, uint64_t& nanoseconds) {
    const auto begin = std::chrono::steady_clock::now();
    auto made = tokenizer_.encode(frame.texts[which], frame.special, frame.special_text);
    nanoseconds = static_cast<uint64_t>((std::chrono::steady_clock::now() - begin).count());
    if (!made) return report(made.status().message());
    ids = made.take();
    return true;
  }

  bool encode(const Frame& frame, std::vector<Ids>& answers) {
    uint64_t total = 0;
    std::vector<uint64_t> times(frame.texts.size());
    for (size_t i = 0; i < frame.texts.size(); ++i) {
      if (!encode_one(frame, i, answers[i], times[i])) return false;
      total += times[i];
    }
    put_lists(answers);
    if (!frame.decodes) return put_times(frame, times, total);
    total_ = total;
    times_ = std::move(times);
    return true;
  }

  bool decode(const Frame& frame, const std::vector<Ids>& answers) {
    std::vector<std::string> texts;
    for (const Ids& ids : answers) {
      auto decoded = tokenizer_.decode(ids, frame.special_text);
      if (!decoded) return report(decoded.status().message());
      texts.push_back(decoded.take());
    }
    put_lists(texts);
    return put_times(frame, times_, total_);
  }

  // The slowest is timed again: other work of the machine may have come between.
  bool put_times(const Frame& frame, std::vector<uint64_t>& times, uint64_t total) {
    constexpr double kBytesOfCall = 64;  // a call costs about as much as that many bytes
    const auto cost = [&](size_t i) {
      return static_cast<double>(times[i]) /
             (static_cast<double>(frame.texts[i].size()) + kBytesOfCall);
    };
    size_t slowest = 0;
    for (int tries = 0; tries < 8 && !times.empty(); ++tries) {
      for (size_t i = 0; i < times.size(); ++i) slowest = cost(i) > cost(slowest) ? i : slowest;
      const double before = cost(slowest);
      for (int again = 0; again < 3; ++again) {
        Ids ids;
        uint64_t time = 0;
        if (!encode_one(frame, slowest, ids, time)) return false;
        times[slowest] = std::min(times[slowest], time);
      }
      if (cost(slowest) > 0.8 * before) break;
    }
    put(total);
    put(static_cast<uint64_t>(slowest));
    put(times.empty() ? uint64_t{0} : times[slowest]);
    return true;
  }

  template <typename List>
  void put_lists(const std::vector<List>& lists) {
    uint64_t total = 0;
    for (const List& list : lists) total += list.size();
    put(total);
    for (const List& list : lists) put(static_cast<uint32_t>(list.size()));
    for (const List& list : lists) std::fwrite(list.data(), sizeof list[0], list.size(), stdout);
  }
  template <typename Number>
  void put(Number value) {
    std::fwrite(&value, sizeof value, 1, stdout);
  }

  const Tokenizer& tokenizer_;
  std::string request_, error_;
  std::vector<uint64_t> times_;
  uint64_t total_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return fail("usage: tokenize_stdin VOCABULARY [KIND] < FRAMES");
  const std::optional<std::string> bytes = optima::tokenizer::read_file(argv[1]);
  if (!bytes) return fail("cannot read the vocabulary");
  auto tokenizer = load(argc == 3                 ? argv[2]
                        : bytes->starts_with('{') ? "json"
                                                  : "vocabulary",
                        *bytes);
  if (!tokenizer) return fail(tokenizer.status().message());
  Server server(**tokenizer);
  while (server.answer_one()) continue;
  return server.failed() ? fail(server.error()) : 0;
}
