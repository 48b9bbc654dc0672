#!/usr/bin/env python3
"""The public headers compile alone, without a warning, in every language a host may use, with each
compiler that is here (gcc must be). header_test.py SOURCE_DIR"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
COMMON = ["-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Werror", "-fsyntax-only",
          f"-I{root / 'include'}"]
C_FLAGS = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wold-style-definition"]
CXX_FLAGS = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"]
LANGUAGES = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++20")]
COMPILERS = {"c": ["gcc", "clang"], "c++": ["g++", "clang++"]}

failed = False
ran = 0
with tempfile.TemporaryDirectory() as folder:
    for header in ("optima/optima.h", "optima/optima_unstable.h"):
        for language, standard in LANGUAGES:
            source = pathlib.Path(folder) / f"use.{language.replace('c++', 'cc')}"
            source.write_text(f"#include <{header}>\n#include <{header}>\n")
            flags = C_FLAGS if language == "c" else CXX_FLAGS
            for compiler in COMPILERS[language]:
                if shutil.which(compiler) is None:
                    print(f"{compiler}: not installed")
                    failed |= compiler in ("gcc", "g++")
                    continue
                command = [compiler, f"-std={standard}", *COMMON, *flags, str(source)]
                done = subprocess.run(command, capture_output=True, text=True)
                ran += 1
                if done.returncode != 0:
                    print(" ".join(command), done.stderr, sep="\n")
                    failed = True

text = (root / "include/optima/optima.h").read_text()
includes = [line.split()[1] for line in text.splitlines() if line.startswith("#include")]
if includes != ["<stddef.h>", "<stdint.h>"]:
    print("the header includes", includes)
    failed = True
print(f"{ran} compilations")
sys.exit(failed)
