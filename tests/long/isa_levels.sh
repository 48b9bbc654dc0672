#!/usr/bin/env bash
# Does the whole library work on lesser x86 CPUs than the one at hand? Asks the model of
# examples/quickstart.sh what it asks, under qemu-user on a CPU of x86-64-v2 and on one with AVX2, and
# natively: each must answer, and the kernels' tests must pass on x86-64-v2. Minutes; needs the Debian
# package qemu-user. tests/long/aarch64.sh does the same for 64-bit Arm.
# Usage: tests/long/isa_levels.sh [BUILD_FOLDER]      (default build/release)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
wanted='The capital of France is Paris.

The answer is: 2018-01-22 12:1'

[[ -f $build/build.ninja ]] || cmake --preset release -B "$build"
cmake --build "$build" --target optima test_kernels
model=$(examples/get_model.sh smollm2)
for level in "qemu-x86_64 -cpu Nehalem" "qemu-x86_64 -cpu Haswell" ""; do
  answer="The capital of France is$($level "$build/bin/optima" run "$model" \
    -p "The capital of France is" -n 24)"
  echo "== ${level:-this CPU}: $answer"
  [[ $answer == "$wanted" ]] || { echo "wanted: $wanted"; exit 1; }
done
echo "== qemu-x86_64 -cpu Nehalem: kernels"
qemu-x86_64 -cpu Nehalem "$build/bin/test_kernels" --gtest_brief=1
