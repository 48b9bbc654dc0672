"""Writes a GGUF file with random weights in the shape of a known model, to measure speed with.

Usage: python bench/versus/random_model.py OUT.gguf --shape llama-1b --type Q4_K [--layers N]
       [--seed 1] [--check] [--optima build/release/bin/optima] [-t 2]
Needs the Python packages gguf and numpy; --check also llama-cpp-python.

Shapes: llama-1b (Llama 3.2 1B), qwen3-4b, llama-8b (Llama 3 8B). Every matrix has the one type,
norms are F32. Blocks are random bits of the type with scales that give the weights the spread of a
trained model's, written in one pass: memory for a few MB of one tensor, nothing on disk but OUT.
The same arguments give the same file. --layers writes fewer layers than the shape has: the speed of
a layer is the same, and the file smaller.

The vocabulary has the size of the shape's and is made up: the 256 bytes, all pairs, and as many
triples as there is room for.

--check opens the file with this library and with libllama, and compares the logits of 16 positions.
"""

import argparse
import pathlib
import sys

import common

import gguf
import numpy

Kind = gguf.GGMLQuantizationType
CHUNK_WEIGHTS = 1 << 22

SHAPES = {
    # Heads of `head` values; `tied`: the head's matrix is the embedding's.
    "llama-1b": {"architecture": "llama", "layers": 16, "hidden": 2048, "ffn": 8192, "heads": 32,
                 "kv_heads": 8, "head": 64, "vocabulary": 128256, "tied": True, "rope": 5e5,
                 "pre": "llama-bpe", "epsilon": 1e-5, "head_norms": False},
    "qwen3-4b": {"architecture": "qwen3", "layers": 36, "hidden": 2560, "ffn": 9728, "heads": 32,
                 "kv_heads": 8, "head": 128, "vocabulary": 151936, "tied": True, "rope": 1e6,
                 "pre": "qwen2", "epsilon": 1e-6, "head_norms": True},
    "llama-8b": {"architecture": "llama", "layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32,
                 "kv_heads": 8, "head": 128, "vocabulary": 128256, "tied": False, "rope": 5e5,
                 "pre": "llama-bpe", "epsilon": 1e-5, "head_norms": False},
}


def halves(values):
    """[blocks] numbers as the two bytes of an f16: [blocks, 2]."""
    return values.astype("<f2").view(numpy.uint8).reshape(-1, 2)


def nibble_scales(blocks):
    """The 12 bytes of Q4_K and Q5_K: every 6-bit scale and minimum in 32..63, random in that."""
    blocks[:, 4:12] |= 0xA0  # Bit 5 of the first four of each kind; bit 7 is the others' bit 5.


def fill_k_quant(blocks, scale, middle, spread):
    """w = d·sc·q - dmin·m with q in 0..2·middle: sc and m are alike, so dmin = middle·d."""
    nibble_scales(blocks)
    blocks[:, 0:2] = halves(scale / spread)
    blocks[:, 2:4] = halves(scale / spread * middle)


def fill_q4_k(blocks, scale):
    fill_k_quant(blocks, scale, 7.5, 243.6)


def fill_q5_k(blocks, scale):
    fill_k_quant(blocks, scale, 15.5, 490.5)


def fill_q6_k(blocks, scale):
    blocks[:, 208:210] = halves(scale / 1365.7)


def fill_signed(blocks, scale, spread, random):
    """w = d·(q - middle): q's mean is half a step off the middle, so that d has either sign."""
    signs = random.integers(0, 2, len(blocks)) * 2.0 - 1.0
    blocks[:, 0:2] = halves(scale * signs / spread)


def fill_q4_1(blocks, scale):
    blocks[:, 0:2] = halves(scale / 4.61)
    blocks[:, 2:4] = halves(scale / 4.61 * -7.5)


# Of each type the weights of a block, its bytes, and what is done to its random bits, `scale` being
# the wanted standard deviation of each block. The divisors are the standard deviation of a block
# with d = 1.
TYPES = {
    "Q4_0": (32, 18, lambda blocks, scale, random: fill_signed(blocks, scale, 4.64, random)),
    "Q4_1": (32, 20, lambda blocks, scale, random: fill_q4_1(blocks, scale)),
    "Q5_0": (32, 22, lambda blocks, scale, random: fill_signed(blocks, scale, 9.25, random)),
    "Q8_0": (32, 34, lambda blocks, scale, random: fill_signed(blocks, scale, 73.9, random)),
    "Q4_K": (256, 144, lambda blocks, scale, random: fill_q4_k(blocks, scale)),
    "Q5_K": (256, 176, lambda blocks, scale, random: fill_q5_k(blocks, scale)),
    "Q6_K": (256, 210, lambda blocks, scale, random: fill_q6_k(blocks, scale)),
}
FLOATS = ("F16", "BF16")


