#!/usr/bin/env python3
"""Programs and libraries of different releases together, as ABI.md promises:

  old    a program of release 1.0, built against its header, with today's library
  next   a program of the next release with today's library: refused clearly where it must be
  copies two copies of the library in one process
  lacks  the C++ binding of today with a library of release 1.0 (a stand-in with its table)

versions_test.py CASE --source DIR --library FILE --cc COMPILER --cxx COMPILER --model NAME
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

C_FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror",
           "-D_POSIX_C_SOURCE=200809L"]


class Case:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.here = args.source / "tests/abi"
        tiny = args.source / "tests/goldens/tiny"
        self.model = tiny / f"{args.model}.gguf"
        self.golden = json.loads((tiny / f"{args.model}.json").read_text())
        self.ids = " ".join(map(str, self.golden["continuation_ids"]))
        self.count = str(len(self.golden["continuation_ids"]))

    def run(self, *command, status=0):
        """Its stdout and stderr; `status` None = any but 0."""
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode != status and (status is not None or done.returncode == 0):
            sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n"
                     f"{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def compile(self, output, source, *flags):
        program = self.folder / output
        self.run(self.args.cc, *C_FLAGS, source, "-o", program, *flags)
        return program

    def linked(self, library):
        return [library, f"-Wl,-rpath,{library.parent}"]

    def require(self, holds, what):
        if not holds:
            sys.exit(f"{self.args.case}: {what}")

    def old(self):
        client = self.compile("client", self.here / "v1_0/client.c",
                              *self.linked(self.args.library))
        said, _ = self.run(client, self.model, self.golden["prompt"], self.count)
        self.require(said.splitlines() == [f"{way} {self.ids}"
                                           for way in ("generate", "poll", "table")], said)

    def next(self):
        self.run(sys.executable, "-B", self.here / "next_header.py", self.args.source, self.folder)
        include = f"-I{self.folder}"
        client = self.compile("next", self.here / "next_client.c", include, "-ldl")
        said, _ = self.run(client, self.args.library, self.model)
        lines = said.splitlines()
        self.require(len(lines) == 2 and lines[0].startswith("absent: ")
                     and lines[1].startswith("refused: "), said)
        # Linked with a library that has the function, run with one that has not.
        source = self.folder / "next.c"
        source.write_text('#include "optima.h"\nint32_t optima_next_call(void) { return 1; }\n')
        folders = [self.folder / "newer", self.folder / "today"]
        for folder in folders:
            folder.mkdir()
        name = "libsitsoptima.so.1"
        self.compile(f"newer/{name}", source, include, "-shared", "-fPIC", f"-Wl,-soname,{name}",
                     f"-Wl,--version-script={self.folder / 'next.map'}")
        shutil.copy(self.args.library, folders[1] / name)
        linked = self.compile("linked", self.here / "next_client.c", include, "-DNEXT_LINKED",
                              folders[0] / name)
        os.environ["LD_LIBRARY_PATH"] = str(folders[0])
        self.run(linked)
        os.environ["LD_LIBRARY_PATH"] = str(folders[1])
        _, refused = self.run(linked, status=None)
        self.require(name in refused and "OPTIMA_1." in refused and "not found" in refused, refused)

    def copies(self):
        second = self.folder / "libsitsoptima_copy.so"
        shutil.copy(self.args.library, second)
        program = self.compile("copies", self.here / "copies_test.c",
                               f"-I{self.args.source / 'include'}", "-ldl", "-pthread")
        said, _ = self.run(program, self.model, self.golden["prompt"], self.count,
                           self.args.library, second)
        self.require(said.splitlines() == [self.ids] * 2, said)

    def lacks(self):
        library = self.compile("libold.so", self.here / "v1_0/stand_in.c", "-shared", "-fPIC")
        program = self.folder / "lacks"
        self.run(self.args.cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror",
                 f"-I{self.args.source / 'include'}", self.here / "lacks_client.cc", "-o", program,
                 "-ldl")
        said, _ = self.run(program, library)
        self.require("optima_session_fork is not in libsitsoptima 1.0.0" in said, said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=("old", "next", "copies", "lacks"))
    for name in ("--source", "--library"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    for name in ("--cc", "--cxx", "--model"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        getattr(Case(args, pathlib.Path(folder)), args.case)()


if __name__ == "__main__":
    main()
