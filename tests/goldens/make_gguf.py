#!/usr/bin/env python3
"""Writes the GGUF files of tests/goldens/gguf and, beside each, what a reader must find in it.

Made with gguf 0.19.0 and numpy 2.4.6:  python tests/goldens/make_gguf.py

The files are written by gguf.GGUFWriter. The expectations (<file>.txt) are not what was handed to
the writer but what gguf.GGUFReader finds in the written file, one line each:
  meta <key> <kind> <values>      kind: int float bool str int[] float[] bool[] str[]
  tensor <name> <type id> <dimensions, innermost first> <bytes> <crc32 of the data, hex>
Values are separated by commas; strings are hexadecimal UTF-8, floats Python's shortest repr.
A version 2 file differs from a version 3 one in the version word alone.
"""

import pathlib
import struct
import zlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFValueType as V

OUT = pathlib.Path(__file__).parent / "gguf"
TENSOR_TYPES = [
    T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K,
    T.Q6_K, T.IQ4_NL, T.IQ4_XS, T.MXFP4,
]
INTS = {V.UINT8, V.INT8, V.UINT16, V.INT16, V.UINT32, V.INT32, V.UINT64, V.INT64}
FLOATS = {V.FLOAT32, V.FLOAT64}


def add_random_tensor(writer, rng, name, kind, shape):
    """shape: outermost first, as numpy has it; the data are random bytes of the right count."""
    block_values, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    rows = [*shape[:-1], shape[-1] // block_values * block_bytes]
    if kind == T.F32:
        writer.add_tensor(name, rng.standard_normal(shape).astype(np.float32))
    else:
        data = rng.integers(0, 256, rows, dtype=np.uint8)
        writer.add_tensor(name, data, raw_dtype=kind)


def add_scalars(writer):
    writer.add_uint8("t.uint8", 255)
    writer.add_int8("t.int8", -128)
    writer.add_uint16("t.uint16", 65535)
    writer.add_int16("t.int16", -32768)
    writer.add_uint32("t.uint32", 2**32 - 1)
    writer.add_int32("t.int32", -(2**31))
    writer.add_uint64("t.uint64", 2**63 - 1)
    writer.add_int64("t.int64", -(2**63))
    writer.add_float32("t.float32", 1e-5)
    writer.add_float64("t.float64", 0.1)
    writer.add_bool("t.true", True)
    writer.add_bool("t.false", False)
    writer.add_string("t.string", "grüße \u4f60\u597d \U0001f600\n\"x\"")
    writer.add_key_value("t.empty_string", "", V.STRING)


def add_arrays(writer):
    for kind, values in {
        V.UINT8: [0, 1, 255], V.INT8: [-128, 0, 127], V.UINT16: [0, 65535],
        V.INT16: [-32768, 32767], V.UINT32: [0, 2**32 - 1], V.INT32: [-(2**31), 2**31 - 1],
        V.UINT64: [0, 2**63 - 1], V.INT64: [-(2**63), 2**63 - 1],
        V.FLOAT32: [0.0, -0.0, 1.5, 3e38, 1e-45], V.FLOAT64: [0.1, -1e308, 5e-324],
        V.BOOL: [True, False, True], V.STRING: ["", "a", "\u00e9", "two words"],
    }.items():
        writer.add_key_value(f"a.{kind.name.lower()}", values, V.ARRAY, sub_type=kind)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def field_line(field):
    kinds = field.types
    array = kinds[0] == V.ARRAY
    kind = kinds[-1]
    parts = [field.parts[i] for i in field.data]
    if kind == V.STRING:
        name, values = "str", [bytes(p).hex() for p in parts]
    elif kind == V.BOOL:
        name, values = "bool", [str(int(v)) for p in parts for v in p]
    elif kind in FLOATS:
        name, values = "float", [repr(float(v)) for p in parts for v in p]
    else:
        assert kind in INTS
        name, values = "int", [str(int(v)) for p in parts for v in p]
    return f"meta {field.name} {name}{'[]' if array else ''} {','.join(values)}".rstrip()


def describe(path):
    reader = gguf.GGUFReader(path)
    lines = [field_line(f) for f in reader.fields.values() if not f.name.startswith("GGUF.")]
    for t in reader.tensors:
        dims = ",".join(str(int(d)) for d in t.shape)
        data = np.asarray(t.data).tobytes()
        assert len(data) == int(t.n_bytes)
        lines.append(f"tensor {t.name} {int(t.tensor_type)} {dims} {len(data)} "
                     f"{zlib.crc32(data):08x}")
    path.with_suffix(".txt").write_text("\n".join(lines) + "\n")


def metadata_file():
    writer = gguf.GGUFWriter(OUT / "metadata.gguf", "none")
    add_scalars(writer)
    add_arrays(writer)
    finish(writer)


def tensors_file(name, alignment=None):
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(OUT / name, "none")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for kind in TENSOR_TYPES:
        block_values = max(gguf.GGML_QUANT_SIZES[kind][0], 3)
        add_random_tensor(writer, rng, f"t.{kind.name.lower()}", kind, (2, block_values))
    add_random_tensor(writer, rng, "t.rank1", T.F32, (5,))
    add_random_tensor(writer, rng, "t.rank3", T.F16, (2, 3, 5))
    add_random_tensor(writer, rng, "t.rank4", T.Q8_0, (2, 1, 3, 32))
    finish(writer)


def split_files():
    rng = np.random.default_rng(2)
    writer = gguf.GGUFWriter(OUT / "split.gguf", "none", split_max_tensors=2)
    writer.add_uint32("t.uint32", 7)
    for i in range(4):
        add_random_tensor(writer, rng, f"blk.{i}.weight", T.F32, (2, 3 + i))
    finish(writer)


def version_2_file():
    data = bytearray((OUT / "metadata.gguf").read_bytes())
    assert struct.unpack_from("<I", data, 4)[0] == 3
    struct.pack_into("<I", data, 4, 2)
    (OUT / "version2.gguf").write_bytes(data)


def main():
    OUT.mkdir(exist_ok=True)
    metadata_file()
    tensors_file("tensors.gguf")
    tensors_file("alignment64.gguf", alignment=64)
    split_files()
    version_2_file()
    for path in sorted(OUT.glob("*.gguf")):
        describe(path)


if __name__ == "__main__":
    main()
