"""Races `optima bench --sessions` against libllama's batched decode on one GGUF file.

Usage: python bench/versus/llama_cpp_batched.py MODEL.gguf [--optima build/release/bin/optima]
       [--sessions 1,4,8,16] [--rounds 5] [-p 64] [-n 64] [-t 2] [--json OUT.json]
Needs the Python package llama-cpp-python (built from source on this machine) and numpy.

libllama is called as its own batched bench calls it: the prompts of all sequences, then -n batches
of one token for each, with the argmax over each sequence's logits. optima does the same through
its C ABI: all prompts, then all sessions decode together. The figure is all tokens of the decode
phase over its time. First both answer the same prompts greedily, libllama side by side in one
batch; they must agree as long as libllama leads by a clear margin. Then the sides run in turn, each
in a process of its own: A B C A B C ..., libllama with flash attention and without. Reported are
medians over the rounds and the ratio optima / libllama.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import common

single = common.sibling("llama_cpp")


class Sequences(single.Llama):
    """Several sequences in one context of libllama, of `context` tokens each."""

    def __init__(self, path, threads, sequences, context, flash):
        super().__init__(path, threads, context, flash, sequences)
        self.count = sequences
        self.batch = self.api.llama_batch_init(2048, 0, 1)

    def decode(self, rows):
        """rows: (token, position, sequence, wanted) of one batch."""
        for at in range(0, len(rows), 2048):
            part = rows[at:at + 2048]
            self.batch.n_tokens = len(part)
            for i, (token, position, sequence, wanted) in enumerate(part):
                self.batch.token[i], self.batch.pos[i] = token, position
                self.batch.n_seq_id[i] = 1
                self.batch.seq_id[i][0] = sequence
                self.batch.logits[i] = wanted
            self.check(self.api.llama_decode(self.context, self.batch), len(part))

    def row_logits(self, row):
        values = self.api.llama_get_logits_ith(self.context, row)
        return self.numpy.ctypeslib.as_array(values, shape=(self.vocabulary,))

    def prefill(self, prompts):
        """The first token of each; a batch per prompt, so that each has its row."""
        first = []
        for sequence, prompt in enumerate(prompts):
            self.decode([(token, i, sequence, i == len(prompt) - 1)
                         for i, token in enumerate(prompt)])
            first.append(int(self.numpy.argmax(self.row_logits(-1))))
        return first

    def step(self, tokens, lengths):
        self.decode([(token, lengths[s], s, True) for s, token in enumerate(tokens)])
        return [self.row_logits(s) for s in range(self.count)]


def llama_greedy(args):
    """Of each prompt of the short list: the ids as far as the margin is clear."""
    llama = single.Llama(args.model, args.threads, 512, flash=False)
    prompts = [llama.tokenize(text) for text in common.PROMPTS]
    side = Sequences(args.model, args.threads, len(prompts), 256, flash=False)
    tokens = side.prefill(prompts)
    lengths = [len(prompt) for prompt in prompts]
    ids, open_ = [[token] for token in tokens], [True] * len(prompts)
    for _ in range(common.CHECKED_TOKENS - 1):
        rows = side.step(tokens, lengths)
        for s, row in enumerate(rows):
            second, first = side.numpy.partition(row, -2)[-2:]
            tokens[s] = int(side.numpy.argmax(row))
            open_[s] = open_[s] and first - second >= common.CLEAR_MARGIN
            if open_[s]:
                ids[s].append(tokens[s])
            lengths[s] += 1
    return [{"prompt": text, "ids": found} for text, found in zip(common.PROMPTS, ids)]


def llama_race(args, flash):
    side = Sequences(args.model, args.threads, args.count, args.prompt + args.tokens + 8, flash)
    prompts = [common.bench_ids(args.prompt, side.vocabulary, s + 1) for s in range(args.count)]
    begin = time.perf_counter()
    tokens = side.prefill(prompts)
    prompted = time.perf_counter()
    lengths = [args.prompt] * args.count
    for _ in range(args.tokens):
        tokens = [int(side.numpy.argmax(row)) for row in side.step(tokens, lengths)]
        lengths = [length + 1 for length in lengths]
    return {"total_decode_tokens_per_s":
            args.tokens * args.count / (time.perf_counter() - prompted),
            "prefill_tokens_per_s": args.prompt * args.count / (prompted - begin)}


def check_same_tokens(args, child):
    checked = 0
    for theirs in common.run_json(child + ["--child", "greedy"]):
        count = len(theirs["ids"])
        ours = common.greedy_ids(args, theirs["prompt"], count)
        if ours[1:] != theirs["ids"][1:]:
            sys.exit(f"the answers differ on {theirs['prompt']!r}:\n"
                     f"  libllama {theirs['ids']}\n  optima   {ours}")
        checked += count - 1
    print(f"same greedy tokens on {len(common.PROMPTS)} prompts side by side, {checked} with a "
          f"clear margin", file=sys.stderr)
    return checked


def race(args, child):
    rows = []
    for count in args.sessions:
        theirs = child + ["--count", str(count)]
        sides = {
            "optima": [str(args.optima), "bench", str(args.model), "--sessions", str(count), "-p",
                       str(args.prompt), "-n", str(args.tokens), "-t", str(args.threads),
                       "--json"],
            "libllama fa=1": theirs + ["--child", "flash"],
            "libllama fa=0": theirs + ["--child", "plain"],
        }
        samples = {name: [] for name in sides}
        for _ in range(args.rounds):
            for name, command in sides.items():
                out = common.run_json(command)
                out = out["results"][0] if name == "optima" else out
                samples[name].append(out["total_decode_tokens_per_s"])
        medians = {name: statistics.median(values) for name, values in samples.items()}
        rows.append({"sessions": count, "samples": samples, "medians": medians,
                     "ratios": {name: medians["optima"] / value
                                for name, value in medians.items() if name != "optima"}})
        print(f"{count} sessions: " + ", ".join(f"{name} {value:.1f}"
                                                for name, value in medians.items()),
              file=sys.stderr)
    return rows


def print_table(rows):
    print(f"{'sessions':>8}{'optima t/s':>13}{'fa=1 t/s':>11}{'fa=0 t/s':>11}{'/ fa=1':>9}"
          f"{'/ fa=0':>9}{'/ one session':>15}")
    for row in rows:
        m, r = row["medians"], row["ratios"]
        one = m["optima"] / rows[0]["medians"]["optima"] if rows[0]["sessions"] == 1 else 0
        print(f"{row['sessions']:>8}{m['optima']:>13.1f}{m['libllama fa=1']:>11.1f}"
              f"{m['libllama fa=0']:>11.1f}{r['libllama fa=1']:>8.2f}x{r['libllama fa=0']:>8.2f}x"
              f"{one:>14.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    common.add_engine_options(parser)
    parser.add_argument("--sessions", default="1,4,8,16",
                        type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-p", "--prompt", type=int, default=64)
    parser.add_argument("-n", "--tokens", type=int, default=64)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--child", choices=("greedy", "flash", "plain"), help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child == "greedy":
        print(json.dumps(llama_greedy(args)))
        return
    if args.child:
        print(json.dumps(llama_race(args, args.child == "flash")))
        return
    child = [sys.executable, __file__, str(args.model), "-t", str(args.threads), "-p",
             str(args.prompt), "-n", str(args.tokens)]
    checked = check_same_tokens(args, child)
    rows = race(args, child)
    print_table(rows)
    if args.json:
        args.json.write_text(json.dumps(
            {"model": args.model.name, "threads": args.threads, "prompt": args.prompt,
             "tokens": args.tokens, "checked_tokens": checked, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
