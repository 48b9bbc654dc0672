#!/usr/bin/env bash
# Builds the examples and runs them: examples_test.sh OUT GO PROGRAM MODEL. What hello says is what
# the program optima says.
set -euo pipefail
out=$1 go=$2 program=$3 model=$4
cd "$(dirname "$0")/.."
mkdir -p "$out"
"$go" build -o "$out/" ./examples/...

fail() { echo "$*" >&2; exit 1; }
prompt="The capital of France is"
wanted="$prompt$("$program" run "$model" -p "$prompt" -n 32)"
found=$("$out/hello" "$model")
[[ $found == "$wanted" ]] || fail "hello: '$found' instead of '$wanted'"
found=$("$out/stream" "$model")
[[ $found =~ (stop|length):\ [0-9]+\ prompt\ tokens ]] || fail "stream: '$found'"
found=$("$out/cancel" "$model")
[[ $found == cancelled* && $found == *"(DEADLINE)" ]] || fail "cancel: '$found'"
found=$("$out/many_sessions" "$model")
[[ $found =~ 16\.2\ .*[1-9][0-9]*\ prompt\ tokens\ were\ not ]] || fail "many_sessions: '$found'"
if found=$("$out/hello" /no/such/model.gguf 2>&1); then fail "hello: no error"; fi
[[ $found == *"/no/such/model.gguf"*"(IO)" ]] || fail "hello: '$found'"
