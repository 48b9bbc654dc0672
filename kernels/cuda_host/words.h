// What the host half's words ask of the thread that runs them. ce_host.h has the words themselves:
// they are compiled with the kernels, so that sanitizers see each access to memory as the kernel's;
// what is declared here lies in files of its own, which ThreadSanitizer does not look into.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/ce_types.h"

namespace optima::cuda_host {

// A place in a kernel's source. As a default argument it is the place of the call.
struct Site {
  const char* file = "";
  int line = 0;
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// What a thread knows of itself.
struct View {
  int thread = 0;
  int threads = 0;
  ce::Dim block;
  ce::Dim grid;
  void* owner = nullptr;  // the Thread whose view it is
};

// The words by which a warp meets. Lanes that meet must have said the same one.
enum class WarpWord : int32_t {
  syncwarp = 0,
  shfl = 1,
  shfl_up = 2,
  shfl_down = 3,
  shfl_xor = 4,
  ballot = 5,
  any = 6,
  all = 7,
  ldmatrix = 8,
  mma = 9,
};
const char* warp_word_name(WarpWord word);

struct WarpCall {
  WarpWord word;
  unsigned mask;
  Site site;
};

// What a lane leaves for the others of its meeting.
struct Deposit {
  uint64_t word[8];
};

// The thread that runs on this thread of the operating system; null outside of kernels.
extern constinit thread_local const View* current;

void barrier(Site site);
// Waits for all lanes of the mask. Returns the deposits of the whole warp: those of lanes outside
// the mask are old. They stay until the lane's next meeting.
const Deposit* meet(const WarpCall& call, const Deposit& mine);
// Lets other threads take a turn: for loops that wait for a value.
void pause();
void* shared_array(const void* key, size_t bytes);
unsigned char* dynamic_shared();
// Ends the launch: `what` becomes the text of its status.
[[noreturn]] void fail(Site site, const char* what);
void check_aligned(const void* address, size_t bytes, Site site);

// Copies that happen later. defer_copy() checks the addresses; next_due() takes the oldest copy of
// any group but the last `groups_left`, and says false when there is none.
struct DueCopy {
  void* to;
  const void* from;
  int source_bytes;
};
void defer_copy(const DueCopy& copy, Site site);
void commit_copies();
bool next_due(int groups_left, DueCopy& copy);

// The parts of D = A B + C that a lane holds, from the fragments that all lanes have left:
// word[0..1] of a deposit are A's four registers, word[2] B's two.
struct MmaShape {
  int k;
  enum class Type : int32_t { f16, bf16, s8 } type;
};
void mma_floats(const MmaShape& shape, const Deposit* lanes, int lane, float (&c)[4]);
void mma_bytes(const Deposit* lanes, int lane, int (&c)[4]);

}  // namespace optima::cuda_host
