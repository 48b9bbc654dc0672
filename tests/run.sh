#!/usr/bin/env bash
# Everything that must pass before a change goes in, in one command: the dev preset (unit tests of
# every kernel variant, goldens, ABI, tidy, C examples, the program), then the library's own once
# more under AddressSanitizer and UBSan, then the threaded parts under ThreadSanitizer.
# The last line is "N passed, M failed" over all of these; a stage that does not build counts as
# one failure and the next stage still runs.
set -uo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=0

# stage NAME COMMAND...: runs the command, timed; its exit status.
stage() {
  local name=$1 start=$SECONDS status
  shift
  echo "== $name"
  "$@"
  status=$?
  echo "== $name: $((SECONDS - start)) s$([[ $status -eq 0 ]] || echo ', FAILED')"
  return $status
}

# Adds the counts of a JUnit file that ctest wrote. No file or no test in it is a failure.
count() {
  local counts
  counts=$(python3 - "$1" <<'END'
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
total, bad = int(suite.get("tests")), int(suite.get("failures"))
skipped = int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
print(total - bad - skipped, bad + (total == 0))
END
  ) || counts="0 1"
  passed=$((passed + ${counts% *}))
  failed=$((failed + ${counts#* }))
}

# preset NAME: configure, build, test.
preset() {
  local name=$1 report=$PWD/build/$1/ctest.xml
  rm -f "$report"
  if stage "$name: configure" cmake --preset "$name" &&
    stage "$name: build" cmake --build --preset "$name"; then
    stage "$name: test" ctest --preset "$name" --output-junit "$report"
    count "$report"
  else
    failed=$((failed + 1))
  fi
}

if stage "packages" tests/install_packages.sh test; then
  preset dev
  preset asan
  preset tsan
else
  failed=1
fi
echo "== all: $SECONDS s"
echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
