// The words of kernels as calls of the worker that runs them, and the copies of a thread. See
// words.h.
#include "kernels/cuda_host/words.h"

#include <stdio.h>

#include "kernels/cuda_host/worker.h"

namespace optima::cuda_host {
namespace {

Thread& self() {
  return *static_cast<Thread*>(current->owner);
}

}  // namespace

const char* warp_word_name(WarpWord word) {
  switch (word) {
    case WarpWord::syncwarp:
      return "syncwarp";
    case WarpWord::shfl:
      return "shfl";
    case WarpWord::shfl_up:
      return "shfl_up";
    case WarpWord::shfl_down:
      return "shfl_down";
    case WarpWord::shfl_xor:
      return "shfl_xor";
    case WarpWord::ballot:
      return "ballot";
    case WarpWord::any:
      return "any";
    case WarpWord::all:
      return "all";
    case WarpWord::ldmatrix:
      return "ldmatrix";
    case WarpWord::mma:
      return "mma";
  }
  return "?";
}

void barrier(Site site) {
  self().worker.barrier(self(), site);
}

const Deposit* meet(const WarpCall& call, const Deposit& mine) {
  return self().worker.meet(self(), call, mine);
}

void pause() {
  self().worker.pause(self());
}

void* shared_array(const void* key, size_t bytes) {
  return self().worker.shared(self(), key, bytes);
}

unsigned char* dynamic_shared() {
  return self().worker.dynamic_shared();
}

void fail(Site site, const char* what) {
  self().worker.fail(self(), site, what);
}

void check_aligned(const void* address, size_t bytes, Site site) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  char text[96];
  snprintf(text, sizeof text, "an access of %zu bytes at an address that is no multiple of it",
           bytes);
  fail(site, text);
}

void defer_copy(const DueCopy& copy, Site site) {
  Thread& thread = self();
  check_aligned(copy.to, 16, site);
  check_aligned(copy.from, 16, site);
  if (copy.source_bytes < 0 || copy.source_bytes > 16) fail(site, "a copy of more than 16 bytes");
  if (!thread.worker.is_shared(copy.to, 16)) fail(site, "a copy to what is not shared memory");
  if (thread.copy_count == Thread::kCopiesMax) fail(site, "more than 64 copies under way");
  thread.copies[thread.copy_count++] = {copy.to, copy.from, copy.source_bytes, thread.commits};
}

void commit_copies() {
  ++self().commits;
}

bool next_due(int groups_left, DueCopy& copy) {
  Thread& thread = self();
  if (thread.copy_count == 0 || thread.copies[0].group >= thread.commits - groups_left)
    return false;
  copy = {thread.copies[0].to, thread.copies[0].from, thread.copies[0].source_bytes};
  --thread.copy_count;
  for (int i = 0; i < thread.copy_count; ++i) thread.copies[i] = thread.copies[i + 1];
  return true;
}

}  // namespace optima::cuda_host
