#!/usr/bin/env python3
"""Compares the logits of tests/goldens/arch with those of libllama on the GGUF files.

Made with llama-cpp-python 0.3.36, gguf 0.19.0, numpy 2.4.6:
  python tests/long/arch_libllama.py [--as-is] [name ...]

So that the reader of Hugging Face folders and the writer of GGUF files cannot agree on an error.
By default each file is first rewritten with f32 weights and runs with an f32 cache:
what remains is the difference of the two implementations, not of their roundings. With --as-is the
file runs as it is. libllama chooses the factors of longrope by the size of the context, never below
256 positions: for sequences that use the short factors they are written in place of the long ones.
"""

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import llama_cpp
import numpy as np

ARCH = pathlib.Path(__file__).parent.parent / "goldens" / "arch"
LIMIT = 1e-2  # of the logits' standard deviation
KEEP = {gguf.GGMLQuantizationType.F32}

messages = []


@llama_cpp.llama_log_callback
def keep_log(level, text, _):
    if level >= 3:  # warnings and errors
        messages.append(text.decode(errors="replace").strip())


def copy_fields(reader, writer):
    for field in reader.fields.values():
        # A name with "phi3" in it makes libllama look for tokens of the real vocabulary.
        if field.name.startswith("GGUF.") or field.name in ("general.architecture",
                                                            "general.name"):
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


def yarn_range(path):
    """libllama reads these two keys for few architectures, so they are given to the context."""
    fields = gguf.GGUFReader(path).fields.values()
    return {key: float(field.contents()) for field in fields
            for key in ("yarn_beta_fast", "yarn_beta_slow") if field.name.endswith(key)}


def run(path, ids, widen):
    """The logits of a sequence in a context of its own."""
    cache = 0 if widen else 1  # GGML_TYPE_F32, GGML_TYPE_F16
    model = llama_cpp.Llama(str(path), n_ctx=256, n_batch=256, n_threads=1, logits_all=True,
                            n_gpu_layers=0, verbose=False, type_k=cache, type_v=cache,
                            swa_full=False, **yarn_range(path))
    model.eval(ids)
    rows = np.array(model.scores[:len(ids)], dtype=np.float32)
    model.close()
    return rows


def compare(folder, golden, widen, scratch):
    """For each sequence its logits, their largest differences and divergences, row by row."""
    sequences = golden["sequences"]
    truth = np.fromfile(folder / "logits.bin", "<f4").reshape(-1, golden["vocabulary"])
    kinds = golden.get("longrope", ["long"] * len(sequences))
    results = []
    start = 0
    for ids, kind in zip(sequences, kinds):
        path = scratch / f"{folder.name}-{kind}.gguf"
        if not path.exists():
            rewrite(folder / "model.gguf", path, widen, kind == "short")
        got = run(path, ids, widen)
        want = truth[start:start + len(ids)]
        start += len(ids)
        results.append((got, np.abs(got - want).max(-1) / truth.std(), divergence(want, got)))
    return results


def divergence(want, got):
    """Kullback-Leibler divergence of each row, in nats."""
    def log_softmax(x):
        x = x.astype(np.float64) - x.max(-1, keepdims=True)
        return x - np.log(np.exp(x).sum(-1, keepdims=True))

    p, q = log_softmax(want), log_softmax(got)
    return (np.exp(p) * (p - q)).sum(-1)


def judge(golden, results):
    """(largest difference where libllama is to agree, what is said of it)."""
    whole = max(float(d.max()) for _, d, _ in results)
    mean = float(np.concatenate([k for _, _, k in results]).mean())
    if "libllama_mutation" in golden:
        entry = next(e for e in golden["mutations"]
                     if e.get("config") == golden["libllama_mutation"])
        row = np.concatenate([got for got, _, _ in results])[entry["row"]]
        part = float(np.abs(row[entry["ids"]] - entry["logits"]).max() / golden["logits_std"])
        return part, f"{part:.2e} ({whole:.2e} from the golden): {golden['libllama_why']}"
    if "libllama_rows" in golden:
        rows = golden["libllama_rows"]
        part = max(float(d[:rows].max()) for _, d, _ in results)
        return part, (f"{part:.2e} in the first {rows} rows ({whole:.2e} in all): "
                      f"{golden['libllama_why']}")
    return whole, f"{whole:.2e}, mean divergence {mean:.1e}"


def report(folder, widen):
    golden = json.loads((folder / "golden.json").read_text())
    if golden["gguf"] != "model.gguf":
        return "no file", golden["gguf"]
    messages.clear()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            results = compare(folder, golden, widen, pathlib.Path(scratch))
    except (ValueError, RuntimeError) as error:
        return "not loaded", f"{error}; {' | '.join(messages[-3:])}"
    difference, text = judge(golden, results)
    return ("agrees" if difference <= LIMIT else "DIFFERS"), text


def in_child(name, widen):
    """A process for each model, as libllama ends the process where an assertion fails."""
    command = [sys.executable, __file__, "--child", name] + ([] if widen else ["--as-is"])
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "GGML_NO_BACKTRACE": "1"})
    if done.returncode == 0:
        return done.stdout.strip().split("\t")
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    return "not loaded", f"ended with {done.returncode}: {' | '.join(lines[-2:])}"


def main():
    arguments = sys.argv[1:]
    widen = "--as-is" not in arguments
    names = [a for a in arguments if not a.startswith("--")]
    if "--child" in arguments:
        llama_cpp.llama_log_set(keep_log, ctypes.c_void_p(0))
        print("\t".join(report(ARCH / names[0], widen)))
        return
    bad = 0
    for file in sorted(ARCH.glob("*/golden.json")):
        if names and file.parent.name not in names:
            continue
        verdict, detail = in_child(file.parent.name, widen)
        bad += verdict in ("DIFFERS", "not loaded")
        print(f"{file.parent.name:20} {verdict:10} {detail}", flush=True)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
