#!/usr/bin/env python3
"""Compares the tokenizer with `tokenizers` on the vocabulary of a real GGUF file, over hand-made
and random strings, with special tokens parsed and literal.

  tokenizer_parity.py --helper build/dev/bin/tokenize_stdin --gguf MODEL.gguf [--count 100000]

The reference is what `transformers` reads from the same file, with what it loses put back: for the
pre-tokeniser "smollm", Digits(individual_digits=True) before ByteLevel, as in the model's own
tokenizer.json. `--second` adds llama-cpp-python's ids for the strings that differ.
Written for transformers 5.24.0, tokenizers 0.23.3, gguf 0.19.0.
"""

import argparse
import collections
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
import tokenizer_tools as tools  # noqa: E402

LICENCES = pathlib.Path("/usr/share/common-licenses")


def reference(path, pre):
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    backend = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name).backend_tokenizer
    if pre == "smollm":
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    return backend


def ids_of(backend, flags, texts):
    backend.encode_special_tokens = not flags & tools.PARSE
    batch = backend.encode_batch(texts, add_special_tokens=bool(flags & tools.ADD_SPECIAL))
    return [encoding.ids for encoding in batch]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--gguf", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", action="append", default=[], help="more files to take lines from")
    parser.add_argument("--second", action="store_true")
    parser.add_argument("--show", type=int, default=20)
    args = parser.parse_args()

    vocabulary = tools.read_gguf_vocabulary(args.gguf)
    backend = reference(args.gguf, vocabulary["pre"])
    lines = tools.words_of(sorted(p for p in LICENCES.iterdir() if p.is_file()) + args.text)
    texts = tools.HAND_MADE + tools.random_strings(args.count, args.seed, lines)
    second = None
    if args.second:
        import llama_cpp

        second = llama_cpp.Llama(str(args.gguf), vocab_only=True, verbose=False)

    different = collections.Counter()
    with tempfile.NamedTemporaryFile() as file:
        file.write(tools.vocabulary_bytes(vocabulary))
        file.flush()
        for flags in (tools.PARSE, 0, tools.PARSE | tools.ADD_SPECIAL):
            ours = tools.run_helper(args.helper, file.name, [(flags, t) for t in texts])
            for text, want, have in zip(texts, ids_of(backend, flags, texts), ours):
                if want == have:
                    continue
                different[flags] += 1
                if different[flags] <= args.show:
                    print("flags", flags, repr(text), "\n  want", want, "\n  have", have)
                    if second:
                        other = second.tokenize(
                            text.encode(), add_bos=bool(flags & 1), special=bool(flags & 2)
                        )
                        print("  llama.cpp", other)
    total = sum(different.values())
    print(
        f"{args.gguf.name}: {len(texts)} strings x 3 ways of special tokens, {total} differences",
        dict(different),
    )
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
