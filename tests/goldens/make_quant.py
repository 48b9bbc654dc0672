#!/usr/bin/env python3
"""Makes tests/goldens/quant/*.bin: random valid blocks of every weight type and their values.

Oracle: gguf 0.19.0 (gguf.quants.dequantize) and numpy 2.4.6.
    pip install gguf==0.19.0 numpy==2.4.6 && python3 tests/goldens/make_quant.py

<TYPE>.bin   int64 count of values, the row's bytes, then `count` fp32 values.
half.bin     int64 count, fp32 inputs, uint16 binary16, uint16 bfloat16 of each (nearest even).
"""

import pathlib

import gguf
import numpy as np

OUT = pathlib.Path(__file__).parent / "quant"
VALUES = 1024
# Byte offsets of the binary16 scales inside a block; the rest of a block may be any bytes.
HALF_OFFSETS = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def random_halves(rng, count):
    """Scales of all sizes: ordinary, negative, subnormal, zero."""
    halves = (rng.standard_normal(count) * 10.0 ** rng.integers(-3, 2, count)).astype(np.float16)
    halves[::17] = np.float16(3e-7)
    halves[::29] = np.float16(0)
    return halves.view(np.uint8).reshape(count, 2)


def random_blocks(rng, name):
    values, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = rng.integers(0, 256, (VALUES // values, size), dtype=np.uint8)
    for offset in HALF_OFFSETS[name]:
        blocks[:, offset : offset + 2] = random_halves(rng, len(blocks))
    if name == "MXFP4":
        blocks[:, 0] = rng.integers(90, 150, len(blocks))
        blocks[:4, 0] = [0, 1, 2, 127]
    return blocks


def write(name, *arrays):
    with open(OUT / f"{name}.bin", "wb") as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).tobytes())


def main():
    rng = np.random.default_rng(20261129)
    OUT.mkdir(exist_ok=True)
    count = np.array([VALUES], np.int64)
    for name in HALF_OFFSETS:
        blocks = random_blocks(rng, name)
        values = gguf.quants.dequantize(blocks.reshape(1, -1), gguf.GGMLQuantizationType[name])
        write(name, count, blocks, values.astype(np.float32).reshape(-1))
    floats = rng.standard_normal(VALUES).astype(np.float32)
    write("F32", count, floats, floats)
    halves = random_halves(rng, VALUES)
    write("F16", count, halves, halves.reshape(-1).view(np.float16).astype(np.float32))
    bf16 = gguf.quants.quantize(floats.reshape(1, -1), gguf.GGMLQuantizationType.BF16)
    write("BF16", count, bf16, gguf.quants.dequantize(bf16, gguf.GGMLQuantizationType.BF16))

    inputs = rng.integers(0, 2**32, VALUES, dtype=np.uint32)
    inputs[::2] = (rng.standard_normal(VALUES // 2) * 2.0 ** rng.integers(-26, 17, VALUES // 2)
                   ).astype(np.float32).view(np.uint32)
    # Ties and limits: halfway cases of both formats, the largest and smallest binary16 numbers.
    edges = [0x3F801000, 0x3F803000, 0x3F808000, 0x3F818000, 0x477FEFFF, 0x477FF000, 0x33000000,
             0x33000001, 0x33C00000, 0x387FE000, 0x387FF000, 0x38800000, 0x00000000, 0x80000000,
             0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x00000001]
    inputs[: len(edges)] = edges
    inputs = inputs[~np.isnan(inputs.view(np.float32))].view(np.float32)
    with np.errstate(over="ignore"):
        halves = inputs.astype(np.float16)
    bf16 = gguf.quants.quantize(inputs.reshape(1, -1), gguf.GGMLQuantizationType.BF16)
    write("half", np.array([len(inputs)], np.int64), inputs, halves, bf16)


if __name__ == "__main__":
    main()
