#!/usr/bin/env bash
# The C# binding's tests on CoreCLR: the very files that mcs made for Mono, run by the .NET Core 3.1
# runtime of the Python package dotnetcore2, which pip fetches (31 MB) unless DOTNET names a program
# `dotnet`. Needs a built dev preset.
# Usage: [DOTNET=dotnet] tests/long/csharp_coreclr.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build/dev}")
work=$build/coreclr
mkdir -p "$work/program"

if [[ -z ${DOTNET:-} ]]; then
  DOTNET=$work/package/dotnetcore2/bin/dotnet
  if [[ ! -e $DOTNET ]]; then
    python3 -m pip install --quiet --no-deps --disable-pip-version-check \
      --target "$work/package" dotnetcore2==3.1.23
  fi
  chmod +x "$DOTNET"
fi

cp "$build"/bindings/csharp/*.{exe,dll} "$work/program/"
for program in "$work"/program/*.exe; do
  cat >"${program%.exe}.runtimeconfig.json" <<'END'
{"runtimeOptions": {"rollForward": "Major",
                    "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"}}}
END
done

export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1  # no libicu
export OPTIMA_LIBRARY=$build/lib OPTIMA_TEST_PROGRAM=$build/bin/optima MALLOC_ARENA_MAX=1
export OPTIMA_TEST_GOLDENS=$PWD/tests/goldens/tiny
for group in layout generate sessions stream cancel callbacks errors lifetime; do
  echo "== $group"
  "$DOTNET" "$work/program/Tests.exe" "$group"
done
echo "== leave"
"$DOTNET" "$work/program/Tests.exe" leave
echo "== missing"
env --unset=OPTIMA_LIBRARY "$DOTNET" "$work/program/Tests.exe" missing
echo "== examples"
bash bindings/csharp/tests/examples.sh "$DOTNET" "$work/program" "$OPTIMA_TEST_PROGRAM" \
  "$OPTIMA_TEST_GOLDENS/llama-q8_0.gguf"
echo "C# on CoreCLR: all passed"
