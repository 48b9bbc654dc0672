#!/usr/bin/env bash
# Builds the libFuzzer targets with clang and runs each for SECONDS (default 600) from its seeds.
# Prints the executions of each; a finding ends the script and stays in build/fuzz/<target>.
# Usage: tests/long/fuzz.sh [SECONDS] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
shift || true
build=$PWD/build/fuzz
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DOPTIMA_BUILD_FUZZERS=ON -DOPTIMA_BUILD_PROGRAM=OFF >/dev/null

seeds() {
  case $1 in
    grammar_*) echo "tests/fuzz/grammar/corpus/${1#grammar_}" ;;
    chat_template) echo tests/goldens/chat_templates/templates ;;
    tokenizer_json) echo tests/goldens/tokenizer_json ;;
    config) echo tests/goldens/arch ;;
    safetensors) echo tests/fuzz/model/corpus/safetensors ;;
    *) echo tests/goldens/tiny ;;
  esac
}

targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
  targets=(gguf safetensors config tokenizer_json tokenizer_model chat_template grammar_gbnf
           grammar_regex grammar_schema)
fi
for target in "${targets[@]}"; do
  mkdir -p "$build/$target/corpus"
  cmake --build "$build" --target "fuzz_$target" >"$build/$target/build.log" 2>&1 ||
    { echo "$target: does not build, see $build/$target/build.log"; exit 1; }
  (cd "$build/$target" && "$build/bin/fuzz_$target" -max_total_time="$seconds" -timeout=20 \
    -max_len=65536 -rss_limit_mb=4096 -print_final_stats=1 corpus "$OLDPWD/$(seeds "$target")" \
    >log 2>&1) || { echo "$target: FAILED, see $build/$target/log"; exit 1; }
  echo "$target: $(grep -o 'number_of_executed_units: *[0-9]*' "$build/$target/log" | tr -s ' ')"
done
