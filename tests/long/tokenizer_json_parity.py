#!/usr/bin/env python3
"""Compares load_tokenizer_json() with `tokenizers` 0.23.3 over hand-made and random strings: ids
with and without the post-processor, special tokens parsed and literal, and the decoded text.

  tokenizer_json_parity.py --helper build/dev/bin/tokenize_stdin [--count 100000] [--size 4000]
      [--family NAME ...] [--file tokenizer.json ...]

Without --file, over the families of tests/goldens/tokenizer_json_families.py, trained here.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
import tokenizer_json_families as families  # noqa: E402
import tokenizer_tools as tools  # noqa: E402

LICENCES = pathlib.Path("/usr/share/common-licenses")
DECODE = 4
FRAGMENTS = ["<|l|>", "<|r|>", "<b>", "<b><i>", "  \t", "\u00c9t\u00e9", "<|im", "[MASK]", "</s>", "<s>"]


def answers(helper, path, cases):
    """(ids, decoded bytes) of each case."""
    request = b"".join(tools.number(flags | DECODE) + tools.string(t) for flags, t in cases)
    done = subprocess.run([helper, path], input=request, stdout=subprocess.PIPE, check=True)
    read, take = tools.number_reader(done.stdout)
    out = []
    for _ in cases:
        ids = [read() for _ in range(read())]
        out.append((ids, take(read())))
    assert take(1) == b""
    return out


def same_text(want, have):
    """The reference puts U+FFFD for what is no UTF-8, in several ways; ours keeps the bytes."""
    have = have.decode("utf-8", errors="replace")
    if want == have:
        return True
    if "\ufffd" not in want and "\ufffd" not in have:
        return False
    return want.replace("\ufffd", "") == have.replace("\ufffd", "")


def compare(name, path, texts, helper, show):
    backend = Tokenizer.from_file(path)
    different = collections.Counter()
    # Runs of the same size, so that neither side holds millions of answers.
    for begin in range(0, len(texts), 20000):
        part = texts[begin : begin + 20000]
        for flags in (tools.PARSE, 0, tools.PARSE | tools.ADD_SPECIAL):
            backend.encode_special_tokens = not flags & tools.PARSE
            want = backend.encode_batch(part, add_special_tokens=bool(flags & tools.ADD_SPECIAL))
            have = answers(helper, path, [(flags, t) for t in part])
            decoded = backend.decode_batch(
                [e.ids for e in want], skip_special_tokens=not flags & tools.PARSE
            )
            for text, encoding, back, (ids, data) in zip(part, want, decoded, have):
                kind = None
                if encoding.ids != ids:
                    kind = "ids"
                elif not same_text(back, data):
                    kind = "text"
                if kind is None:
                    continue
                different[kind] += 1
                if different[kind] <= show:
                    pair = (encoding.ids, ids) if kind == "ids" else (back, data)
                    print(f"{name} flags {flags} {kind} {text!r}\n  want {pair[0]}\n  have {pair[1]}")
                    if kind == "ids":
                        print("  tokens", encoding.tokens)
    total = sum(different.values())
    print(f"{name}: {len(texts)} strings x 3 ways, {total} differences", dict(different), flush=True)
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--size", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", action="append", default=[])
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--show", type=int, default=5)
    args = parser.parse_args()
    tools.FRAGMENTS += FRAGMENTS

    lines = tools.words_of(sorted(p for p in LICENCES.iterdir() if p.is_file()))
    texts = tools.HAND_MADE + tools.random_strings(args.count, args.seed, lines)
    total = 0
    for path in args.file:
        total += compare(pathlib.Path(path).name, path, texts, args.helper, args.show)
    for name in args.family or ([] if args.file else families.FAMILIES):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            made = families.FAMILIES[name](lines + tools.HAND_MADE * 2, args.size)
            file.write(families.as_json(made))
            file.flush()
            total += compare(name, file.name, texts, args.helper, args.show)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
