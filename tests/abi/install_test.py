#!/usr/bin/env python3
"""Installs into a fresh prefix, moves it, and builds and runs the C examples against the copy, by
pkg-config and by find_package."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXAMPLES = ("hello", "stream", "poll", "best_of", "embed", "many_sessions", "fork_tree")
FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Wshadow", "-Werror"]
PROJECT = """\
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package(sitsoptima 1.0 REQUIRED)
add_executable(hello "@SOURCE@/examples/c/hello.c")
set_property(TARGET hello PROPERTY C_STANDARD 99)
target_link_libraries(hello PRIVATE sitsoptima::sitsoptima)
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          errors="replace", **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def find(prefix, name):
    found = [path for path in prefix.rglob(name)]
    if not found:
        sys.exit(f"not installed: {name}")
    return found[0]


def installed_prefix(args, folder):
    first, moved = folder / "first", folder / "moved"
    run(args.cmake, "--install", args.build, "--prefix", first)
    shutil.move(first, moved)
    for name in ("optima.h", "optima_unstable.h", "optima.hpp", "session.hpp",
                 "libsitsoptima.so", "libsitsoptima.so.1", "sits-optima.pc",
                 "sitsoptimaConfig.cmake", "sitsoptimaConfigVersion.cmake", "LICENSE"):
        find(moved, name)
    leaks = [path for path in moved.rglob("*") if path.suffix in (".pc", ".cmake", ".h")
             and (str(args.source) in path.read_text() or str(folder) in path.read_text())]
    if leaks:
        sys.exit(f"a path of the building machine is in {leaks}")
    return moved


def run_example(program, args, environment):
    output = run(program, args.model, env=environment)
    if args.model and not output.strip():
        sys.exit(f"{program.name} printed nothing")


def by_pkg_config(args, folder, prefix, environment):
    pc = find(prefix, "sits-optima.pc")
    flags = run("pkg-config", "--cflags", "--libs", "sits-optima",
                env=dict(environment, PKG_CONFIG_PATH=str(pc.parent))).split()
    for name in EXAMPLES:
        program = folder / name
        run(args.compiler, *FLAGS, args.source / f"examples/c/{name}.c", *flags, "-o", program)
        run_example(program, args, environment)


def by_find_package(args, folder, prefix, environment):
    user = folder / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(PROJECT.replace("@SOURCE@", str(args.source)))
    run(args.cmake, "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={args.compiler}")
    run(args.cmake, "--build", user / "build")
    run_example(user / "build/hello", args, environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--model", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.source, args.model = args.source.resolve(), args.model.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = installed_prefix(args, folder)
        library_dir = find(prefix, "libsitsoptima.so.1").parent
        environment = dict(os.environ, LD_LIBRARY_PATH=str(library_dir))
        by_pkg_config(args, folder, prefix, environment)
        by_find_package(args, folder, prefix, environment)
    print("installed, built and run by pkg-config and find_package")


if __name__ == "__main__":
    main()
