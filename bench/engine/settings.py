"""Races the engine against itself: what a setting costs or gives, on one model.

Usage: python bench/engine/settings.py MODEL.gguf [--optima build/release/bin/optima] [--rounds 5]
       [-p 512] [-n 64] [--depth 0] [-t 2] [--only deterministic,threads,...] [--json OUT.json]
Settings run in turn, each in a process of its own: plain, A, B, plain, A, B, ... Printed are the
medians over the rounds and their ratio to plain: above 1 the setting is the faster. The settings:
  deterministic   the path whose logits do not depend on what is computed beside
  threads         four times as many threads as -t says: more than there are cores
  q8_0            keys and values in 8 bits; tells with --depth only
  bf16            keys and values as bf16
  file            weights as the file has them, no panels
"""

import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "versus"))
import common  # noqa: E402

FIGURES = ("prefill_tokens_per_s", "decode_tokens_per_s")


def settings_of(args):
    """{name: options of `optima bench`}; the first is what the others are compared with."""
    plain = ["-t", str(args.threads)]
    return {"plain": plain, "deterministic": [*plain, "--deterministic"],
            "threads": ["-t", str(4 * args.threads)], "q8_0": [*plain, "--kv-type", "q8_0"],
            "bf16": [*plain, "--kv-type", "bf16"], "file": [*plain, "--repack", "off"]}


def side(args, options):
    """As in a race against a rival: three repetitions, since the passes after the first make
    panels."""
    return common.Fresh([str(args.optima), "bench", str(args.model), *options, "-p",
                         str(args.prompt), "-n", str(args.tokens), "--depth", str(args.depth),
                         "-r", "3", "--no-roofs", "--json"])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    common.add_engine_options(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--tokens", type=int, default=64)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--only", help="settings beside plain, with commas between")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    args.settings = settings_of(args)
    if args.only:
        wanted = ["plain", *args.only.split(",")]
        if not set(wanted) <= set(args.settings):
            parser.error(f"--only: of {', '.join(args.settings)}")
        args.settings = {name: args.settings[name] for name in wanted}
    return args


def main():
    args = parse()
    samples = common.race({name: side(args, options) for name, options in args.settings.items()},
                          args.rounds, lambda so_far: None)
    medians = {name: {key: statistics.median(row[key] for row in rows) for key in FIGURES}
               for name, rows in samples.items()}
    print("| setting | prefill | of plain | decode | of plain |\n| --- | --- | --- | --- | --- |")
    for name, figures in medians.items():
        cells = [f"{figures[key]:.1f} t/s | {figures[key] / medians['plain'][key]:.2f}x"
                 for key in FIGURES]
        print(f"| {name} | " + " | ".join(cells) + " |")
    if args.json:
        args.json.write_text(json.dumps({"depth": args.depth, "prompt": args.prompt,
                                         "medians": medians, "samples": samples}, indent=1) + "\n")


if __name__ == "__main__":
    main()
