#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer/character_classes.txt: which code points the regular expressions
of two tokenizer packages match, by class: a line "dialect, pattern, first-last first-last ..." in
hexadecimal, the dialect "both" where they agree. tokenizers 0.23.3 (Oniguruma) and tiktoken 0.14.0
(Rust), both of Unicode 16.

Code points are those below 40000 and the tags and selectors of plane 14: the others are private or
not assigned.
"""

import pathlib

import tiktoken
from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent / "tokenizer/character_classes.txt"
CODE_POINTS = [c for c in range(0x40000) if not 0xD800 <= c < 0xE000]
CODE_POINTS += range(0xE0000, 0xE0200)
CATEGORIES = """L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs
Cf Cc"""
PATTERNS = [rf"\p{{{c}}}" for c in CATEGORIES.split()] + [
    r"\p{Han}",
    r"\w",
    r"\d",
    r"\s",
    r"[^\s\p{L}\p{N}]",
    r"[^\r\n\p{L}\p{P}\p{S}]",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    "(?i:k)",
]


def oniguruma(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for start in range(0, len(CODE_POINTS), 4096):
        text, kept = "".join(map(chr, CODE_POINTS[start : start + 4096])), set()
        for _, (begin, end) in split.pre_tokenize_str(text):
            kept.update(text[begin:end])
        found.update(ord(c) for c in text if c not in kept)
    return found


def rust(pattern):
    """What the pattern does not match is not encoded at all."""
    ranks = {bytes([b]): b for b in range(256)}
    encoding = tiktoken.Encoding(
        "classes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )
    found = set()
    for start in range(0, len(CODE_POINTS), 4096):
        text = "".join(map(chr, CODE_POINTS[start : start + 4096]))
        found.update(map(ord, encoding.decode_bytes(encoding.encode_ordinary(text)).decode()))
    return found


def ranges(members):
    out = []
    for c in sorted(members):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return " ".join(f"{a:X}-{b:X}" if a != b else f"{a:X}" for a, b in out)


def main():
    lines = []
    for pattern in PATTERNS:
        first, second = ranges(oniguruma(pattern)), ranges(rust(pattern))
        if first == second:
            lines.append(f"both\t{pattern}\t{first}\n")
        else:
            lines += [f"oniguruma\t{pattern}\t{first}\n", f"rust\t{pattern}\t{second}\n"]
    OUT.write_text("".join(lines))
    print(len(lines), "classes,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
