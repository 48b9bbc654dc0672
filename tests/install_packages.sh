#!/usr/bin/env bash
# Installs the Debian packages of tests/packages.txt that are missing.
# Usage: tests/install_packages.sh build|test     (test includes build)
set -euo pipefail
kind=${1:?usage: tests/install_packages.sh build|test}
list=$(dirname "$0")/packages.txt

if ! command -v dpkg-query >/dev/null; then
  echo "not a Debian system: make sure that the packages of tests/packages.txt are there" >&2
  exit 0
fi
missing=()
while read -r tag package; do
  [[ $tag == build || $tag == "$kind" ]] || continue
  dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done <"$list"
[[ ${#missing[@]} -gt 0 ]] || exit 0

echo "installing: ${missing[*]}" >&2
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
