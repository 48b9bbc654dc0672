#include "divergence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cli {
namespace {

constexpr char kMagic[8] = {'O', 'P', 'T', 'I', 'M', 'A', 'K', 'L'};
constexpr int64_t kVersion = 1;

// log of the sum of exp, in double: what the logits' log-probabilities are relative to.
double normaliser_of(std::span<const float> logits) {
  double highest = logits[0];
  for (const float logit : logits) highest = std::max<double>(highest, logit);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return highest + std::log(sum);
}

// Logits, and the logarithm of the sum of their exponentials.
struct Row {
  explicit Row(std::span<const float> row) : logits(row), normaliser(normaliser_of(row)) {}
  double log_probability(size_t i) const { return logits[i] - normaliser; }
  std::span<const float> logits;
  double normaliser;
};

double divergence_of(const Row& base, const Row& here) {
  double sum = 0;
  for (size_t i = 0; i < base.logits.size(); ++i) {
    const double log_p = base.log_probability(i);
    const double p = std::exp(log_p);
    if (p > 0) sum += p * (log_p - here.log_probability(i));
  }
  return sum;
}

std::ptrdiff_t top_of(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Standard error of the mean, as if the values were independent.
double error_of_mean(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  if (count < 2) return 0;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / (count - 1) / count);
}

// The least value that `share` of the values are not above.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[static_cast<size_t>(std::max<int64_t>(rank, 1) - 1)];
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

std::string shape_of(const BaseHeader& header) {
  return std::to_string(header.windows) + " windows of " + std::to_string(header.window) +
         " ids, vocabulary " + std::to_string(header.vocabulary);
}

}  // namespace

BaseHeader base_header(const std::vector<int32_t>& ids, int64_t window, int64_t vocabulary) {
  BaseHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.vocabulary = vocabulary;
  header.window = window;
  header.windows = static_cast<int64_t>(ids.size()) / window;
  header.ids_hash = 0xcbf29ce484222325u;
  const auto scored = static_cast<size_t>(header.windows * window);
  for (const int32_t id : std::span(ids).first(scored))
    header.ids_hash = (header.ids_hash ^ static_cast<uint32_t>(id)) * 0x100000001b3u;
  return header;
}

BaseWriter::BaseWriter(const std::string& path, const BaseHeader& header)
    : path_(path), file_(std::fopen(path.c_str(), "wb"), std::fclose) {
  if (!file_) throw Failure(path + ": cannot be written");
  write(&header, sizeof header);
}

void BaseWriter::write(const void* from, size_t bytes) {
  if (std::fwrite(from, 1, bytes, file_.get()) != bytes)
    throw Failure(path_ + ": cannot write " + std::to_string(bytes) + " bytes");
}

void BaseWriter::add(std::span<const float> row) {
  write(row.data(), row.size_bytes());
}

void BaseWriter::finish() {
  if (std::fclose(file_.release()) != 0) throw Failure(path_ + ": cannot be written in full");
}

BaseReader::BaseReader(const std::string& path, const BaseHeader& wanted)
    : path_(path),
      file_(std::fopen(path.c_str(), "rb"), std::fclose),
      row_(static_cast<size_t>(wanted.vocabulary)) {
  if (!file_) throw Failure(path + ": cannot be read");
  BaseHeader header{};
  read(&header, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.version != kVersion)
    throw Failure(path + ": not written by perplexity --kl-base of this version");
  if (header.vocabulary != wanted.vocabulary || header.window != wanted.window ||
      header.windows != wanted.windows)
    throw Failure(path + " has " + shape_of(header) + "; this run has " + shape_of(wanted));
  if (header.ids_hash != wanted.ids_hash) throw Failure(path + ": is of another text");
}

void BaseReader::read(void* into, size_t bytes) {
  const size_t have = std::fread(into, 1, bytes, file_.get());
  if (have != bytes)
    throw Failure(path_ + ": ends early, " + std::to_string(have) + " of " + std::to_string(bytes) +
                  " bytes");
}

std::span<const float> BaseReader::next() {
  read(row_.data(), row_.size() * sizeof(float));
  return row_;
}

double loss_of(std::span<const float> logits, int32_t id) {
  return -Row(logits).log_probability(static_cast<size_t>(id));
}

double Divergence::add(std::span<const float> base_logits, std::span<const float> here_logits,
                       int32_t next) {
  const Row base(base_logits), here(here_logits);
  const double base_loss = -base.log_probability(static_cast<size_t>(next));
  const double here_loss = -here.log_probability(static_cast<size_t>(next));
  divergences_.push_back(divergence_of(base, here));
  probability_changes_.push_back(std::exp(-here_loss) - std::exp(-base_loss));
  loss_changes_.push_back(here_loss - base_loss);
  base_losses_.push_back(base_loss);
  same_top_ += top_of(base_logits) == top_of(here_logits);
  return here_loss;
}

Json Divergence::report() const {
  const double ratio = std::exp(mean_of(loss_changes_));
  return {{"mean", mean_of(divergences_)},
          {"mean_error", error_of_mean(divergences_)},
          {"median", median(divergences_)},
          {"p999", quantile(divergences_, 0.999)},
          {"max", quantile(divergences_, 1)},
          {"same_top", static_cast<double>(same_top_) / static_cast<double>(divergences_.size())},
          {"rms_dp", root_mean_square(probability_changes_)},
          {"perplexity_base", std::exp(mean_of(base_losses_))},
          {"perplexity_ratio", ratio},
          {"perplexity_ratio_error", ratio * error_of_mean(loss_changes_)}};
}

}  // namespace cli