def random_weights(kind, count, deviation, random):
    """`count` weights of the type, as bytes."""
    if kind in FLOATS:
        values = random.standard_normal(count, dtype=numpy.float32) * numpy.float32(deviation)
        if kind == "F16":
            return values.astype("<f2").view(numpy.uint8)
        return numpy.ascontiguousarray((values.view(numpy.uint32) >> 16).astype("<u2")).view(
            numpy.uint8)
    weights, block_bytes, fill = TYPES[kind]
    blocks = numpy.frombuffer(bytearray(random.bytes(count // weights * block_bytes)),
                              dtype=numpy.uint8).reshape(-1, block_bytes)
    fill(blocks, deviation * random.uniform(0.75, 1.25, len(blocks)), random)
    return blocks.reshape(-1)


def byte_symbols():
    """The 256 characters that stand for bytes in a byte-level vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {byte: chr(byte) for byte in printable}
    table.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return [table[byte] for byte in range(256)]


def vocabulary(count):
    """(tokens, merges): all bytes, all pairs, then triples; the last two tokens are special."""
    symbols = byte_symbols()
    tokens, merges = list(symbols), []

    def merge(left, right):
        tokens.append(left + right)
        merges.append(f"{left} {right}")

    for left in symbols:
        for right in symbols:
            merge(left, right)
    for pair in range(len(symbols), len(tokens)):
        for right in symbols:
            if len(tokens) == count - 2:
                return tokens + ["<|begin|>", "<|end|>"], merges
            merge(tokens[pair], right)
    raise ValueError(f"{count} tokens are more than bytes, pairs and triples")


def add_metadata(writer, shape, layers, name):
    writer.add_name(name)
    writer.add_context_length(32768)
    writer.add_embedding_length(shape["hidden"])
    writer.add_block_count(layers)
    writer.add_feed_forward_length(shape["ffn"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_key_length(shape["head"])
    writer.add_value_length(shape["head"])
    writer.add_rope_dimension_count(shape["head"])
    writer.add_rope_freq_base(shape["rope"])
    writer.add_layer_norm_rms_eps(shape["epsilon"])
    writer.add_vocab_size(shape["vocabulary"])
    tokens, merges = vocabulary(shape["vocabulary"])
    control = int(gguf.TokenType.CONTROL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(shape["pre"])
    writer.add_token_list(tokens)
    writer.add_token_types([int(gguf.TokenType.NORMAL)] * (len(tokens) - 2) + [control, control])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(len(tokens) - 2)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_add_bos_token(False)


def tensors(shape, layers):
    """(name, rows, columns, standard deviation); a norm has no rows and no deviation.

    What is added to the residual stream is scaled down by the number of additions, so that the
    stream keeps its size through the layers, as that of a trained model does."""
    hidden, q, kv = shape["hidden"], shape["heads"] * shape["head"], (
        shape["kv_heads"] * shape["head"])
    residual = (2 * layers) ** -0.5
    yield "token_embd.weight", shape["vocabulary"], hidden, 1.0
    for i in range(layers):
        layer = f"blk.{i}."
        yield layer + "attn_norm.weight", 0, hidden, 0
        yield layer + "attn_q.weight", q, hidden, hidden ** -0.5
        yield layer + "attn_k.weight", kv, hidden, hidden ** -0.5
        yield layer + "attn_v.weight", kv, hidden, hidden ** -0.5
        if shape["head_norms"]:
            yield layer + "attn_q_norm.weight", 0, shape["head"], 0
            yield layer + "attn_k_norm.weight", 0, shape["head"], 0
        yield layer + "attn_output.weight", hidden, q, q ** -0.5 * residual
        yield layer + "ffn_norm.weight", 0, hidden, 0
        yield layer + "ffn_gate.weight", shape["ffn"], hidden, hidden ** -0.5
        yield layer + "ffn_up.weight", shape["ffn"], hidden, hidden ** -0.5
        yield layer + "ffn_down.weight", hidden, shape["ffn"], shape["ffn"] ** -0.5 * residual
    yield "output_norm.weight", 0, hidden, 0
    if not shape["tied"]:
        yield "output.weight", shape["vocabulary"], hidden, hidden ** -0.5


def row_bytes(kind, columns):
    if kind in FLOATS:
        return 2 * columns
    weights, block_bytes, _ = TYPES[kind]
    if columns % weights:
        raise ValueError(f"rows of {columns} weights are no multiple of {kind}'s {weights}")
    return columns // weights * block_bytes


def write_matrix(file, kind, rows, columns, deviation, random):
    step = max(1, CHUNK_WEIGHTS // columns)
    for begin in range(0, rows, step):
        count = min(step, rows - begin) * columns
        random_weights(kind, count, deviation, random).tofile(file)


def write(path, shape, kind, layers, seed):
    """The file; gguf writes what stands before the tensors, which follow as they are made."""
    plan = list(tensors(shape, layers))
    writer = gguf.GGUFWriter(path, shape["architecture"])
    add_metadata(writer, shape, layers, f"random {shape['architecture']} {kind} seed {seed}")
    for name, rows, columns, _ in plan:
        if rows:
            size = rows * row_bytes(kind, columns)
            writer.add_tensor_info(name, (rows, row_bytes(kind, columns)), numpy.uint8, size,
                                   raw_dtype=Kind[kind])
        else:
            writer.add_tensor_info(name, (columns,), numpy.float32, 4 * columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    random = numpy.random.Generator(numpy.random.SFC64(seed))
    alignment = gguf.GGUF_DEFAULT_ALIGNMENT
    with open(path, "ab") as file:
        for _, rows, columns, deviation in plan:
            file.write(bytes(-file.tell() % alignment))
            if rows:
                write_matrix(file, kind, rows, columns, deviation, random)
            else:
                random.uniform(0.8, 1.2, columns).astype("<f4").tofile(file)
        file.write(bytes(-file.tell() % alignment))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--type", choices=[*TYPES, *FLOATS], required=True)
    parser.add_argument("--layers", type=int, default=0, help="0 = as many as the shape has")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="compare logits with libllama")
    common.add_engine_options(parser)
    args = parser.parse_args()
    shape = SHAPES[args.shape]
    write(args.model, shape, args.type, args.layers or shape["layers"], args.seed)
    print(f"{args.model.name}: {args.model.stat().st_size} bytes", file=sys.stderr)
    if args.check:
        llama = common.sibling("llama_cpp")
        command = [sys.executable, llama.__file__, str(args.model), "--child", "logits", "-t",
                   str(args.threads)]
        print(common.check_logits(args, command), file=sys.stderr)


if __name__ == "__main__":
    main()
