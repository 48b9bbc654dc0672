#!/usr/bin/env python3
"""Writes tests/goldens/folders: vocabularies of folders without tokenizer.json, and ids.

Made with tiktoken 0.14.0, mistral_common 1.13.1, tokenizers 0.23.3:
    python tests/goldens/make_folder_vocabularies.py

Each folder has a config.json, tekken.json or a tokenizer.model of ranks, maybe a
tokenizer_config.json, and golden.json: texts, their ids, and the ids that end an answer.
"""

import base64
import json
import pathlib
import unicodedata

import tiktoken
import tokenizers
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

import tiny_vocabulary

OUT = pathlib.Path(__file__).parent / "folders"
MERGES = 120
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = ["", "the old river follows every engine.", "It's 12345 o'clock!\n\n  Twice.",
         "\u00e9 e\u0301 \u4f60\u597d \U0001f600", " \t x\r\n", "Every garden, AND the table; 1.5",
         "a <|eot|> b </s> c"]


def ranks():
    """Bytes first, then what byte-level merges make, in their order."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=256 + MERGES, initial_alphabet=alphabet,
                                             show_progress=False)
    model.train_from_iterator(tiny_vocabulary.corpus(), trainer)
    decoder = tokenizers.decoders.ByteLevel()
    merged = [decoder.decode([token]).encode()
              for token, i in sorted(model.get_vocab().items(), key=lambda item: item[1])
              if len(token) > 1]
    return [bytes([b]) for b in range(256)] + merged


def write(name, files, golden):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*"):
        old.unlink()
    for file, content in (files | {"golden.json": golden}).items():
        text = content if isinstance(content, str) else json.dumps(content) + "\n"
        (folder / file).write_text(text)


def write_ranks(name, kind, pattern, specials, begin, listed):
    tokens = ranks()
    table = {token: i for i, token in enumerate(tokens)}
    numbers = {text: len(tokens) + i for i, text in enumerate(specials)}
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=table,
                                 special_tokens=numbers)
    texts = TEXTS + [f"x{specials[0]}y {specials[-1]}"]
    nfc = (lambda t: unicodedata.normalize("NFC", t)) if kind == "qwen2" else str
    ids = [([numbers[begin]] if begin else []) + encoding.encode(nfc(t), allowed_special="all")
           for t in texts]
    lines = "".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in table.items())
    files = {"config.json": {"model_type": kind, "eos_token_id": numbers[specials[1]]},
             "tokenizer.model": lines}
    if listed:
        files["tokenizer_config.json"] = {
            "bos_token": begin, "eos_token": specials[1], "added_tokens_decoder": {
                str(i): {"content": t, "special": True} for t, i in numbers.items()}}
    write(name, files, {"texts": texts, "ids": ids, "ends": [numbers[specials[1]]]})


def write_tekken(name, specials):
    tokens = ranks()
    reserved = 24
    vocab = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None}
             for i, t in enumerate(tokens)]
    config = {"pattern": TEKKEN, "num_vocab_tokens": len(vocab), "version": "v3",
              "default_vocab_size": len(vocab) + reserved - 10,
              "default_num_special_tokens": reserved}
    tekken = {"config": config, "vocab": vocab}
    if specials:
        tekken |= {"special_tokens": [{"rank": i, "token_str": t, "is_control": True}
                                      for i, t in enumerate(specials)]}
    files = {"config.json": {"model_type": "mistral", "eos_token_id": 2}, "tekken.json": tekken}
    write(name, files, {})
    tekkenizer = Tekkenizer.from_file(OUT / name / "tekken.json")
    # It does not look for special tokens in a text.
    texts = [t for t in TEXTS if "</s>" not in t]
    ids = [tekkenizer.encode(t, bos=True, eos=False) for t in texts]
    write(name, files, {"texts": texts, "ids": ids, "ends": [2]})


def main():
    llama3 = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>"]
    write_ranks("llama3_ranks", "llama", LLAMA3, llama3, "<|begin_of_text|>", False)
    own = ["<|start|>", "<|stop|>", "<|eot|>"]
    write_ranks("listed_ranks", "llama", LLAMA3, own, "<|start|>", True)
    qwen = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    write_ranks("qwen_ranks", "qwen2", QWEN, qwen, None, False)
    tekken = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]"]
    write_tekken("tekken", tekken)
    write_tekken("tekken_first", None)


main()
