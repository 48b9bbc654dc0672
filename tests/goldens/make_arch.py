#!/usr/bin/env python3
"""Writes the small checkpoints of tests/goldens/arch and what transformers computes with them.

Made with transformers 5.24.0, torch 2.15.0, gguf 0.19.0, safetensors 0.8.0, tokenizers 0.23.3
(CPU, fp32, one thread):  OMP_NUM_THREADS=1 python tests/goldens/make_arch.py [name ...]

Each folder is a Hugging Face checkpoint as save_pretrained writes it, beside the GGUF file that
hf_to_gguf.py makes of it. The logits come from the saved weights, loaded again into fp32. A
checkpoint is only accepted when its logits are spread, its attention is selective, no router is
near a tie, and every option of its architecture moves the logits well beyond the tolerance.
tests/goldens/arch/README.md tells the layout.
"""

import json
import pathlib
import random
import sys

import numpy as np
import torch
import transformers

import hf_to_gguf
import make_arch_coded
import make_arch_model as arch
import make_arch_same
import make_arch_specs

OUT = pathlib.Path(__file__).parent / "arch"
TOLERANCE = 1e-3  # of the logits' standard deviation
MOVES = 10 * TOLERANCE
SAME = 1e-5
ENTROPY = 0.5
ROUTER_GAP = 2e-2  # rounded activations must not choose other experts
SEEDS = 40
RETRY = ("router_gap", "continuation")  # in the message: another seed may do
FOLDER_LIMIT = 400_000


def make_sequences(spec):
    rng = random.Random(spec.seed)
    return [[rng.randrange(len(arch.SPECIALS), arch.VOCABULARY) for _ in range(length)]
            for length in spec.lengths]


def build(spec, folder, sequences):
    model = arch.auto_class(hasattr(spec.config, "text_config")).from_config(
        spec.config, attn_implementation="eager")
    model = model.to(torch.float32).eval()
    arch.randomise(spec, model)
    arch.scale_logits(spec, model, sequences)
    arch.save(spec, model, folder)
    make_arch_specs.after_save(spec, folder)


def measure(spec, folder, sequences):
    model = arch.load(folder)
    with arch.router_gaps(model) as gaps:
        logits = arch.logits_of(model, sequences)
    entropy = arch.entropy_ratio(model, sequences[-1])
    facts = {"logits_std": round(float(logits.std()), 4), "attention_entropy": round(entropy, 4)}
    if gaps:
        facts["router_gap"] = round(min(gaps), 5)
    print(spec.name, facts, flush=True)
    assert logits.std() >= 2 and entropy <= ENTROPY, (spec.name, facts)
    assert not gaps or min(gaps) >= ROUTER_GAP, (spec.name, facts)
    if spec.name in make_arch_coded.FORMS:
        exact = arch.logits_of(arch.load(folder, rounded=False), sequences)
        facts["rounding"] = float(f"{float((exact - logits).abs().max() / logits.std()):.2g}")
    if not {"dynamic", "longrope"} & set(spec.notes):  # their factors change with the length
        facts |= arch.text_golden(folder, model)
    return logits, facts


def mutations_of(spec, folder, sequences, logits):
    entries = [arch.mutation_entry(folder, m, sequences, logits) for m in spec.mutations]
    weak = [e for e in entries if not e["moves"] >= MOVES]
    assert not weak, (spec.name, weak)
    return entries


def unmoved(spec, folder, sequences, logits):
    """The changes that leave the logits as they are."""
    changes = make_arch_same.SAME.get(spec.name, [])
    for change in changes:
        changed = arch.logits_of(arch.load(folder, changes=change), sequences)
        difference = float((changed - logits).abs().max() / logits.std())
        assert difference <= SAME, (spec.name, change, difference)
    return changes


def write_golden(spec, folder, sequences, logits, facts):
    golden = {"sequences": sequences, "vocabulary": logits.shape[-1], "tolerance": TOLERANCE,
              **facts, **spec.notes, "gguf": spec.gguf or "model.gguf",
              "mutations": mutations_of(spec, folder, sequences, logits),
              "same": unmoved(spec, folder, sequences, logits)}
    logits.numpy().astype("<f4").tofile(folder / "logits.bin")
    text = json.dumps(golden, indent=1)
    (folder / "golden.json").write_text(squeeze(text) + "\n")
    return golden


def squeeze(text):
    """Lists of numbers on one line."""
    out, depth = [], 0
    for line in text.split("\n"):
        bare = line.strip()
        number = bare.rstrip(",").lstrip("-").replace(".", "").replace("e-", "").isdigit()
        if out and depth and (number or bare in ("]", "],")):
            out[-1] += ("" if out[-1].endswith("[") or not number else " ") + bare
            depth = depth if number else 0
        else:
            out.append(line)
            depth = 1 if line.endswith("[") else 0
    return "\n".join(out)


def convert(spec, folder):
    try:
        hf_to_gguf.convert(folder, folder / "model.gguf")
    except hf_to_gguf.Refused as error:
        (folder / "model.gguf").unlink(missing_ok=True)
        assert spec.gguf, (spec.name, error)
    else:
        assert not spec.gguf, (spec.name, "has a form in GGUF after all")


def accepted(spec, folder, sequences):
    """The first seed whose model passes; a router near a tie makes most of the others fail."""
    for attempt in range(SEEDS):
        build(spec, folder, sequences)
        try:
            return measure(spec, folder, sequences)
        except AssertionError as error:
            if attempt == SEEDS - 1 or not any(t in str(error) for t in RETRY):
                raise
            spec.seed += 100


def make(spec):
    folder = OUT / spec.name
    folder.mkdir(parents=True, exist_ok=True)
    sequences = make_sequences(spec)
    logits, facts = accepted(spec, folder, sequences)
    golden = write_golden(spec, folder, sequences, logits, facts)
    convert(spec, folder)
    size = sum(f.stat().st_size for f in folder.iterdir())
    least = min(golden["mutations"], key=lambda e: e["moves"])
    print(f"  {size} bytes, {len(golden['mutations'])} mutations, least",
          {k: least[k] for k in ("config", "tensor", "moves") if k in least}, flush=True)
    assert size <= FOLDER_LIMIT, (spec.name, size)


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    names = sys.argv[1:]
    failed = []
    for spec in make_arch_specs.all_specs():
        if names and spec.name not in names:
            continue
        try:
            make(spec)
        except AssertionError as error:
            print("  REFUSED", error, flush=True)
            failed.append(spec.name)
    if failed:
        raise SystemExit(f"not accepted: {failed}")


if __name__ == "__main__":
    main()
