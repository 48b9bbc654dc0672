#!/usr/bin/env bash
# The library beside llama.cpp's in one process. Fetches a model and llama-cpp-python (into a virtual
# environment that is thrown away) unless they are named; not part of tests/run.sh.
# Usage: [PYTHON=interpreter with llama_cpp] tests/long/abi_neighbours.sh [BUILD_FOLDER [MODEL.gguf]]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
model=${2:-$(examples/get_model.sh smollm2)}
python=${PYTHON:-}
if [[ -z $python ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  python3 -m venv "$folder"
  python=$folder/bin/python
  "$python" -m pip install --quiet llama-cpp-python
fi
"$python" tests/long/abi_neighbours.py "$build/lib/libsitsoptima.so.1" "$model"
