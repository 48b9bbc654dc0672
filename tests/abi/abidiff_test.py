#!/usr/bin/env python3
"""Nothing that a program of an earlier release relies on has changed, as libabigail sees it: the
types and symbols of the built library against a recorded description of each frozen release.

abidiff_test.py --source DIR --library FILE    compares with each tests/abi/v*/abi.xml
abidiff_test.py --source DIR --cxx COMPILER --write v1_0    records tests/abi/v1_0/optima.h

The description is that of a library made of the release's header alone. What may differ, and why,
is in tests/abi/abidiff.suppr, which a person approves. Added functions are always allowed.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

PROTOTYPE = re.compile(r"^OPTIMA_MT_\w+ OPTIMA_API ([^;]*?)\s*OPTIMA_NOEXCEPT;",
                       re.MULTILINE | re.DOTALL)
# No line numbers and no paths, so that only the interface is in it.
ABIDW = ["abidw", "--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-elf-needed"]
BYTES_MAX = 400_000
# A suppressed struct is not looked into, so that a field of it could move unseen: no line of the
# full report may say this, whatever is suppressed. Growth alone says "insertion" and "type size
# changed".
HURTS = re.compile(r"offset changed|data member deletion|name changed from|entity changed from|"
                   r"\b[Rr]emoved (?:function|variable)|parameter \d+ .*was (?:added|removed)")


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def library_of(header, compiler, folder):
    """A library with the header's functions, which do nothing, and full debug information."""
    text = header.read_text()
    bodies = [f"{head} noexcept {{ {'' if head.startswith('void ') else 'return 0;'} }}"
              for head in PROTOTYPE.findall(text)]
    source, library = folder / "shape.cc", folder / "libshape.so"
    source.write_text('#include "optima.h"\nextern "C" {\n' + "\n".join(bodies) + "\n}\n")
    symbols = folder / "shape.map"
    symbols.write_text("OPTIMA_1.0 { global: optima_*; local: *; };\n")
    run(compiler, "-std=c++17", "-g", "-w", "-shared", "-fPIC", f"-I{header.parent}", source, "-o",
        library, "-Wl,-soname,libsitsoptima.so.1", f"-Wl,--version-script={symbols}")
    return library


def write(args):
    folder = args.source / "tests/abi" / args.write
    with tempfile.TemporaryDirectory() as temporary:
        library = library_of(folder / "optima.h", args.cxx, pathlib.Path(temporary))
        run(*ABIDW, "--out-file", folder / "abi.xml", library)


def differences(baseline, today, *options):
    """The report, and whether there is anything in it."""
    command = ["abidiff", "--no-added-syms", *options, baseline, today]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode & 3:  # the tool's own failures
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout, done.returncode != 0


def compare(args):
    here = args.source / "tests/abi"
    baselines = sorted(here.glob("v*/abi.xml"))
    problems = [] if baselines else ["no frozen release is described"]
    with tempfile.TemporaryDirectory() as folder:
        today = pathlib.Path(folder) / "today.xml"
        run(*ABIDW, "--out-file", today, args.library)
        for baseline in baselines:
            release = baseline.parent.name
            if baseline.stat().st_size > BYTES_MAX:
                problems.append(f"{baseline} has more than {BYTES_MAX} bytes")
            report, changed = differences(baseline, today, "--suppressions", here / "abidiff.suppr")
            if changed:
                problems.append(f"{release}: not in abidiff.suppr:\n{report}")
            report, _ = differences(baseline, today)
            hurt = [line.strip() for line in report.splitlines() if HURTS.search(line)]
            problems += [f"{release}: {line}" for line in hurt]
    print("\n".join(problems) or f"{len(baselines)} release(s) described, nothing changed")
    sys.exit(bool(problems))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--write", metavar="RELEASE")
    args = parser.parse_args()
    if args.write:
        write(args)
    else:
        compare(args)


if __name__ == "__main__":
    main()
