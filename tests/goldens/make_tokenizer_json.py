#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer_json/: for each family of tokenizer_json_families.py a small
tokenizer.json and what tokenizers 0.23.3 makes of a list of strings: ids, and the decoded text.

Trained on licence texts of Debian 12 and the strings themselves; sentencepiece 0.2.3 compiles the
normalisation rules of the families that have them.
"""

import pathlib

from tokenizers import Tokenizer

import tokenizer_json_families as families
import tokenizer_tools as tools

OUT = pathlib.Path(__file__).resolve().parent / "tokenizer_json"
LICENCES = pathlib.Path("/usr/share/common-licenses")
VOCABULARY = 900
STRINGS = 420
FRAGMENTS = ["<|l|>", "<|r|>", "<b>", "<b><i>", "  \t", "\u00c9t\u00e9", "<|im", "[MASK]", "</s>", "<s>"]


def main():
    OUT.mkdir(exist_ok=True)
    lines = tools.words_of(LICENCES / name for name in ("GPL-3", "MPL-2.0"))
    tools.FRAGMENTS += FRAGMENTS
    # Long runs are the business of the offline script.
    hand_made = [t for t in tools.HAND_MADE if len(t) <= 200]
    for seed, (name, make) in enumerate(families.FAMILIES.items()):
        tokenizer = make(lines + tools.HAND_MADE * 2, VOCABULARY)
        text = families.as_json(tokenizer)
        assert len(text.encode()) <= 60000, name
        (OUT / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        tokenizer = Tokenizer.from_str(text)  # reading rounds the scores of Unigram
        strings = hand_made + tools.random_strings(STRINGS, 1000 + seed, lines)
        cases = []
        for flags in (tools.PARSE, 0, tools.PARSE | tools.ADD_SPECIAL):
            tokenizer.encode_special_tokens = not flags & tools.PARSE
            part = strings if flags == tools.PARSE else strings[flags::5]
            encodings = tokenizer.encode_batch(
                part, add_special_tokens=bool(flags & tools.ADD_SPECIAL)
            )
            for string, encoding in zip(part, encodings):
                skip = not flags & tools.PARSE
                cases.append((flags, string, encoding.ids, tokenizer.decode(encoding.ids, skip)))
        data = [tools.number(len(cases))]
        for flags, string, ids, decoded in cases:
            data += [tools.number(flags), tools.string(string), tools.number(len(ids))]
            data += [tools.number(i) for i in ids] + [tools.string(decoded)]
        (OUT / f"{name}.bin").write_bytes(b"".join(data))
        print(f"{name}: {tokenizer.get_vocab_size()} tokens, {len(text)} bytes, {len(cases)} cases")


if __name__ == "__main__":
    main()
