"""Races the program optima against libllama on one GGUF: same file, threads, prompt, machine, run.

Usage: python bench/versus/llama_cpp.py MODEL.gguf [--optima build/release/bin/optima] [--rounds 3]
       [-p 512] [-n 128] [--depth 0] [-t 2] [--json OUT.json]
Needs the Python package llama-cpp-python (built from source on this machine) and numpy.

Both first complete one prompt greedily; the race starts only if the first 16 token ids agree. The
prompt is the first of a short list on which libllama leads by a clear margin at all 16 positions,
so that rounding cannot decide. Then the two sides run in turn, each in a process of its own: A B A
B ..., libllama once with flash attention and once without. The figures:
  prefill  one llama_decode of -p ids; optima: one prompt of as many ids
  decode   -n single-token steps, each followed by the argmax over the logits, from --depth
  first    start of loading to the first token of the -p prompt, the file being in the page cache
Reported are medians over the rounds and the ratio optima / libllama (time ratio for `first`: below
1 optima is faster). A ratio compares figures of this run only.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

# This file is called as the package it imports: its own folder must not be searched.
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != FOLDER]

PROMPTS = [
    "The capital of France is",
    "1, 2, 3, 4, 5,",
    "def fibonacci(n):\n    ",
    "The quick brown fox jumps over the lazy dog. The quick brown fox",
    "A, B, C, D, E,",
]
CHECKED_TOKENS = 16
CLEAR_MARGIN = 0.5


def bench_ids(count, vocabulary):
    """The ids that `optima bench` uses, by the same rule: spread over the vocabulary."""
    return [(i * 7919 + 13) % vocabulary for i in range(count)]


class Llama:
    """The few calls of libllama that a race needs."""

    def __init__(self, path, threads, context, flash, sequences=1):
        import llama_cpp
        import numpy
        self.api, self.numpy = llama_cpp, numpy
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, user: None)
        llama_cpp.llama_log_set(self.quiet, None)
        llama_cpp.llama_backend_init()
        model_params = llama_cpp.llama_model_default_params()
        model_params.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), model_params)
        if not self.model:
            sys.exit(f"libllama cannot load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_seq_max = context * sequences, sequences
        params.n_batch, params.n_ubatch = 2048, 512
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = 1 if flash else 0
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit("libllama cannot create a context")
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text):
        raw = text.encode()
        out = (self.api.llama_token * (len(raw) + 8))()
        n = self.api.llama_tokenize(self.vocab, raw, len(raw), out, len(out), True, True)
        return list(out[:n])

    def decode(self, ids):
        tokens = (self.api.llama_token * len(ids))(*ids)
        self.check(self.api.llama_decode(
            self.context, self.api.llama_batch_get_one(tokens, len(ids))), len(ids))

    @staticmethod
    def check(status, count):
        if status != 0:
            sys.exit(f"llama_decode of {count} ids: status {status}")

    def logits(self):
        row = self.api.llama_get_logits_ith(self.context, -1)  # waits for the result
        return self.numpy.ctypeslib.as_array(row, shape=(self.vocabulary,))

    def argmax(self):
        return int(self.numpy.argmax(self.logits()))

    def keep(self, count):
        self.api.llama_memory_seq_rm(self.memory, 0, count, -1)

    def prefill(self, ids):
        for at in range(0, len(ids), 2048):
            self.decode(ids[at:at + 2048])


def llama_greedy(path, threads):
    """{"prompt", "ids", "margin"} of the first prompt of the list with clear margins."""
    llama, best = Llama(path, threads, 512, flash=False), None
    for prompt in PROMPTS:
        llama.keep(0)
        llama.decode(llama.tokenize(prompt))
        ids, margin = [], float("inf")
        for _ in range(CHECKED_TOKENS):
            row = llama.logits()
            second, first = llama.numpy.argpartition(row, -2)[-2:]
            if row[second] > row[first]:
                second, first = first, second
            margin = min(margin, float(row[first] - row[second]))
            ids.append(int(first))
            llama.decode(ids[-1:])
        if best is None or margin > best["margin"]:
            best = {"prompt": prompt, "ids": ids, "margin": margin}
        if best["margin"] >= CLEAR_MARGIN:
            break
    return best


def llama_race(args, flash):
    """One process's worth of libllama: the figures of one round."""
    import llama_cpp  # noqa: F401  (the import is not part of loading the model)
    import numpy  # noqa: F401
    start = time.perf_counter()
    context = args.depth + max(args.prompt, args.tokens) + 64
    llama = Llama(args.model, args.threads, context, flash)
    loaded = time.perf_counter()
    ids = bench_ids(args.depth + args.prompt, llama.vocabulary)
    prefix, prompt = ids[:args.depth], ids[args.depth:]
    if not prefix:
        llama.decode(prompt)
        llama.argmax()
        first = time.perf_counter()
    else:
        first = None
        llama.prefill(prefix)
    prefill, decode = [], []
    for _ in range(args.repeat):
        llama.keep(args.depth)
        begin = time.perf_counter()
        llama.decode(prompt)
        llama.argmax()
        prefill.append(len(prompt) / (time.perf_counter() - begin))
        llama.keep(args.depth)
        llama.decode(prompt[:1])
        token = llama.argmax()
        begin = time.perf_counter()
        for _ in range(args.tokens):
            llama.decode([token])
            token = llama.argmax()
        decode.append(args.tokens / (time.perf_counter() - begin))
    return {"prefill_tokens_per_s": statistics.median(prefill),
            "decode_tokens_per_s": statistics.median(decode),
            "load_ms": (loaded - start) * 1e3,
            "load_to_first_token_ms": None if first is None else (first - start) * 1e3}


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def check_same_tokens(args):
    theirs = run_json([sys.executable, __file__, str(args.model), "--child", "greedy",
                       "-t", str(args.threads)])
    ours = run_json([str(args.optima), "run", str(args.model), "-p", theirs["prompt"], "-n",
                     str(CHECKED_TOKENS), "--ignore-eos", "--json", "-t", str(args.threads)])
    if ours["token_ids"] != theirs["ids"]:
        sys.exit(f"the answers differ on {theirs['prompt']!r} (margin {theirs['margin']:.2f}):\n"
                 f"  libllama {theirs['ids']}\n  optima   {ours['token_ids']}")
    print(f"same first {CHECKED_TOKENS} greedy tokens on {theirs['prompt']!r}, "
          f"smallest margin {theirs['margin']:.2f}", file=sys.stderr)
    return theirs


