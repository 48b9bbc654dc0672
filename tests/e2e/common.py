"""How the tests here call the program: their first argument is its path, the second a group."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
GROUP = sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = sorted((ROOT / "tests/goldens/tiny").glob("*.gguf"))
CONTEXT = 64  # small enough to be filled by a test
TEXT = "the cat sat on the mat; \u00e4\u00f6\u00fc \u4f60\u597d \U0001f600\n\tif (x) return;  end"


def call(*args, stdin=b"", check=True):
    done = subprocess.run([PROGRAM, *map(str, args)], input=stdin, capture_output=True, timeout=300)
    if check and done.returncode != 0:
        raise AssertionError(f"{args}: status {done.returncode}: {done.stderr.decode()}")
    return done


def call_json(*args, stdin=b""):
    out = call(*args, "--json", stdin=stdin).stdout
    if out.count(b"\n") != 1 or not out.endswith(b"\n"):
        raise AssertionError(f"{args}: not one line: {out[:200]}")
    return json.loads(out)


def each_model(test):
    """Runs a test that takes a model once for each."""
    def over_models(self):
        for model in MODELS:
            with self.subTest(model=model.name):
                test(self, model)
    return over_models


class Case(unittest.TestCase):
    def setUp(self):
        self.assertTrue(MODELS, "tests/goldens/tiny holds no model")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def assert_error(self, *args, status=1, stdin=b"", mentions=()):
        done = call(*args, stdin=stdin, check=False)
        stderr = done.stderr.decode()
        self.assertEqual(done.returncode, status, stderr)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(stderr.count("\n"), 1, stderr)
        self.assertTrue(stderr.startswith("optima: "), stderr)
        for word in mentions:
            self.assertIn(str(word), stderr)
        return stderr
