// grammar_stdin VOCABULARY: commands on stdin, one a line, one line of answer each. Texts are in
// hexadecimal. tests/long/schema_walks.py and grammar_bench.py drive it.
//
//   json | schema TEXT | gbnf TEXT | regex TEXT   compiles      -> ok STATES | error CODE MESSAGE
//   walk SEED TOKENS                               random walk  -> ended TEXT | unfinished TEXT
//   accept TEXT                                    a whole text -> yes | no OFFSET | incomplete
//   time TEXT       the text token by token, the longest that is allowed and fits each time
//                   -> time TOKENS MASK_US_MEAN MASK_US_MAX ACCEPT_US_MEAN
//
// VOCABULARY has a line for each token: t (text), c (control) or e (end), a blank, its bytes in
// hexadecimal.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sampling/grammar/grammar.h"

namespace {

using namespace optima;
using namespace optima::sampling;
using Clock = std::chrono::steady_clock;

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

std::string to_hex(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    out.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    out.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return out;
}

std::string error_line(const Status& status) {
  std::string message = status.message();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return "error " + std::to_string(static_cast<int>(status.code())) + " " + message;
}

std::shared_ptr<const TokenTable> read_table(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> bytes;
  std::vector<TokenUse> uses;
  for (std::string line; std::getline(file, line);) {
    uses.push_back(line[0] == 't'   ? TokenUse::text
                   : line[0] == 'e' ? TokenUse::end
                                    : TokenUse::control);
    bytes.push_back(from_hex(line.substr(2)));
  }
  const std::vector<std::string_view> views(bytes.begin(), bytes.end());
  return TokenTable::create(views, uses).take();
}

// An allowed token at random. In a hurry, of some, among them all of one byte, that which leaves
// the shortest way to an end.
int32_t choose(const GrammarState& state, const TokenMask& mask, const TokenTable& table,
               bool hurry, std::mt19937_64& random) {
  std::vector<int32_t> allowed;
  for (size_t word = 0; word < mask.words.size(); ++word)
    for (uint64_t bits = mask.words[word]; bits != 0; bits &= bits - 1)
      allowed.push_back(static_cast<int32_t>(word * 64) + __builtin_ctzll(bits));
  if (!hurry) return allowed[random() % allowed.size()];
  std::vector<int32_t> candidates;
  for (int i = 0; i < 8; ++i) candidates.push_back(allowed[random() % allowed.size()]);
  for (const int32_t token : allowed)
    if (table.bytes(token).size() < 2) candidates.push_back(token);
  int32_t best = -1;
  int64_t best_distance = 0;
  for (const int32_t token : candidates) {
    if (table.use(token) == TokenUse::end) return token;
    GrammarState next = state;
    if (!next.accept(token).ok()) continue;
    const int64_t distance = next.bytes_to_end();
    if (best < 0 || distance < best_distance) best = token, best_distance = distance;
  }
  return best;
}

std::string walk(const std::shared_ptr<const Grammar>& grammar, uint64_t seed, int tokens_max) {
  std::mt19937_64 random(seed);
  GrammarState state(grammar);
  std::string text;
  for (int step = 0; step < tokens_max; ++step) {
    Result<std::shared_ptr<const TokenMask>> mask = state.mask();
    if (!mask.ok()) return error_line(mask.status()) + " after " + to_hex(text);
    if (state.can_end() && random() % 4 == 0) return "ended " + to_hex(text);
    const bool hurry = step > tokens_max / 8;
    const int32_t token = choose(state, **mask, grammar->tokens(), hurry, random);
    const Status status = state.accept(token);
    if (!status.ok()) return error_line(status) + " after " + to_hex(text);
    if (grammar->tokens().use(token) == TokenUse::end) return "ended " + to_hex(text);
    text += grammar->tokens().bytes(token);
  }
  return "unfinished " + to_hex(text);
}

std::string accept(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarState state(grammar);
  const Status status = state.accept_text(text);
  if (!status.ok()) return "no " + std::to_string(status.numbers().wanted) + " " + status.message();
  return state.can_end() ? "yes" : "incomplete";
}

int32_t longest_that_fits(const TokenMask& mask, const TokenTable& table, std::string_view text) {
  for (const int32_t token : table.by_length())
    if (mask.allows(token) && text.starts_with(table.bytes(token))) return token;
  return -1;
}

std::string time(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarState state(grammar);
  double mask_sum = 0, mask_max = 0, accept_sum = 0;
  int count = 0;
  while (!text.empty()) {
    const auto start = Clock::now();
    Result<std::shared_ptr<const TokenMask>> mask = state.mask();
    const double mask_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (!mask.ok()) return error_line(mask.status());
    const int32_t token = longest_that_fits(**mask, grammar->tokens(), text);
    if (token < 0) return "error 0 no token fits at " + std::string(text);
    const auto before = Clock::now();
    const Status status = state.accept(token);
    accept_sum += std::chrono::duration<double, std::micro>(Clock::now() - before).count();
    if (!status.ok()) return error_line(status);
    text.remove_prefix(grammar->tokens().bytes(token).size());
    mask_sum += mask_us;
    mask_max = std::max(mask_max, mask_us);
    ++count;
  }
  std::ostringstream out;
  out << "time " << count << ' ' << mask_sum / count << ' ' << mask_max << ' '
      << accept_sum / count;
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: grammar_stdin VOCABULARY < COMMANDS\n";
    return 1;
  }
  const std::shared_ptr<const TokenTable> table = read_table(argv[1]);
  std::shared_ptr<const Grammar> grammar;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string command, argument;
    in >> command;
    if (command == "walk") {
      uint64_t seed = 0;
      int tokens = 0;
      in >> seed >> tokens;
      std::cout << walk(grammar, seed, tokens) << std::endl;
      continue;
    }
    in >> argument;
    const std::string text = from_hex(argument);
    if (command == "accept" || command == "time") {
      std::cout << (command == "time" ? time(grammar, text) : accept(grammar, text)) << std::endl;
      continue;
    }
    const GrammarKind kind = command == "json"     ? GrammarKind::json
                             : command == "schema" ? GrammarKind::json_schema
                             : command == "gbnf"   ? GrammarKind::gbnf
                                                   : GrammarKind::regex;
    Result<std::shared_ptr<const Grammar>> compiled = Grammar::compile({kind, text}, table);
    if (compiled.ok()) grammar = compiled.take();
    std::cout << (compiled.status().ok() ? "ok " + std::to_string(grammar->state_count())
                                         : error_line(compiled.status()))
              << std::endl;
  }
}
