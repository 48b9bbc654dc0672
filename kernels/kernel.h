// A kernel variant is a row in an array: a name, the instruction sets it needs and the function.
// The arrays (variants.cc beside each operation) are ordered best first; tests and benches walk
// them, the backend takes the first that the CPU has.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/isa.h"

namespace optima::kernels {

template <typename Fn>
struct Variant {
  const char* name;  // "<op>_<isa>", for tests, benches and reports
  IsaMask isa;       // all of these bits must be available; 0 = runs anywhere
  Fn fn;
};

// An array of variants as a value.
template <typename Fn>
struct Variants {
  const Variant<Fn>* rows;
  size_t count;
  const Variant<Fn>* begin() const { return rows; }
  const Variant<Fn>* end() const { return rows + count; }
};

// The function that Fn points to, to declare the variants of an operation by.
template <typename Fn>
struct PointedTo;
template <typename Function>
struct PointedTo<Function*> {
  using Type = Function;
};
template <typename Fn>
using FunctionOf = typename PointedTo<Fn>::Type;

// Rows that are stored: the first `count` of at most N.
template <typename Fn, size_t N>
struct Rows {
  Variant<Fn> row[N];
  size_t count;
  constexpr Variants<Fn> variants() const { return {row, count}; }
};

// The rows that this architecture can have, in order. Evaluated by the compiler alone, so that the
// functions of the others need not exist.
template <typename Fn, size_t N>
consteval Rows<Fn, N> rows_here(const Variant<Fn> (&all)[N]) {
  Rows<Fn, N> here = {};
  for (const Variant<Fn>& row : all) {
    if ((row.isa & ~kIsaHere) == 0) here.row[here.count++] = row;
  }
  return here;
}

// The first row whose instruction sets are all in `available`; every array ends with a row that
// needs none, so there always is one.
template <typename Fn>
const Variant<Fn>& best(const Variants<Fn>& variants, IsaMask available) {
  const Variant<Fn>* row = variants.rows;
  while ((row->isa & ~available) != 0) ++row;
  return *row;
}

}  // namespace optima::kernels
