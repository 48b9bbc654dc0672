#!/usr/bin/env python3
"""Writes a draft model: a GGUF file with the upper layers of another one removed.

Usage: python tests/goldens/make_draft.py SOURCE.gguf LAYERS OUT.gguf
Made with gguf 0.19.0. The committed one:
       cd tests/goldens && python make_draft.py tiny/llama-q8_0.gguf 2 drafts/llama-q8_0.gguf

What the lower LAYERS layers compute goes straight to the last norm and the head. All else stays as
it is, byte for byte: vocabulary, head, special tokens. Lists of the metadata with one value a layer
are cut, too. No training: how often such a draft is right depends on the model.
"""

import re
import sys

import gguf
import numpy as np

LAYER = re.compile(r"blk\.(\d+)\.")


def value_of(field, layers_before, layers):
    """The field's value, and the types that the writer needs."""
    value, kind = field.contents(), field.types[0]
    sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
    if field.name.endswith(".block_count"):
        return layers, kind, sub
    per_layer = not field.name.startswith("tokenizer.") and sub is not None
    if per_layer and len(value) == layers_before:
        value = value[:layers]
    return value, kind, sub


def make_draft(source, layers, out):
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    before = reader.fields[f"{architecture}.block_count"].contents()
    if not 1 <= layers <= before:
        sys.exit(f"{source} has {before} layers, {layers} cannot be kept")
    writer = gguf.GGUFWriter(out, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        value, kind, sub = value_of(field, before, layers)
        writer.add_key_value(field.name, value, kind, sub_type=sub)
    kept = []
    for tensor in reader.tensors:
        layer = LAYER.match(tensor.name)
        if layer is None or int(layer.group(1)) < layers:
            kept.append(tensor)
            writer.add_tensor_info(tensor.name, tensor.data.shape, tensor.data.dtype,
                                   tensor.data.nbytes, tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in kept:
        writer.write_tensor_data(np.ascontiguousarray(tensor.data))
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    make_draft(sys.argv[1], int(sys.argv[2]), sys.argv[3])
