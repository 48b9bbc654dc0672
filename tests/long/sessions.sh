#!/usr/bin/env bash
# Sessions under load: 10^6 random operations on the pages against a naive account, with
# AddressSanitizer and with ThreadSanitizer, then eight threads of eight sessions that generate,
# cancel, fork, save, restore and let go for SECONDS (default 600) with ThreadSanitizer.
# Usage: tests/long/sessions.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}

for preset in asan tsan; do
  cmake --preset "$preset" >/dev/null
  targets=(test_kv)
  [[ $preset == tsan ]] && targets+=(test_engine)
  cmake --build "build/$preset" --target "${targets[@]}" >"build/$preset/sessions.log" 2>&1 ||
    { echo "$preset: does not build, see build/$preset/sessions.log"; exit 1; }
  echo "== $preset: 1000000 random operations"
  OPTIMA_TEST_STEPS=1000000 "build/$preset/bin/test_kv" --gtest_filter='RandomRun.*' \
    --gtest_brief=1
done
echo "== tsan: $seconds s of eight threads with eight sessions each"
OPTIMA_TEST_SECONDS=$seconds build/tsan/bin/test_engine --gtest_filter='Soak.*' --gtest_brief=1
echo "sessions: no difference, no race, nothing leaked or kept for nothing"
