#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer/: small vocabularies with the ids that other implementations give
for one common list of strings, and the same for SmolLM2's own vocabulary (Apache-2.0).

  make_tokenizer.py --smollm2 SmolLM2-135M-Instruct.Q4_1.gguf

Expected ids come from tokenizers 0.23.3 (byte-level BPE, and SentencePiece vocabularies in
Gemma's manner), sentencepiece 0.2.3 (Llama's manner) and, for the pre-tokeniser "default", which
is a convention of GGUF files, llama-cpp-python 0.3.36. gguf 0.19.0 reads and writes the files.
Vocabularies are trained on the licence texts of Debian 12 and on the strings themselves.
"""

import argparse
import io
import pathlib
import tempfile
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

import tokenizer_tools as tools

OUT = pathlib.Path(__file__).resolve().parent / "tokenizer"
LICENCES = pathlib.Path("/usr/share/common-licenses")
VOCABULARY = 1500
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>"]
USER_DEFINED = ["<b>", "</b>", "<b><i>", "  \t"]

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(
    r" ?[^\s\p{L}\p{N}]+", r" ?[^\s\p{L}\p{M}\p{N}]+"
)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORD = r"[^\r\n\p{L}\p{N}]?"
TEKKEN = (
    f"{WORD}{UPPER}*{LOWER}+|{WORD}{UPPER}+{LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    f"{WORD}{UPPER}*{LOWER}+{CONTRACTIONS}?|{WORD}{UPPER}+{LOWER}*{CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def gpt2_steps():
    return [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]


def split_steps(pattern):
    return [
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]


def digits_steps():
    return [pre_tokenizers.Digits(individual_digits=True)] + gpt2_steps()


# name: (steps of the pre-tokeniser, normaliser, whole words first)
FAMILIES = {
    "gpt-2": (gpt2_steps, None, False),
    "smollm": (digits_steps, None, False),
    "command-r": (digits_steps, normalizers.NFC, False),
    "llama-bpe": (lambda: split_steps(LLAMA3), None, True),
    "qwen2": (lambda: split_steps(QWEN2), normalizers.NFC, False),
    "qwen35": (lambda: split_steps(QWEN35), normalizers.NFC, False),
    "tekken": (lambda: split_steps(TEKKEN), None, True),
    "gpt-4o": (lambda: split_steps(O200K), None, True),
}


def training_lines(strings):
    lines = tools.words_of(LICENCES / name for name in ("GPL-3", "Artistic", "MPL-2.0", "GFDL-1.3"))
    return lines + [text for text in strings if 0 < len(text) < 200] * 4


def byte_level_vocabulary(name, strings):
    """The vocabulary as a file has it, and the tokenizer that is the reference."""
    steps, normalizer, whole_words = FAMILIES[name]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Sequence(steps())
    if normalizer:
        trained.normalizer = normalizer()
    trained.train_from_iterator(
        training_lines(strings),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    model = tools.tokenizers_json(trained)["model"]
    index = dict(model["vocab"])
    merges = [tuple(merge) for merge in model["merges"]]
    if whole_words:  # Tokens that no merge makes: taken only when a word is looked up as a whole.
        for word in ("Helloworld", "\u0120interoperability", "helloWORLDfoo", "42", "\u0120!!"):
            index.setdefault(word, len(index))
    vocabulary = {
        "model": "gpt2",
        "pre": name,
        "merges": merges,
        "tokens": sorted(index, key=index.get),
    }
    vocabulary["kinds"] = [tools.NORMAL] * len(index)
    vocabulary["tokens"] += CONTROL + USER_DEFINED
    vocabulary["kinds"] += [tools.CONTROL] * len(CONTROL) + [tools.USER_DEFINED] * len(USER_DEFINED)
    vocabulary["bos"] = vocabulary["eos"] = vocabulary["tokens"].index("<|endoftext|>")

    reference = Tokenizer(models.BPE(vocab=index, merges=merges, ignore_merges=whole_words))
    reference.pre_tokenizer, reference.normalizer = trained.pre_tokenizer, trained.normalizer
    reference.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL])
    reference.add_tokens([AddedToken(t, special=False, normalized=False) for t in USER_DEFINED])
    assert reference.get_vocab() == {t: i for i, t in enumerate(vocabulary["tokens"])}
    return vocabulary, reference


def reference_ids(reference, flags, strings):
    reference.encode_special_tokens = not flags & tools.PARSE
    return [e.ids for e in reference.encode_batch(strings, add_special_tokens=False)]


def llama_cpp_model(vocabulary):
    """llama.cpp with this vocabulary and no weights."""
    import gguf
    import llama_cpp

    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/vocabulary.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        for add in (
            writer.add_context_length,
            writer.add_embedding_length,
            writer.add_block_count,
            writer.add_feed_forward_length,
            writer.add_head_count,
        ):
            add(64)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_tokenizer_model(vocabulary["model"])
        writer.add_tokenizer_pre(vocabulary["pre"])
        writer.add_token_list(vocabulary["tokens"])
        writer.add_token_types(vocabulary["kinds"])
        writer.add_token_merges([" ".join(merge) for merge in vocabulary["merges"]])
        writer.add_bos_token_id(vocabulary["bos"])
        writer.add_eos_token_id(vocabulary["eos"])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return llama_cpp.Llama(path, vocab_only=True, verbose=False)


def llama_cpp_ids(vocabulary, strings):
    model = llama_cpp_model(vocabulary)
    return [model.tokenize(text.encode(), add_bos=False, special=True) for text in strings]


def train_sentencepiece(**options):
    # Without the random strings, whose thousands of characters would all become pieces.
    lines = [text.replace("\n", " ").replace("\0", "") for text in training_lines(tools.HAND_MADE)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=VOCABULARY,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def sentencepiece_vocabulary(model_bytes, **settings):
    proto = sentencepiece_model_pb2.ModelProto.FromString(model_bytes)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
    return {
        "model": "llama",
        "pre": "default",
        "tokens": [p.piece for p in proto.pieces],
        "kinds": [p.type for p in proto.pieces],
        "scores": [p.score for p in proto.pieces],
        "bos": processor.bos_id(),
        "eos": processor.eos_id(),
        "unknown": processor.unk_id(),
        **settings,
    }


def collapsing(model_bytes):
    proto = sentencepiece_model_pb2.ModelProto.FromString(model_bytes)
    proto.normalizer_spec.remove_extra_whitespaces = True
    return proto.SerializeToString()


def sentencepiece_ids(model_bytes, strings):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
    return [processor.encode(text) for text in strings]


def gemma_like():
    """A vocabulary in Gemma's manner, and the tokenizer that transformers builds for such a one:
    merges from the scores, spaces replaced, runs of spaces as merges of their own."""
    runs = ["\u2581" * n for n in range(2, 9)]
    model = train_sentencepiece(
        byte_fallback=True,
        add_dummy_prefix=False,
        bos_id=2,
        eos_id=1,
        unk_id=3,
        pad_id=0,
        user_defined_symbols=["\n", "\n\n", "\n\n\n", "<b>", "</b>", "<b><i>"] + runs,
        control_symbols=["<start_of_turn>", "<end_of_turn>"],
    )
    vocabulary = sentencepiece_vocabulary(model, pad=0, add_space_prefix=0)
    pieces = vocabulary["tokens"]
    index = {piece: i for i, piece in enumerate(pieces)}
    merges = []
    for i, piece in enumerate(pieces):
        if vocabulary["kinds"][i] not in (tools.NORMAL, tools.USER_DEFINED):
            continue
        # The spaces' scores say nothing; their ids come before those of all normal pieces.
        order = (
            (0, i)
            if vocabulary["kinds"][i] == tools.USER_DEFINED
            else (1, -vocabulary["scores"][i])
        )
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in index and right in index:
                merges.append((order, index[left], index[right], (left, right)))
    merges.sort(key=lambda merge: merge[:3])
    reference = Tokenizer(
        models.BPE(
            vocab=index,
            merges=[merge[3] for merge in merges],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    reference.normalizer = normalizers.Replace(" ", "\u2581")
    reference.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    special = [
        p for p, kind in zip(pieces, vocabulary["kinds"]) if kind in (tools.CONTROL, tools.UNKNOWN)
    ]
    added = [
        p
        for p, kind in zip(pieces, vocabulary["kinds"])
        if kind == tools.USER_DEFINED and p not in runs
    ]
    reference.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    reference.add_tokens([AddedToken(t, special=False, normalized=False) for t in added])
    # As converters write them to GGUF: with real spaces.
    vocabulary["tokens"] = [p.replace("\u2581", " ") if p in runs else p for p in pieces]
    return vocabulary, reference


def write(name, vocabulary, strings, answers):
    """answers: {flags: ids of each string, or None where the reference has no say}."""
    cases, first = [], None
    for flags, lists in answers.items():
        for i, ids in enumerate(lists):
            same = first is not None and first[i] == ids and i % 8
            if ids is not None and not same:
                cases.append((flags, i, ids))
        first = first or lists
    data = [tools.vocabulary_bytes(vocabulary), tools.number(len(cases))]
    for flags, i, ids in cases:
        data += [tools.number(flags), tools.number(i), tools.number(len(ids))]
        data += [tools.number(id) for id in ids]
    (OUT / f"{name}.bin").write_bytes(b"".join(data))
    print(
        f"{name}: {len(vocabulary['tokens'])} tokens, {len(cases)} cases, {sum(map(len, data))} bytes"
    )


def both(reference, strings):
    return {flags: reference_ids(reference, flags, strings) for flags in (tools.PARSE, 0)}


def write_smollm2(path, strings):
    vocabulary = tools.read_gguf_vocabulary(path)
    index = {token: i for i, token in enumerate(vocabulary["tokens"])}
    reference = Tokenizer(models.BPE(vocab=index, merges=vocabulary["merges"]))
    reference.pre_tokenizer = pre_tokenizers.Sequence(digits_steps())
    control = [
        t for t, kind in zip(vocabulary["tokens"], vocabulary["kinds"]) if kind == tools.CONTROL
    ]
    reference.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control])
    write("smollm2", vocabulary, strings, both(reference, strings))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smollm2", required=True)
    args = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    lines = tools.words_of([LICENCES / "GPL-3", LICENCES / "MPL-2.0"])
    # Numbers of Unicode 17, which the reference itself classes in two ways.
    undecided = {chr(c) for c in (*range(0x11DE0, 0x11DEA), *range(0x16FF4, 0x16FF7))}
    strings = [
        t for t in tools.HAND_MADE + tools.random_strings(1800, 7, lines) if not undecided & set(t)
    ]
    (OUT / "strings.bin").write_bytes(
        tools.number(len(strings)) + b"".join(tools.string(t) for t in strings)
    )

    for name in FAMILIES:
        vocabulary, reference = byte_level_vocabulary(name, strings)
        write(name, vocabulary, strings, both(reference, strings))
        if name == "gpt-2":
            vocabulary["pre"] = "default"
            # llama.cpp's tables are older than the characters that Unicode 15 and 16 brought.
            old = [t if all(unicodedata.category(c) != "Cn" for c in t) else None for t in strings]
            asked = iter(llama_cpp_ids(vocabulary, [t for t in old if t is not None]))
            write(
                "default",
                vocabulary,
                strings,
                {tools.PARSE: [t if t is None else next(asked) for t in old]},
            )

    # sentencepiece knows no special tokens in a text: strings that name one are left out.
    model = train_sentencepiece(byte_fallback=True)
    plain = [
        t if "<s>" not in t and "</s>" not in t and "<unk>" not in t else None for t in strings
    ]

    def ask(model_bytes):
        return [None if t is None else sentencepiece_ids(model_bytes, [t])[0] for t in plain]

    vocabulary = sentencepiece_vocabulary(model)
    write("sentencepiece", vocabulary, strings, {0: ask(model)})
    vocabulary["remove_extra_whitespaces"] = True
    write("sentencepiece-collapse", vocabulary, strings, {0: ask(collapsing(model))})
    without_bytes = train_sentencepiece(byte_fallback=False, character_coverage=0.98)
    write(
        "sentencepiece-unknown",
        sentencepiece_vocabulary(without_bytes),
        strings,
        {0: ask(without_bytes)},
    )
    vocabulary, reference = gemma_like()
    write("gemma-like", vocabulary, strings, both(reference, strings))
    write_smollm2(args.smollm2, strings)


if __name__ == "__main__":
    main()
