#!/usr/bin/env bash
# Runs the examples on a tiny model: examples.sh MONO FOLDER OPTIMA MODEL. Greedy answers are those
# of the program optima.
set -euo pipefail
mono=$1 folder=$2 optima=$3 model=$4

# same WHAT EXPECTED ACTUAL
same() {
  if [[ $2 == "$3" ]]; then return; fi
  printf '%s\nexpected: %s\ngot:      %s\n' "$1" "$2" "$3"
  exit 1
}

prompt="The capital of France is"
same hello "$prompt$("$optima" run "$model" --prompt "$prompt" --tokens 32)" \
  "$("$mono" "$folder/Hello.exe" "$model" "$prompt")"

question="Who are you?"
chat=$(printf '<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n.' "$question")
answer=$("$optima" run "$model" --prompt "${chat%.}" --tokens 128)
streamed=$("$mono" "$folder/Stream.exe" "$model" "$question")
same stream "$answer" "${streamed%$'\n'\[*}"
same "end of stream" "[Length after 128 tokens]" "${streamed##*$'\n'}"
"$mono" "$folder/UnityExample.exe" "$model" "$answer"

same cancel "token: Cancelled
deadline: 50 ms
callback: Host after 5 tokens
afterwards: Length after 4 tokens" "$("$mono" "$folder/Cancel.exe" "$model")"

sessions=$("$mono" "$folder/ManySessions.exe" "$model")
[[ $sessions =~ ([0-9]+)" prompt tokens were not computed again" ]]
# Each of 16 second turns finds at least what its first one computed: more than 80 tokens.
((BASH_REMATCH[1] > 16 * 64))
