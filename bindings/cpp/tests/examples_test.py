#!/usr/bin/env python3
"""The examples, run on a tiny model: hello says what the golden says, the others what the request
they describe must give. examples_test.py GOLDEN_JSON MODEL FOLDER_OF_PROGRAMS"""
import json
import pathlib
import re
import subprocess
import sys

golden = json.loads(pathlib.Path(sys.argv[1]).read_text())
model, programs = sys.argv[2], pathlib.Path(sys.argv[3])


def run(name, *arguments):
    done = subprocess.run([programs / f"cpp_{name}", *arguments], capture_output=True, timeout=300)
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        sys.exit(f"{name} ended with {done.returncode}: {output}{done.stderr.decode()}")
    return output


def require(holds, name, output):
    if not holds:
        sys.exit(f"{name} printed {output!r}")


said = run("hello", model, golden["prompt"])
require(said.startswith(golden["prompt"] + golden["continuation"]), "hello", said)
refused = subprocess.run([programs / "cpp_hello", "/nowhere/model.gguf"], capture_output=True)
require(refused.returncode == 1 and b"/nowhere/model.gguf" in refused.stderr
        and refused.stderr.count(b"\n") == 1, "hello without a model", refused.stderr)
require(len(run("stream", model)) > 1, "stream", "nothing")
ways = run("cancel", model)
require(re.search(r"^verdict: host, 3 tokens$", ways, re.MULTILINE), "cancel", ways)
require(re.search(r"^latch: \w+, \d+ tokens$", ways, re.MULTILINE)
        and re.search(r"^deadline: \w+, \d+ tokens$", ways, re.MULTILINE), "cancel", ways)
rooms = re.findall(r"^Room (\d) holds", run("many_sessions", model), re.MULTILINE)
require(rooms == [str(i) for i in range(8)], "many_sessions", rooms)
