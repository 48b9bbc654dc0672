"""Races the program optima against libllama on one GGUF: same file, threads, prompt, machine, run.

Usage: python bench/versus/llama_cpp.py MODEL.gguf [--optima build/release/bin/optima] [--rounds 5]
       [-p 512] [-n 128] [--depth 0] [-t 2] [--check tokens|logits] [--json OUT.json]
Needs the Python package llama-cpp-python (built from source on this machine) and numpy.

Both first complete one prompt greedily; the race starts only if the first 16 token ids agree. The
prompt is the first of a short list on which libllama leads by a clear margin at all 16 positions,
so that rounding cannot decide. Random weights know no margins: --check logits compares the logits
of 16 positions instead. Then the sides run in turn, each in a process of its own: A B C A B C ...,
libllama once with flash attention and once without. The figures:
  prefill  one llama_decode of -p ids; optima: one prompt of as many ids
  decode   -n single-token steps, each followed by the argmax over the logits, from --depth
  first    start of loading to the first token of the -p prompt, the file being in the page cache
At a depth libllama's processes stay and keep their prefix, which optima computes anew each round;
neither is timed. Reported are medians over the rounds, the ratio of optima to libllama's better
setting (time ratio for `first`: below 1 optima is faster), the share of the roofs measured in the
same run, and in brackets what is wanted on a machine with AVX-512 VNNI.
"""

import argparse
import json
import statistics
import sys
import time

import common


class Llama:
    """The few calls of libllama that a race needs."""

    @staticmethod
    def imports():
        import llama_cpp  # noqa: F401

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

    def all_logits(self, ids):
        """[position][vocabulary], of one batch."""
        batch = self.api.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i] = token, i
            batch.n_seq_id[i], batch.logits[i] = 1, True
            batch.seq_id[i][0] = 0
        self.check(self.api.llama_decode(self.context, batch), len(ids))
        return self.numpy.ctypeslib.as_array(self.batch_logits(),
                                             shape=(len(ids), self.vocabulary))

    def batch_logits(self):
        return self.api.llama_get_logits(self.context)

    def argmax(self):
        return int(self.numpy.argmax(self.logits()))

    def keep(self, count):
        self.api.llama_memory_seq_rm(self.memory, 0, count, -1)

    def prefill(self, ids):
        for at in range(0, len(ids), 2048):
            self.decode(ids[at:at + 2048])


def greedy(args, engine):
    """{"prompt", "ids", "margin"} of the first prompt of the list with clear margins."""
    llama, best = engine(args.model, args.threads, 512, flash=False), None
    for prompt in common.PROMPTS:
        llama.keep(0)
        llama.decode(llama.tokenize(prompt))
        ids, margin = [], float("inf")
        for _ in range(common.CHECKED_TOKENS):
            row = llama.logits()
            second, first = llama.numpy.argpartition(row, -2)[-2:]
            if row[second] > row[first]:
                second, first = first, second
            margin = min(margin, float(row[first] - row[second]))
            ids.append(int(first))
            llama.decode(ids[-1:])
        if best is None or margin > best["margin"]:
            best = {"prompt": prompt, "ids": ids, "margin": margin}
        if best["margin"] >= common.CLEAR_MARGIN:
            break
    return best


def write_logits(args, engine):
    llama = engine(args.model, args.threads, 512, flash=False)
    ids = common.bench_ids(common.CHECKED_TOKENS, llama.vocabulary)
    llama.all_logits(ids).tofile(args.logits)
    return {"vocabulary": llama.vocabulary}


class Race:
    """A process's worth of libllama: measure() gives the figures of one round."""

    def __init__(self, args, engine, flash):
        import numpy  # noqa: F401  (imports are not part of loading the model)
        engine.imports()
        self.args, start = args, time.perf_counter()
        context = args.depth + max(args.prompt, args.tokens) + 64
        self.llama = engine(args.model, args.threads, context, flash)
        self.times = {"load_ms": (time.perf_counter() - start) * 1e3}
        ids = common.bench_ids(args.depth + args.prompt, self.llama.vocabulary)
        prefix, self.prompt = ids[:args.depth], ids[args.depth:]
        if prefix:
            self.llama.prefill(prefix)
        else:
            self.llama.decode(self.prompt)
            self.llama.argmax()
            self.times["load_to_first_token_ms"] = (time.perf_counter() - start) * 1e3

    def prefill(self):
        self.llama.keep(self.args.depth)
        begin = time.perf_counter()
        self.llama.decode(self.prompt)
        self.llama.argmax()
        return len(self.prompt) / (time.perf_counter() - begin)

    def decode(self):
        self.llama.keep(self.args.depth)
        self.llama.decode(self.prompt[:1])
        token = self.llama.argmax()
        begin = time.perf_counter()
        for _ in range(self.args.tokens):
            self.llama.decode([token])
            token = self.llama.argmax()
        return self.args.tokens / (time.perf_counter() - begin)

    def measure(self):
        repeat = range(self.args.repeat)
        return {"prefill_tokens_per_s": statistics.median(self.prefill() for _ in repeat),
                "decode_tokens_per_s": statistics.median(self.decode() for _ in repeat),
                **self.times}


def about():
    """What the figures depend on beside the machine."""
    import llama_cpp
    llama_cpp.llama_backend_init()
    return {"package": f"llama-cpp-python {llama_cpp.__version__}",
            "system": llama_cpp.llama_print_system_info().decode().strip()}


def run_child(args, engine):
    if args.child == "info":
        print(json.dumps(about()))
    elif args.child == "greedy":
        print(json.dumps(greedy(args, engine)))
    elif args.child == "logits":
        print(json.dumps(write_logits(args, engine)))
    else:
        common.serve(Race(args, engine, flash=args.child == "flash").measure)


def rivals(args, script, name, side=None):
    """Both settings of flash attention as sides; where no kind of side is named, those that stay at
    a depth, and fresh ones, which load, without."""
    side = side or (common.Kept if args.depth else common.Fresh)
    return {f"{name} fa=1": side(common.child_command(args, script, "flash")),
            f"{name} fa=0": side(common.child_command(args, script, "plain"))}


def check(args, script):
    if args.check == "logits":
        return common.check_logits(args, common.child_command(args, script, "logits"))
    return common.check_tokens(args, common.run_json(
        common.child_command(args, script, "greedy")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common.add_race_options(parser)
    args = parser.parse_args()
    if args.child:
        run_child(args, Llama)
        return
    checked = check(args, __file__)
    print(checked, file=sys.stderr)
    common.finish(args, [common.race_model(args, rivals(args, __file__, "libllama"))], checked)


if __name__ == "__main__":
    main()