def race(args):
    common = ["-t", str(args.threads), "-p", str(args.prompt), "-n", str(args.tokens),
              "--depth", str(args.depth)]
    child = [sys.executable, __file__, str(args.model), *common, "--repeat", str(args.repeat)]
    sides = {
        "optima": [str(args.optima), "bench", str(args.model), *common, "-r", str(args.repeat),
                   "--json"],
        "libllama fa=1": child + ["--child", "flash"],
        "libllama fa=0": child + ["--child", "plain"],
    }
    samples = {name: [] for name in sides}
    for i in range(args.rounds):
        for name, command in sides.items():
            samples[name].append(run_json(command))
            figures = samples[name][-1]
            print(f"round {i + 1}/{args.rounds} {name}: "
                  f"prefill {figures['prefill_tokens_per_s']:.1f} "
                  f"decode {figures['decode_tokens_per_s']:.1f} tokens/s", file=sys.stderr)
    return samples


KEYS = ("prefill_tokens_per_s", "decode_tokens_per_s", "load_ms", "load_to_first_token_ms")


def summarise(samples):
    medians = {}
    for name, rows in samples.items():
        medians[name] = {}
        for key in KEYS:
            values = [row[key] for row in rows if row.get(key) is not None]
            medians[name][key] = statistics.median(values) if values else None
    ours, ratios = medians["optima"], {}
    for name in medians:
        if name != "optima":
            ratios[name] = {k: ours[k] / medians[name][k] for k in KEYS
                            if ours[k] and medians[name][k]}
    return medians, ratios


def print_table(medians, ratios):
    print(f"{'':16}{'prefill t/s':>13}{'decode t/s':>13}{'load ms':>11}{'first ms':>11}")
    for name, row in medians.items():
        cells = [row[k] for k in KEYS]
        print(f"{name:16}" + "".join(
            f"{'-' if c is None else format(c, '.1f'):>{w}}"
            for c, w in zip(cells, (13, 13, 11, 11))))
    for name, row in ratios.items():
        print(f"{'/ ' + name:16}" + "".join(
            f"{format(row[k], '.2f') + 'x' if k in row else '-':>{w}}"
            for k, w in zip(KEYS, (13, 13, 11, 11))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--optima", type=pathlib.Path,
                        default=FOLDER.parents[1] / "build/release/bin/optima")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3, help="repetitions inside a round")
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--tokens", type=int, default=128)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--child", choices=("greedy", "flash", "plain"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child == "greedy":
        print(json.dumps(llama_greedy(args.model, args.threads)))
        return
    if args.child:
        print(json.dumps(llama_race(args, args.child == "flash")))
        return
    check = check_same_tokens(args)
    samples = race(args)
    medians, ratios = summarise(samples)
    print_table(medians, ratios)
    if args.json:
        args.json.write_text(json.dumps(
            {"model": args.model.name, "threads": args.threads, "prompt": args.prompt,
             "tokens": args.tokens, "depth": args.depth, "check": check, "samples": samples,
             "medians": medians, "ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    main()
