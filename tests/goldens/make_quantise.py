#!/usr/bin/env python3
"""Writes tests/goldens/quant/quantise.txt: rows of floats and the blocks that gguf makes of them.

Made with gguf 0.19.0, numpy 2.4.6:  python tests/goldens/make_quantise.py
A line: type, the row's fp32 bits in hexadecimal, the blocks' bytes in hexadecimal.
"""

import pathlib

import gguf
import numpy as np

OUT = pathlib.Path(__file__).parent / "quant/quantise.txt"


def rows(random):
    yield random.standard_normal(64)
    yield random.standard_normal(96) * 1e-3
    yield np.zeros(32)
    yield np.concatenate([np.zeros(32), np.full(32, -3.5)])
    yield random.standard_t(2, 64) * 20
    yield np.linspace(-1, 1, 32)
    yield -np.linspace(-1, 1, 32)
    yield random.standard_normal(32) * 6e4  # scales near the largest of fp16


def main():
    random = np.random.default_rng(5)
    lines = []
    for row in rows(random):
        row = row.astype(np.float32)
        for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
            blocks = gguf.quants.quantize(row, kind)
            lines.append(f"{kind.name} {row.view(np.uint8).tobytes().hex()} {blocks.tobytes().hex()}")
    OUT.write_text("\n".join(lines) + "\n")


main()
