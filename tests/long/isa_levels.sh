#!/usr/bin/env bash
# Does the whole library work on lesser x86 CPUs than the one at hand? Has the model of
# examples/quickstart.sh count, under qemu-user on a CPU of x86-64-v2 and on one with AVX2, and
# natively: each must go on alike, and the kernels' tests must pass on x86-64-v2. Minutes; needs the Debian
# package qemu-user. tests/long/aarch64.sh does the same for 64-bit Arm.
# Usage: tests/long/isa_levels.sh [BUILD_FOLDER]      (default build/release)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
# A prompt on which the best token leads by 1.9 and more at each step (fp32): how activations are rounded
# does not choose the answer. That of quickstart has margins of 0.2.
prompt='1, 2, 3, 4, 5, 6, 7, 8,'
wanted='1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,'

[[ -f $build/build.ninja ]] || cmake --preset release -B "$build"
cmake --build "$build" --target optima test_kernels
model=$(examples/get_model.sh smollm2)
for level in "qemu-x86_64 -cpu Nehalem" "qemu-x86_64 -cpu Haswell" ""; do
  answer="$prompt$($level "$build/bin/optima" run "$model" \
    -p "$prompt" -n 23)"
  echo "== ${level:-this CPU}: $answer"
  [[ $answer == "$wanted" ]] || { echo "wanted: $wanted"; exit 1; }
done
echo "== qemu-x86_64 -cpu Nehalem: kernels"
qemu-x86_64 -cpu Nehalem "$build/bin/test_kernels" --gtest_brief=1
