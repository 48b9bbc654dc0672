#!/usr/bin/env python3
"""Overhead per token of the bindings against C, measured in turns on the same machine.

    compare.py [--turns N] c='COMMAND' [rust='COMMAND' ...]

Each command prints one line of JSON with callback_ns_per_event and poll_ns_per_event (bench.c says
for which workload; a language that has one of the ways only leaves the other out). Each turn runs
all commands once. The overhead of a language in a turn is its figure less that of C in the same
turn; printed is the median over the turns, with the quartiles, beside C's own median.
"""
import argparse
import json
import shlex
import statistics
import subprocess
import sys

WAYS = ("callback_ns_per_event", "poll_ns_per_event")


def run(command):
    done = subprocess.run(shlex.split(command), check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def quartiles(values):
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    args = parser.parse_args()
    commands = dict(item.split("=", 1) for item in args.commands)
    if "c" not in commands:
        sys.exit("compare.py: c='COMMAND' is missing: overhead is counted from C")
    turns = [{name: run(command) for name, command in commands.items()}
             for _ in range(args.turns)]
    for way in WAYS:
        report = {"way": way, "turns": args.turns,
                  "c_ns": round(statistics.median(turn["c"][way] for turn in turns))}
        for name in commands:
            if name == "c" or way not in turns[0][name]:
                continue
            low, middle, high = quartiles([t[name][way] - t["c"][way] for t in turns])
            report[name] = {"overhead_ns": round(middle), "quartiles": [round(low), round(high)]}
        print(json.dumps(report))


if __name__ == "__main__":
    main()
