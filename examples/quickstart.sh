#!/usr/bin/env bash
# From a fresh clone on Debian 12 to a model's answer: installs what is missing, builds the release
# preset, fetches a small model and asks it. The program stays at build/release/bin/optima.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "== $*" >&2; }

say "1/4 packages"
tests/install_packages.sh build
say "2/4 build (a few minutes the first time)"
cmake --preset release >&2
cmake --build --preset release --target optima >&2
say "3/4 model"
model=$(examples/get_model.sh smollm2)
say "4/4 build/release/bin/optima run $model -p 'The capital of France is' -n 24"
answer=$(build/release/bin/optima run "$model" -p "The capital of France is" -n 24)
echo "The capital of France is$answer"
