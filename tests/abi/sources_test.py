#!/usr/bin/env python3
"""Every exported function is defined once, says noexcept, and its body is one guard() call; guard.h
is the only file of the layer that catches anything. sources_test.py SOURCE_DIR"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
symbols = [line.split("@")[0]
           for line in (root / "tests/abi/symbols.txt").read_text().split()]
problems = []
bodies = {}
for path in sorted((root / "src/abi").glob("*.cc")):
    text = path.read_text()
    for match in re.finditer(r"^(?=\S)[\w: *<>]*?\b(optima_\w+)\(([^;{}]*?)\)\s*(noexcept)?\s*\{$(.*?)^\}",
                             text, re.M | re.S):
        name, _, noexcept, body = match.groups()
        if name in bodies:
            problems.append(f"{name}: defined twice")
        bodies[name] = (path.name, noexcept, body)

for name in symbols:
    if name not in bodies:
        problems.append(f"{name}: no definition in src/abi")
        continue
    where, noexcept, body = bodies[name]
    if not noexcept:
        problems.append(f"{where}: {name}: not noexcept")
    # Before the guard only outputs are cleared and cookies declared: nothing that can throw.
    statements = re.sub(r"if \((bytes|count) != nullptr\) \*\1 = 0;|ReleaseOnce hook;", "", body)
    if not re.match(r"\s*(return )?guard(_array<[^>]*>|_open)?\(", statements):
        problems.append(f"{where}: {name}: does not go through guard()")
for name in bodies:
    if name not in symbols:
        problems.append(f"{name}: defined but not in the spec")

for path in sorted((root / "src/abi").glob("*")):
    if path.suffix in (".cc", ".h") and path.name != "guard.h":
        if re.search(r"\bcatch\s*\(", path.read_text()):
            problems.append(f"{path.name}: catches; only guard.h may")

print("\n".join(problems) or f"{len(symbols)} functions go through guard()")
sys.exit(bool(problems))
