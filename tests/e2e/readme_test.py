"""Compiles the C program of README.md as C99, runs it on a tiny model, and checks that the document
names only sub-commands that exist. Usage: readme_test.py COMPILER LIBRARY PROGRAM [FLAG...]
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr.decode()}")
    return done.stdout


def main():
    compiler, library, program, *flags = sys.argv[1:]
    readme = (ROOT / "README.md").read_text()
    sources = re.findall(r"```c\n(.*?)```", readme, re.S)
    if len(sources) != 1:
        sys.exit(f"README.md has {len(sources)} C programs, wanted 1")
    model = sorted((ROOT / "tests/goldens/tiny").glob("*.gguf"))[0]
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder, "hello.c"), pathlib.Path(folder, "hello")
        source.write_text(sources[0])
        folder_of_library = pathlib.Path(library).parent
        run(compiler, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror",
            *flags, f"-I{ROOT / 'include'}", source, library, f"-Wl,-rpath,{folder_of_library}",
            "-o", binary)
        if not run(binary, model).endswith(b"\n"):
            sys.exit("the C program of README.md printed nothing")
    commands = set(re.findall(r"build/release/bin/optima (\w+)", readme))
    known = run(program, "--help").decode()
    for command in commands:
        if not re.search(rf"^  {command}\b", known, re.M):
            sys.exit(f"README.md names optima {command}, which does not exist")


if __name__ == "__main__":
    main()
