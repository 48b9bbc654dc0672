"""Races the program optima against OpenVINO GenAI on one GGUF file, as llama_cpp.py does libllama.

Usage: python bench/versus/openvino.py MODEL.gguf [--optima build/release/bin/optima] [--rounds 5]
       [-p 512] [-n 128] [--depth 0] [-t 2] [--json OUT.json] [--python INTERPRETER]
--python names the interpreter that has the packages openvino-genai and numpy.

It reads GGUF files of some architectures and types, and computes them in its own formats with its
own defaults (8-bit KV, grouped activations). It gives no logits, so the check is one of tokens: of
a short list of prompts one must be answered with the same 16 ids.
  prefill  -p ids over the time to the first token
  decode   -n tokens after the first, by the mean time of one, behind --depth ids
  first    start of loading to the first token of the -p prompt, the file being in the page cache
At a depth only decode is raced: the prefix is computed anew each round and not timed. Every prompt
has other ids than those before, as computed prefixes are kept.
"""

import argparse
import json
import statistics
import sys
import time

import common


class OpenVino:
    """A pipeline on token ids."""

    def __init__(self, path, threads):
        import numpy
        import openvino
        import openvino_genai
        self.numpy, self.tensor, self.api = numpy, openvino.Tensor, openvino_genai
        self.pipeline = openvino_genai.LLMPipeline(str(path), "CPU", INFERENCE_NUM_THREADS=threads)
        self.tokenizer = self.pipeline.get_tokenizer()
        self.vocabulary = len(self.tokenizer.get_vocab())

    def tokenize(self, text):
        return [int(i) for i in self.numpy.array(self.tokenizer.encode(text).input_ids.data)[0]]

    def generate(self, ids, count):
        """Greedy, `count` tokens whatever they are: ids, and what was measured."""
        config = self.api.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = count
        config.do_sample, config.ignore_eos, config.apply_chat_template = False, True, False
        row = self.numpy.array([ids], dtype=self.numpy.int64)
        inputs = self.api.TokenizedInputs(self.tensor(row), self.tensor(self.numpy.ones_like(row)))
        done = self.pipeline.generate(inputs, config)
        return list(done.tokens[0]), done.perf_metrics


class Race:
    """A process's worth of the rival: measure() gives the figures of one round."""

    def __init__(self, args):
        import openvino_genai  # noqa: F401  (imports are not part of loading the model)
        self.args, self.stream, start = args, 0, time.perf_counter()
        self.rival = OpenVino(args.model, args.threads)
        self.times = {"load_ms": (time.perf_counter() - start) * 1e3}
        if args.depth == 0:
            self.rival.generate(self.ids(args.prompt), 1)
            self.times["load_to_first_token_ms"] = (time.perf_counter() - start) * 1e3

    def ids(self, count):
        self.stream += 1
        return common.bench_ids(count, self.rival.vocabulary, self.stream)

    def prefill(self):
        _, metrics = self.rival.generate(self.ids(self.args.prompt), 1)
        return self.args.prompt / metrics.get_ttft().mean * 1e3

    def decode(self):
        _, metrics = self.rival.generate(self.ids(self.args.depth + 1), self.args.tokens + 1)
        return 1e3 / metrics.get_tpot().mean

    def measure(self):
        repeat = range(self.args.repeat)
        figures = {"decode_tokens_per_s": statistics.median(self.decode() for _ in repeat)}
        if self.args.depth == 0:
            figures["prefill_tokens_per_s"] = statistics.median(self.prefill() for _ in repeat)
        return {**figures, **self.times}


def answers(args):
    rival = OpenVino(args.model, args.threads)
    return [{"prompt": text, "ids": rival.generate(rival.tokenize(text),
                                                   common.CHECKED_TOKENS)[0]}
            for text in common.PROMPTS]


def check(args):
    """On one prompt the same tokens; which, and how many the others share."""
    shared = []
    for theirs in common.run_json(common.child_command(args, __file__, "greedy")):
        ours = common.greedy_ids(args, theirs["prompt"], common.CHECKED_TOKENS)
        same = [a == b for a, b in zip(ours, theirs["ids"])] + [False]
        shared.append(same.index(False))
    text = f"{shared} of {common.CHECKED_TOKENS} first greedy tokens are the same on the prompts"
    if max(shared) < common.CHECKED_TOKENS:
        sys.exit(text)
    return text


def rivals(args, script):
    side = common.Kept if args.depth else common.Fresh
    return {"openvino": side(common.child_command(args, script, "race"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common.add_race_options(parser)
    args = parser.parse_args()
    if args.child == "greedy":
        print(json.dumps(answers(args)))
        return
    if args.child:
        common.serve(Race(args).measure)
        return
    if args.check != "tokens":
        parser.error("this rival gives no logits")
    checked = check(args)
    print(checked, file=sys.stderr)
    common.finish(args, [common.race_model(args, rivals(args, __file__))], checked)


if __name__ == "__main__":
    main()
