#!/usr/bin/env python3
"""optima.hpp compiles without a warning in C++17 and C++20, with each compiler that is here (g++
must be), in each of its modes. compile_test.py SOURCE_DIR"""
import pathlib
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
FLAGS = ["-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Wconversion", "-Wsign-conversion",
         "-Wnon-virtual-dtor", "-Werror", "-fsyntax-only", f"-I{root / 'include'}"]
MODES = {"throwing": [], "loaded": ["-DOPTIMA_LOAD"],
         "expected": ["-fno-exceptions", "-fno-rtti"]}
CASES = [("g++", "c++17", "throwing"), ("g++", "c++20", "expected"), ("clang++", "c++20", "throwing"),
         ("clang++", "c++17", "expected"), ("clang++", "c++17", "loaded")]

failed = False
for compiler, standard, mode in CASES:
    if shutil.which(compiler) is None:
        print(f"{compiler}: not installed")
        failed |= compiler == "g++"
        continue
    command = [compiler, f"-std={standard}", *FLAGS, *MODES[mode],
               str(root / "bindings/cpp/tests/uses.cc")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(" ".join(command), done.stderr, sep="\n")
        failed = True
sys.exit(failed)
