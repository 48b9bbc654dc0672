// Matrix products of a warp as functions of all lanes' fragments, with the places of the elements
// as the PTX ISA has them ("Matrix Fragments for mma.m16n8k…"). With g = lane / 4, t = lane % 4 and
// a register holding `n` elements side by side (two of 16 bits, four bytes):
//   A's registers: rows g, g + 8 at columns n t …; then, if k is that wide, the same rows at
//   columns 4 n + n t …
//   B's registers: column g at rows n t …, then 4 n + n t …
//   C and D: row g, columns 2 t and 2 t + 1; then row g + 8.
//
// Tensor cores sum in an order and with a rounding that is not specified; here it is plain fp32, in
// order of k. Kernels must not depend on either.
#include "kernels/cuda_host/words.h"
#include "kernels/half.h"

namespace optima::cuda_host {
namespace {

uint32_t a_register(const Deposit& lane, int index) {
  return static_cast<uint32_t>(lane.word[index / 2] >> (index % 2 * 32));
}
uint32_t b_register(const Deposit& lane, int index) {
  return static_cast<uint32_t>(lane.word[2] >> (index * 32));
}

// Element `k` of row `row` of A, where a register holds `packed` elements.
struct Place {
  int lane;
  int reg;
  int bit;
};
Place place_in_a(int row, int k, int packed) {
  const int upper = k / (4 * packed);
  return {row % 8 * 4 + k % (4 * packed) / packed, upper * 2 + row / 8, k % packed * 32 / packed};
}
Place place_in_b(int k, int column, int packed) {
  return {column * 4 + k % (4 * packed) / packed, k / (4 * packed), k % packed * 32 / packed};
}

float widen(uint32_t reg, int bit, MmaShape::Type type) {
  const auto bits = static_cast<uint16_t>(reg >> bit);
  return type == MmaShape::Type::f16 ? kernels::half_to_float(bits) : kernels::bf16_to_float(bits);
}

// Row and column of part `i` of C.
int row_of(int lane, int i) {
  return lane / 4 + i / 2 * 8;
}
int column_of(int lane, int i) {
  return lane % 4 * 2 + i % 2;
}

}  // namespace

void mma_floats(const MmaShape& shape, const Deposit* lanes, int lane, float (&c)[4]) {
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < shape.k; ++k) {
      const Place a = place_in_a(row_of(lane, i), k, 2);
      const Place b = place_in_b(k, column_of(lane, i), 2);
      c[i] += widen(a_register(lanes[a.lane], a.reg), a.bit, shape.type) *
              widen(b_register(lanes[b.lane], b.reg), b.bit, shape.type);
    }
  }
}

void mma_bytes(const Deposit* lanes, int lane, int (&c)[4]) {
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 32; ++k) {
      const Place a = place_in_a(row_of(lane, i), k, 4);
      const Place b = place_in_b(k, column_of(lane, i), 4);
      c[i] += static_cast<int8_t>(a_register(lanes[a.lane], a.reg) >> a.bit) *
              static_cast<int8_t>(b_register(lanes[b.lane], b.reg) >> b.bit);
    }
  }
}

}  // namespace optima::cuda_host
