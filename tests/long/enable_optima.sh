#!/usr/bin/env bash
# enable_optima with transformers and torch: the same greedy tokens on small models, and the package
# as a user gets it: the wheel is built (which builds the library), must be of one platform and hold
# the library, and is installed into a new virtual environment; the examples of the binding run.
# Fetches torch and transformers from the package index. Half an hour, most of it compiling.
# Usage: tests/long/enable_optima.sh [WORK_FOLDER]     (default build/enable_optima)
set -euo pipefail
cd "$(dirname "$0")/../.."
work=${1:-build/enable_optima}
mkdir -p "$work"

if [[ ! -x $work/venv/bin/python ]]; then
  /usr/bin/python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check setuptools wheel pytest \
    numpy==2.4.6 torch==2.15.0 transformers==5.24.0
fi
rm -rf "$work/dist"
"$work/venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --no-index \
  --wheel-dir "$work/dist" bindings/python
wheel=$(echo "$work"/dist/sits_optima-*-py3-none-*.whl)
[[ -f $wheel && $wheel != *-any.whl ]] || { echo "no platform wheel: $wheel" >&2; exit 1; }
python3 -m zipfile -l "$wheel" | grep -q "sits_optima/lib/libsitsoptima.so.1"
"$work/venv/bin/pip" install --quiet --no-deps --no-index --force-reinstall "$wheel"

(cd "$work" && venv/bin/python -c "
import sits_optima
print(sits_optima.load(), sits_optima.version())")
model=$(examples/get_model.sh smollm2)
for example in hello stream cancel many_sessions; do
  echo "== $example" >&2
  "$work/venv/bin/python" "bindings/python/examples/$example.py" "$model"
done
exec "$work/venv/bin/python" tests/long/enable_optima.py "$@"
