#!/usr/bin/env python3
"""What the library shows and needs: exactly the listed symbols with their version node, the SONAME,
only system libraries, and none of the functions that end or clutter a host.
symbols_test.py LIBRARY SYMBOLS_TXT"""
import re
import subprocess
import sys

library, listed = sys.argv[1:]
NEEDED = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1"}
BANNED = {"exit", "_exit", "quick_exit", "atexit", "getenv", "secure_getenv", "setenv", "system",
          "printf", "puts", "putchar", "perror", "signal", "sigaction", "setlocale", "fork", "execve"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


problems = []
wanted = set(open(listed).read().split())
exported = set()
for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
    kind, name = line.split()[-2:]
    if kind != "A":  # The version nodes themselves.
        exported.add(name)
problems += [f"not exported: {name}" for name in sorted(wanted - exported)]
problems += [f"exported without being listed: {name}" for name in sorted(exported - wanted)]

dynamic = run("readelf", "-d", library)
soname = re.search(r"SONAME.*\[(.*)\]", dynamic)
if soname is None or soname.group(1) != "libsitsoptima.so.1":
    problems.append(f"SONAME is {soname and soname.group(1)}")
for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
    if name not in NEEDED:
        problems.append(f"needs {name}")
if re.search(r"RPATH|RUNPATH", dynamic):
    problems.append("has a run path")

imported = {line.split()[-1].split("@")[0]
            for line in run("nm", "-D", "--undefined-only", library).splitlines()}
problems += [f"imports {name}" for name in sorted(imported & BANNED)]

# A unique symbol would pin the library in memory for good.
if re.search(r"\bUNIQUE\b", run("readelf", "--dyn-syms", "-W", library)):
    problems.append("has a STB_GNU_UNIQUE symbol")

print("\n".join(problems) or f"{len(exported)} symbols, as listed")
sys.exit(bool(problems))
