// Normalisation by the tables of two packages; whole texts are the business of the goldens.
// Expected values: Python's unicodedata 14.0.0, and NFC of tokenizers 0.23.3.
#include "tokenizer/normalize.h"

#include <gtest/gtest.h>

namespace optima::tokenizer {
namespace {

std::string newest_nfc(std::string_view text) {
  return normalize(text, NormalizationForm::nfc, NormalizationTables::newest);
}

TEST(Normalize, TablesDifferInMarksOfUnicode11Only) {
  EXPECT_EQ(newest_nfc("\u0951\U00011839"), "\U00011839\u0951");
  EXPECT_EQ(to_nfc("\u0951\U00011839"), "\u0951\U00011839");
  EXPECT_EQ(newest_nfc("e\u0301\u0323"), "\u1EB9\u0301");
  EXPECT_EQ(to_nfc("e\u0301\u0323"), "\u1EB9\u0301");
}

TEST(Normalize, BytesThatAreNoTextStay) {
  EXPECT_EQ(newest_nfc("e\xFF\u0301"), "e\xFF\u0301");
  EXPECT_EQ(to_nfc("e\xFF\u0301"), "e\xFF\u0301");
}

}  // namespace
}  // namespace optima::tokenizer
