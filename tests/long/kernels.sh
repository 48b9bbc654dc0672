#!/usr/bin/env bash
# Products and attention of STEPS (default 20000) random shapes each: every variant of the kernels that
# this CPU can run, and the simulated ones, against the reference, with AddressSanitizer. Prints the
# seed, with which OPTIMA_TEST_SEED repeats the run.
# Usage: tests/long/kernels.sh [STEPS] [SEED]
set -euo pipefail
cd "$(dirname "$0")/../.."
export OPTIMA_TEST_STEPS=${1:-20000} OPTIMA_TEST_SEED=${2:-$RANDOM}

cmake --preset asan >/dev/null
cmake --build build/asan --target test_kernels >build/asan/kernels.log 2>&1 ||
  { echo "does not build, see build/asan/kernels.log"; exit 1; }
echo "== $OPTIMA_TEST_STEPS shapes of each, seed $OPTIMA_TEST_SEED"
for kind in Products Attention; do
  build/asan/bin/test_kernels --gtest_filter="RandomShapes.$kind*" --gtest_brief=1 &
done
wait -n
wait -n
echo "kernels: no difference"
