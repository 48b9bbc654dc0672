"""The library and the models of the tests: OPTIMA_LIBRARY is the library's file, OPTIMA_GOLDENS the
folder tests/goldens of the sources."""
import json
import os
import pathlib
import types

import numpy
import pytest

import sits_optima

GOLDENS = pathlib.Path(os.environ["OPTIMA_GOLDENS"])
sits_optima.load(os.environ["OPTIMA_LIBRARY"])


def tiny_golden(name):
    """A model of tests/goldens/tiny and what transformers computed with it."""
    folder = GOLDENS / "tiny"
    golden = types.SimpleNamespace(**json.loads((folder / f"{name}.json").read_text()))
    golden.path = folder / f"{name}.gguf"
    logits = numpy.fromfile(folder / f"{name}.logits", numpy.float32)
    golden.logits = logits.reshape(golden.positions, golden.vocabulary)
    return golden


@pytest.fixture(scope="session")
def golden():
    return tiny_golden("llama-q8_0")


@pytest.fixture(scope="session")
def model(golden):
    with sits_optima.Model(golden.path, threads=1) as opened:
        yield opened


@pytest.fixture
def session(model):
    with model.session() as made:
        yield made
