// How far a run is from an earlier one of the same ids, position by position: the Kullback-Leibler
// divergence of the next token's distributions, KL(earlier || this), in nats. Perplexity alone does
// not show what a smaller KV cache or fewer bits change; this does.
//
// The earlier run's logits lie in a file: a header of 48 bytes (BaseHeader, little-endian), then a
// row of float [vocabulary] for each scored position, in order.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli_util.h"

namespace cli {

// What two runs must have in common.
struct BaseHeader {
  char magic[8];  // "OPTIMAKL"
  int64_t version;
  int64_t vocabulary;
  int64_t window;     // ids in a window
  int64_t windows;    // of them
  uint64_t ids_hash;  // FNV-1a of the ids that were scored
};
BaseHeader base_header(const std::vector<int32_t>& ids, int64_t window, int64_t vocabulary);

// Both throw Failure, with the path, where the file cannot be written or read in full.
class BaseWriter {
 public:
  BaseWriter(const std::string& path, const BaseHeader& header);
  void add(std::span<const float> row);
  void finish();

 private:
  void write(const void* from, size_t bytes);
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

class BaseReader {
 public:
  // Throws also where the file is of another text, window or vocabulary.
  BaseReader(const std::string& path, const BaseHeader& wanted);
  // The next row; valid until the next call.
  std::span<const float> next();

 private:
  void read(void* into, size_t bytes);
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::vector<float> row_;
};

// -log of the probability of `id`, in double. NaN where a logit is.
double loss_of(std::span<const float> logits, int32_t id);

class Divergence {
 public:
  // Logits of both runs at a position, and the id that follows in the text; returns its loss here.
  double add(std::span<const float> base, std::span<const float> here, int32_t next);
  // {mean, mean_error (of the mean, one standard deviation), median, p999, max, same_top (share of
  // positions), rms_dp (of the probability of the text's token), perplexity_base,
  // perplexity_ratio, perplexity_ratio_error}
  Json report() const;

 private:
  std::vector<double> divergences_, probability_changes_, loss_changes_, base_losses_;
  int64_t same_top_ = 0;
};

}  // namespace cli
