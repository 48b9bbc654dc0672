#!/usr/bin/env bash
# Does this build say what transformers says, on both real models? Perplexities of the fast and of
# the reference path against tests/goldens/fidelity, then the agreement of the most probable token
# along the recorded greedy answers. Minutes, not part of tests/run.sh.
# Usage: tests/long/fidelity.sh [BUILD_FOLDER]      (default build/release)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
status=0
for name in smollm2 gemma3-270m; do
  model=$(examples/get_model.sh "$name")
  python3 tests/long/fidelity.py "$name" "$model" --build "$build" || status=1
done
exit $status
