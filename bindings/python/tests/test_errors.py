"""Failures as exceptions of their own, with numbers; and a library that is missing."""
import io
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import GOLDENS

import sits_optima
from sits_optima import (ArgumentError, ContextFull, FormatError, InputOutputError, Model,
                         OutOfMemory, StateError, Status, Unsupported)

PACKAGE = pathlib.Path(sits_optima.__file__).parents[1]


def test_missing_model():
    with pytest.raises(InputOutputError, match="/nowhere/model.gguf") as caught:
        Model("/nowhere/model.gguf")
    assert caught.value.status == Status.E_IO
    assert isinstance(caught.value, OSError)


def test_context_full(model, golden):
    with model.session(context_tokens=32) as session:
        with pytest.raises(ContextFull) as caught:
            session.generate(golden.prompt_ids)
        assert (caught.value.wanted, caught.value.limit) == (len(golden.prompt_ids), 32)
        assert "44" in str(caught.value) and "32" in str(caught.value)
        assert session.generate(golden.prompt_ids[:8], max_tokens=1).token_ids != []


def test_out_of_memory(golden):
    with Model(golden.path, memory_limit_bytes=1 << 16) as model:
        with pytest.raises(OutOfMemory) as caught:
            model.session()
    assert caught.value.limit == 1 << 16
    assert isinstance(caught.value, MemoryError)


def test_bad_files(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\xff" * 100)
    with pytest.raises((FormatError, Unsupported)):
        Model(broken)


def test_bad_options(model, session):
    with pytest.raises(TypeError, match="tempreature"):
        session.generate("x", tempreature=1)
    with pytest.raises(ArgumentError, match="reference"):
        model.session(path="fastest")
    with pytest.raises(ArgumentError, match="priority"):
        session.generate("x", priority=2 ** 40)
    with pytest.raises(ArgumentError, match="temperature") as caught:
        session.generate("x", temperature=-1.0)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(TypeError, match="threads"):
        Model("x", engine=model.engine, threads=1)


def test_callbacks_while_loading(golden):
    class Mine(Exception):
        pass

    def raise_mine(*_):
        raise Mine

    with pytest.raises(Mine):
        Model(golden.path, progress=raise_mine)

    class Lengthened:
        """Says that it is longer than it is."""

        def __init__(self, file):
            self.seek = lambda *where: file.seek(*where) + 10
            self.readinto = file.readinto

    class Broken:
        def seek(self, *_):
            return 1000

        readinto = raise_mine

    with pytest.raises(Mine):
        Model.from_reader(Broken())
    with pytest.raises(Mine):
        Model.from_folder({"config.json": 10}, raise_mine)
    short = io.BytesIO(golden.path.read_bytes()[:100])
    with pytest.raises(EOFError, match="byte 100"):
        Model.from_reader(Lengthened(short))
    fractions = []
    Model(golden.path, progress=fractions.append).close()
    assert fractions[0] == 0.0 and fractions[-1] == 1.0


def test_failed_writes_of_a_snapshot(session, golden):
    class Full:
        def write(self, _data):
            raise OSError("no space left")

    session.generate(golden.prompt, prompt_only=True)
    with pytest.raises(OSError, match="no space left"):
        session.save(Full())
    assert session.tokens == golden.prompt_ids


def test_closed_objects(golden):
    model = Model(golden.path)
    session = model.session()
    session.close()
    session.close()
    with pytest.raises(StateError, match="closed"):
        session.generate("x")
    model.close()
    with pytest.raises(StateError, match="closed"):
        model.session()


def test_log_messages_reach_a_function(golden):
    messages = []
    engine = sits_optima.Engine(threads=1, log=lambda level, text: messages.append((level, text)))
    Model(golden.path, engine=engine).close()
    assert all(isinstance(level, sits_optima.LogLevel) and text for level, text in messages)


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})


def last_line(code):
    run = run_python(code)
    assert run.returncode == 1
    return run.stderr.splitlines()[-1]


def test_a_missing_library_is_one_clear_line(tmp_path):
    line = last_line("import sits_optima; sits_optima.load('/nowhere')")
    assert line == ("sits_optima.errors.LibraryNotFound: SITS-Optima's library nowhere was not "
                    "found: looked for /nowhere (given to sits_optima.load)")
    line = last_line("import sits_optima; sits_optima.load('/usr')")
    assert "looked for /usr/libsitsoptima.so.1 (given" in line
    if not (PACKAGE / "sits_optima/lib").exists():
        line = last_line("from sits_optima import Model; Model('x')")
        wanted = PACKAGE / "sits_optima/lib/libsitsoptima.so.1"
        assert f"looked for {wanted} (the package's own); sits_optima.load(path)" in line
    text = tmp_path / "text.so"
    text.write_text("no library")
    line = last_line(f"import sits_optima; sits_optima.load({str(text)!r})")
    assert "cannot be loaded" in line and str(text) in line


def test_another_library_is_refused():
    line = last_line("import _ctypes, sits_optima; sits_optima.load(_ctypes.__file__)")
    assert "VersionMismatch" in line and "lacks optima_version" in line
    with pytest.raises(StateError, match="loaded already"):
        sits_optima.load("/nowhere/else.so")
    assert sits_optima.load() == sits_optima.load(os.environ["OPTIMA_LIBRARY"])
