// String-keyed options: every kind of value, the same checks as the structs, unknown keys refused.
#include "fixture.h"

namespace optima_test {
namespace {

Options make_options(optima_options_kind kind) {
  optima_options* options = nullptr;
  must([&](optima_error** err) { return optima_options_create(kind, &options, err); });
  return Options(options);
}

Outcome set(const Options& options, const char* key, const std::string& value) {
  return outcome_of([&](optima_error** err) {
    return optima_options_set(options.get(), key, OPTIMA_NTS, value.data(), value.size(), err);
  });
}

const optima_request_desc& desc_of(const Options& options) {
  return *static_cast<const optima_request_desc*>(optima_options_struct(options.get()));
}

TEST(OptionsTest, EveryKindOfRequestValue) {
  const Options options = make_options(OPTIMA_OPTIONS_REQUEST);
  const std::pair<const char*, const char*> rows[] = {
      {"prompt", "old market"},
      {"max_tokens", "7"},
      {"temperature", "0.25"},
      {"top_k", "40"},
      {"top_p", "0.9"},
      {"seed", "18446744073709551615"},
      {"logit_bias", "5:-1.5,6:2"},
      {"stop_tokens", "1,2,3"},
      {"logits_positions", "0,4"},
      {"stops", "\n\n"},
      {"stops", "<end>"},
      {"logits_capacity", "594"},
      {"ignore_eos", "1"},
      {"show_special", "true"},
      {"deadline_ms", "60000"},
      {"prompt_logprobs", "1"},
      {"prompt_logprobs", "0"},
      {"logprobs", "3"},
  };
  for (const auto& [key, value] : rows) {
    EXPECT_EQ(set(options, key, value).status, OPTIMA_OK) << key;
  }
  const optima_request_desc& desc = desc_of(options);
  EXPECT_EQ(desc.struct_size, sizeof desc);
  EXPECT_EQ(std::string(desc.prompt, desc.prompt_bytes), "old market");
  EXPECT_EQ(desc.max_tokens, 7);
  EXPECT_FLOAT_EQ(desc.temperature, 0.25f);
  EXPECT_EQ(desc.top_k, 40);
  EXPECT_EQ(desc.seed, UINT64_MAX);
  ASSERT_EQ(desc.logit_bias_count, 2u);
  EXPECT_EQ(desc.logit_bias[0].token, 5);
  EXPECT_FLOAT_EQ(desc.logit_bias[0].bias, -1.5f);
  ASSERT_EQ(desc.stop_token_count, 3u);
  EXPECT_EQ(desc.stop_tokens[2], 3);
  ASSERT_EQ(desc.logits_position_count, 2u);
  EXPECT_EQ(desc.logits_positions[1], 4);
  ASSERT_EQ(desc.stop_count, 2u);
  EXPECT_EQ(std::string(desc.stops[0], desc.stop_bytes[0]), "\n\n");
  EXPECT_EQ(std::string(desc.stops[1], desc.stop_bytes[1]), "<end>");
  EXPECT_EQ(desc.logits_capacity, 594u);
  EXPECT_EQ(desc.flags, OPTIMA_REQUEST_IGNORE_EOS | OPTIMA_REQUEST_SHOW_SPECIAL);
  EXPECT_EQ(desc.deadline_ms, 60000);
}

TEST(OptionsTest, ConstantsAndCpuLists) {
  const Options engine = make_options(OPTIMA_OPTIONS_ENGINE);
  EXPECT_EQ(set(engine, "drive", "host").status, OPTIMA_OK);
  EXPECT_EQ(set(engine, "affinity", "0-2,64").status, OPTIMA_OK);
  const auto* options =
      static_cast<const optima_engine_options*>(optima_options_struct(engine.get()));
  EXPECT_EQ(options->drive, OPTIMA_DRIVE_HOST);
  ASSERT_EQ(options->affinity_words, 2u);
  EXPECT_EQ(options->affinity[0], 7u);
  EXPECT_EQ(options->affinity[1], 1u);
  const Options session = make_options(OPTIMA_OPTIONS_SESSION);
  EXPECT_EQ(set(session, "path", "reference").status, OPTIMA_OK);
  EXPECT_EQ(set(session, "kv_type", "q8_0").status, OPTIMA_OK);
  const Outcome outcome = set(session, "path", "quick");
  EXPECT_EQ(outcome.status, OPTIMA_E_ARG);
  EXPECT_NE(outcome.message().find("fast, reference"), std::string::npos) << outcome.message();
}

TEST(OptionsTest, BadKeysAndValues) {
  const Options request = make_options(OPTIMA_OPTIONS_REQUEST);
  struct Row {
    const char* key;
    const char* value;
    optima_status status;
  };
  const Row rows[] = {
      {"temprature", "1", OPTIMA_E_UNSUPPORTED},
      {"flags", "1", OPTIMA_E_UNSUPPORTED},
      {"struct_size", "1", OPTIMA_E_UNSUPPORTED},
      {"threads", "1", OPTIMA_E_UNSUPPORTED},
      {"", "1", OPTIMA_E_UNSUPPORTED},
      {"max_tokens", "", OPTIMA_E_ARG},
      {"max_tokens", "7x", OPTIMA_E_ARG},
      {"max_tokens", " 7", OPTIMA_E_ARG},
      {"max_tokens", "1e3", OPTIMA_E_ARG},
      {"top_k", "4294967296", OPTIMA_E_ARG},
      {"seed", "-1", OPTIMA_E_ARG},
      {"temperature", "warm", OPTIMA_E_ARG},
      {"prompt_ids", "1,,2", OPTIMA_E_ARG},
      {"prompt_ids", "1,", OPTIMA_E_ARG},
      {"logit_bias", "5", OPTIMA_E_ARG},
      {"ignore_eos", "yes", OPTIMA_E_ARG},
      {"cancel", "1", OPTIMA_E_ARG},
  };
  for (const Row& row : rows) {
    const Outcome outcome = set(request, row.key, row.value);
    EXPECT_EQ(outcome.status, row.status) << row.key << "=" << row.value;
    EXPECT_NE(outcome.message().find(row.key), std::string::npos) << outcome.message();
  }
  const Options engine = make_options(OPTIMA_OPTIONS_ENGINE);
  EXPECT_EQ(set(engine, "affinity", "3-1").status, OPTIMA_E_ARG);
  EXPECT_EQ(set(engine, "affinity", "0-99999999").status, OPTIMA_E_ARG);
  optima_options* none = nullptr;
  for (const int32_t kind : {0, 7, -1, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(optima_options_create(kind, &none, nullptr), OPTIMA_E_UNSUPPORTED);
    EXPECT_EQ(none, nullptr);
  }
}

TEST(OptionsTest, PointersAreSetApart) {
  const Options request = make_options(OPTIMA_OPTIONS_REQUEST);
  int cookie = 0;
  EXPECT_EQ(optima_options_set_pointer(request.get(), "user", OPTIMA_NTS, &cookie, nullptr),
            OPTIMA_OK);
  EXPECT_EQ(desc_of(request).user, &cookie);
  EXPECT_EQ(optima_options_set_pointer(request.get(), "seed", OPTIMA_NTS, &cookie, nullptr),
            OPTIMA_E_ARG);
  EXPECT_EQ(optima_options_set_pointer(request.get(), "nobody", OPTIMA_NTS, &cookie, nullptr),
            OPTIMA_E_UNSUPPORTED);
}

TEST(OptionsTest, TheWholeWayWithoutAStruct) {
  const Options engine_options = make_options(OPTIMA_OPTIONS_ENGINE);
  set(engine_options, "threads", "1");
  optima_engine* raw_engine = nullptr;
  must([&](optima_error** err) {
    const void* options = optima_options_struct(engine_options.get());
    return optima_engine_create(static_cast<const optima_engine_options*>(options), &raw_engine,
                                err);
  });
  const Engine engine(raw_engine);
  const Model model = open_tiny(engine);
  const Session session = make_session(model);
  const auto golden = tiny_golden();
  const Options request = make_options(OPTIMA_OPTIONS_REQUEST);
  set(request, "prompt", golden["prompt"]);
  set(request, "ignore_eos", "1");
  set(request, "max_tokens", std::to_string(golden["continuation_ids"].size()));
  const Result result = generate(session, desc_of(request));
  EXPECT_EQ(token_ids(result), golden["continuation_ids"].get<std::vector<int32_t>>());
}

}  // namespace
}  // namespace optima_test
