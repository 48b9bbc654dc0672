#!/usr/bin/env python3
"""Compares the logits of tests/goldens/arch with those of libllama on the GGUF files.

Made with llama-cpp-python 0.3.36, gguf 0.19.0, numpy 2.4.6:
  python tests/long/arch_libllama.py [--as-is] [name ...]

So that the reader of Hugging Face folders and the writer of GGUF files cannot agree on an error.
By default each file is first rewritten with f32 weights (MXFP4 stays) and runs with an f32 cache:
what remains is the difference of the two implementations, not of their roundings. With --as-is the
file runs as it is. libllama chooses the factors of longrope by the size of the context, never below
256 positions: for sequences that use the short factors they are written in place of the long ones.
"""

import ctypes
import json
import pathlib
import sys
import tempfile

import gguf
import llama_cpp
import numpy as np

ARCH = pathlib.Path(__file__).parent.parent / "goldens" / "arch"
LIMIT = 1e-2  # of the logits' standard deviation
KEEP = {gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.MXFP4}

messages = []


@llama_cpp.llama_log_callback
def keep_log(level, text, _):
    if level >= 3:  # warnings and errors
        messages.append(text.decode(errors="replace").strip())


def copy_fields(reader, writer):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)


def rewrite(source, target, widen, short_factors):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    copy_fields(reader, writer)
    tensors = {t.name: t for t in reader.tensors}
    for name, t in tensors.items():
        if short_factors and name == "rope_factors_long.weight":
            t = tensors["rope_factors_short.weight"]
        if t.tensor_type in KEEP or not widen:
            writer.add_tensor(name, t.data, raw_dtype=t.tensor_type)
        else:
            writer.add_tensor(name, gguf.quants.dequantize(t.data, t.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(path, sequences, widen):
    """The logits of each sequence in a context of its own."""
    cache = 0 if widen else 1  # GGML_TYPE_F32, GGML_TYPE_F16
    model = llama_cpp.Llama(str(path), n_ctx=256, n_batch=256, n_threads=1, logits_all=True,
                            n_gpu_layers=0, verbose=False, type_k=cache, type_v=cache,
                            swa_full=False, yarn_attn_factor=-1.0, yarn_beta_fast=-1.0,
                            yarn_beta_slow=-1.0)
    rows = []
    for ids in sequences:
        model.reset()
        model.eval(ids)
        rows.append(np.array(model.scores[:len(ids)], dtype=np.float32))
    model.close()
    return rows


def compare(folder, widen, scratch):
    golden = json.loads((folder / "golden.json").read_text())
    sequences = golden["sequences"]
    truth = np.fromfile(folder / "logits.bin", "<f4").reshape(-1, golden["vocabulary"])
    kinds = golden.get("longrope", ["long"] * len(sequences))
    rows = []
    for i, ids in enumerate(sequences):
        path = scratch / f"{folder.name}-{kinds[i]}.gguf"
        if not path.exists():
            rewrite(folder / "model.gguf", path, widen, kinds[i] == "short")
        rows += run(path, [ids], widen)
    differences = []
    start = 0
    for got in rows:
        want = truth[start:start + len(got)]
        start += len(got)
        differences.append(np.abs(got - want).max(-1) / truth.std())
    return golden, differences


def report(folder, widen):
    golden = json.loads((folder / "golden.json").read_text())
    if golden["gguf"] != "model.gguf":
        return "no file", f"{golden['gguf']}"
    messages.clear()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            golden, differences = compare(folder, widen, pathlib.Path(scratch))
    except (ValueError, RuntimeError) as error:
        return "not loaded", f"{error}; {' | '.join(messages[-3:])}"
    rows = golden.get("libllama_rows")
    whole = max(float(d.max()) for d in differences)
    if rows is None:
        return ("agrees" if whole <= LIMIT else "DIFFERS"), f"{whole:.2e}"
    part = max(float(d[:rows].max()) for d in differences)
    verdict = "agrees" if part <= LIMIT else "DIFFERS"
    return verdict, f"{part:.2e} in the first {rows} rows ({whole:.2e} in all): " \
                    f"{golden['libllama_why']}"


def main():
    arguments = sys.argv[1:]
    widen = "--as-is" not in arguments
    names = [a for a in arguments if not a.startswith("--")]
    llama_cpp.llama_log_set(keep_log, ctypes.c_void_p(0))
    bad = 0
    for file in sorted(ARCH.glob("*/golden.json")):
        if names and file.parent.name not in names:
            continue
        verdict, detail = report(file.parent, widen)
        bad += verdict in ("DIFFERS", "not loaded")
        print(f"{file.parent.name:24} {verdict:10} {detail}", flush=True)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
