// The text form: every line is one that Prometheus' grammar allows, histograms are cumulative, and
// vLLM's names are those that its dashboards ask for.
#include "engine/metrics.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace optima::engine {
namespace {

Metrics some() {
  Metrics m;
  m.requests_running = 3;
  m.kv_bytes_budget = 200;
  m.kv_bytes_held = 50;
  m.prompt_tokens = 70;
  m.prompt_tokens_cached = 32;
  m.finished = {0, 5, 2, 1, 0, 0, 4, 0, 0, 0};
  m.first_token_s.add(0.003);
  m.first_token_s.add(0.02);
  m.first_token_s.add(99);
  return m;
}

bool has(const std::string& all, const std::string& line) {
  return all.find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, EveryLineIsPrometheusText) {
  const std::regex comment("# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+");
  const std::regex sample(
      R"re([a-zA-Z_:][a-zA-Z0-9_:]*\{([a-z_]+="([^"\\]|\\.)*",?)+\} [-+0-9.eInf]+)re");
  for (const MetricNames names : {MetricNames::native, MetricNames::vllm}) {
    std::istringstream lines(render_metrics(some(), names, "a\"b\\c\nd"));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count)
      EXPECT_TRUE(std::regex_match(line, line[0] == '#' ? comment : sample)) << line;
    EXPECT_GT(count, 100);
  }
}

TEST(Metrics, ValuesAreThere) {
  const std::string out = render_metrics(some(), MetricNames::native, "e");
  EXPECT_TRUE(has(out, "optima_requests_running{engine=\"e\"} 3"));
  EXPECT_TRUE(has(out, "optima_kv_usage_ratio{engine=\"e\"} 0.25"));
  EXPECT_TRUE(has(out, "optima_prefix_hits_total{engine=\"e\"} 32"));
  EXPECT_TRUE(has(out, "optima_requests_total{engine=\"e\",finished_reason=\"cancelled\"} 4"));
  EXPECT_TRUE(has(out, "optima_first_token_seconds_bucket{engine=\"e\",le=\"0.001\"} 0"));
  EXPECT_TRUE(has(out, "optima_first_token_seconds_bucket{engine=\"e\",le=\"0.005\"} 1"));
  EXPECT_TRUE(has(out, "optima_first_token_seconds_bucket{engine=\"e\",le=\"0.02\"} 2"))
      << "a bound belongs to its bucket";
  EXPECT_TRUE(has(out, "optima_first_token_seconds_bucket{engine=\"e\",le=\"10\"} 2"));
  EXPECT_TRUE(has(out, "optima_first_token_seconds_bucket{engine=\"e\",le=\"+Inf\"} 3"));
  EXPECT_TRUE(has(out, "optima_first_token_seconds_count{engine=\"e\"} 3"));
  EXPECT_TRUE(has(out, "optima_first_token_seconds_sum{engine=\"e\"} 99.023"));
}

TEST(Metrics, NamesOfVllm) {
  const std::string out = render_metrics(some(), MetricNames::vllm, "e");
  EXPECT_TRUE(has(out, "vllm:num_requests_running{engine=\"e\"} 3"));
  EXPECT_TRUE(has(out, "vllm:prefix_cache_queries_total{engine=\"e\"} 70"));
  EXPECT_TRUE(has(out, "vllm:request_success_total{engine=\"e\",finished_reason=\"stop\"} 7"));
  EXPECT_TRUE(has(out, "vllm:request_success_total{engine=\"e\",finished_reason=\"abort\"} 4"));
  EXPECT_EQ(out.find("optima_"), std::string::npos);
  // A name is described once, whatever its labels.
  const std::string type = "# TYPE vllm:request_success_total";
  EXPECT_EQ(out.find(type), out.rfind(type));
}

}  // namespace
}  // namespace optima::engine
