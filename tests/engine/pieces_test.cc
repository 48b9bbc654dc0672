// How a product is cut for threads: any order of taking the pieces computes each row once.
#include "backend/cpu/pieces.h"

#include <gtest/gtest.h>

namespace optima::backend::cpu {
namespace {

TEST(Pieces, CoverEachGranuleOnceAndDoNotGrow) {
  for (const int threads : {1, 2, 3, 8, 64}) {
    for (const int64_t granules : {0, 1, 2, 3, 7, 18, 30, 64, 97, 512, 4007}) {
      const Pieces pieces(granules, threads);
      int64_t reached = 0;
      int64_t size = granules;
      int64_t index = 0;
      for (; pieces.at(index).begin < pieces.at(index).end; ++index) {
        const Granules piece = pieces.at(index);
        EXPECT_EQ(piece.begin, reached) << granules << " for " << threads;
        EXPECT_LE(piece.end - piece.begin, size) << granules << " for " << threads;
        size = piece.end - piece.begin;
        reached = piece.end;
      }
      EXPECT_EQ(reached, granules) << "for " << threads;
      // Behind the last there is nothing, however often one asks.
      for (int64_t more = 0; more < 3 * threads; ++more)
        EXPECT_EQ(pieces.at(index + more).begin, pieces.at(index + more).end);
    }
  }
}

// No thread waits for long: the last pieces are at most a sixteenth of a thread's share, or one.
TEST(Pieces, EndShort) {
  for (const int threads : {2, 5, 16}) {
    for (const int64_t granules : {64, 512, 4007}) {
      const Pieces pieces(granules, threads);
      int64_t last = 0;
      while (pieces.at(last + 1).begin < pieces.at(last + 1).end) ++last;
      const Granules piece = pieces.at(last);
      EXPECT_LE(piece.end - piece.begin, std::max<int64_t>(1, granules / (16 * threads)));
      EXPECT_EQ(pieces.at(0).end, std::max<int64_t>(1, granules / (2 * threads)));
    }
  }
}

}  // namespace
}  // namespace optima::backend::cpu
