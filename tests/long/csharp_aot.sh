#!/usr/bin/env bash
# The C# binding's tests compiled ahead of time in full, as iOS, consoles and IL2CPP want it: with
# --full-aot Mono makes no code at run time and fails at the first entry point for native code that
# is no static method with the mark. Compiles Mono's own assemblies too (minutes). Needs a built dev
# preset, as and ld.
# Usage: tests/long/csharp_aot.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build/dev}")
work=$build/csharp_aot
mkdir -p "$work"
export MONO_PATH=$work

names=(mscorlib Mono.Security System.Configuration System.Xml System.Security System.Numerics System
       System.Core)
for name in "${names[@]}"; do cp "/usr/lib/mono/4.5/$name.dll" "$work/"; done
cp "$build/bindings/csharp/Tests.exe" "$work/"
for file in "${names[@]/%/.dll}" Tests.exe; do
  echo "== $file"
  # A few methods of Mono's own do not compile; a test that called one would fail.
  /usr/bin/mono --aot=full "$work/$file" >"$work/$file.log" 2>&1 ||
    { tail "$work/$file.log"; exit 1; }
done

export OPTIMA_LIBRARY=$build/lib OPTIMA_TEST_PROGRAM=$build/bin/optima MALLOC_ARENA_MAX=1
export OPTIMA_TEST_GOLDENS=$PWD/tests/goldens/tiny
for group in layout generate sessions stream cancel callbacks errors lifetime; do
  echo "== $group"
  /usr/bin/mono --full-aot "$work/Tests.exe" "$group"
done
echo "C# ahead of time: all passed"
