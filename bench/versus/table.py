"""Prints the table of figures that the kernels are to reach, as the machine at hand gives them.

Usage: python bench/versus/table.py --smollm2 MODEL.gguf --gemma MODEL.gguf [--scratch FOLDER]
       [--only smollm2,depth,...] [--rounds 5] [-t 2] [--optima build/release/bin/optima]
       [--json table.json] [--write docs/PERFORMANCE.md]
Needs the Python packages llama-cpp-python (built from source on this machine), gguf and numpy; in
--scratch 3 GB for one random model at a time.

Each race is that of llama_cpp.py, with its checks. --json keeps the races of the runs before, so
that --only can renew a part; --write puts the table between the marks of a Markdown file. Parts:
  smollm2, gemma   prefill of 512, decode, load to first token
  depth            SmolLM2 behind 4096 and 7900 tokens
  1b               the 1B shape in four types, prefill of 512 and decode
  types            decode of the 1B shape in five more
  8b               two layers of the 8B shape in four types, prefill of 512: a layer's speed does
                   not depend on how many there are, and a rival takes minutes for all 32
  perplexity       of the GPL, the fast path, beside the truth of transformers
"""

import argparse
import copy
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import common

llama = common.sibling("llama_cpp")
random_model = common.sibling("random_model")
SCRIPT = common.FOLDER / "llama_cpp.py"
FOUR_TYPES = ("Q4_0", "Q4_K", "Q6_K", "Q8_0")
MORE_TYPES = ("Q4_1", "Q5_0", "Q5_K", "F16", "BF16")
PARTS = ("smollm2", "gemma", "depth", "1b", "types", "8b", "perplexity")
FIDELITY = {"smollm2": "smollm2", "gemma": "gemma3-270m"}
MARKS = ("<!-- table -->\n", "<!-- end of the table -->\n")
RANDOM_ROUNDS = 3


def race(args, side=None, **changes):
    """The race of one model; changes are options of llama_cpp.py."""
    one = copy.copy(args)
    one.repeat, one.check, one.depth, one.python = 1, "tokens", 0, sys.executable
    vars(one).update(changes)
    print(f"{one.model.name}, depth {one.depth}", file=sys.stderr)
    print(llama.check(one, SCRIPT), file=sys.stderr)
    return common.race_model(one, llama.rivals(one, SCRIPT, "libllama", side))


def race_random(args, shape, kind, layers, **changes):
    """The race of a random model, which is on disk for no longer than that."""
    with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
        path = pathlib.Path(folder) / f"{shape}-{kind}.gguf"
        sizes = random_model.SHAPES[shape]
        random_model.write(path, sizes, kind, layers or sizes["layers"], seed=1)
        # Loading is not asked for, so the rival's processes may stay.
        result = race(args, common.Kept, model=path, check="logits",
                      rounds=min(args.rounds, RANDOM_ROUNDS), **changes)
    result["model"] = f"random {shape[-2:].upper()} {kind}" + (
        f", {layers} layers" if layers else "")
    return result


def run_part(args, part):
    """{name: race} of one part."""
    if part in FIDELITY:
        return {part: race(args, model=getattr(args, part), prompt=512, tokens=128)}
    if part == "depth":
        return {f"depth {depth}": race(args, model=args.smollm2, prompt=prompt, tokens=32,
                                       depth=depth)
                for depth, prompt in ((4096, 512), (7900, 128))}
    if part == "1b":
        return {f"1b {kind}": race_random(args, "llama-1b", kind, 0, prompt=512, tokens=32)
                for kind in FOUR_TYPES}
    if part == "types":
        return {f"1b {kind}": race_random(args, "llama-1b", kind, 0, prompt=64, tokens=32)
                for kind in MORE_TYPES}
    return {f"8b {kind}": race_random(args, "llama-8b", kind, 2, prompt=512, tokens=8)
            for kind in FOUR_TYPES}


def perplexities(args):
    """{model: [fast path, truth of transformers, the most that is wanted]}"""
    sys.path.append(str(common.ROOT / "tests/long"))
    published = common.load("fidelity", common.ROOT / "tests/long/fidelity.py").PUBLISHED
    found = {}
    for name, golden_name in FIDELITY.items():
        golden = json.loads(
            (common.ROOT / f"tests/goldens/fidelity/{golden_name}.json").read_text())
        value = common.run_json([str(args.optima), "perplexity", str(getattr(args, name)), "-f",
                                 golden["text"], "-c", str(golden["perplexity"]["window"]),
                                 "--json"])["perplexity"]
        truth, (there, limit) = golden["perplexity"]["value"], published[golden_name]
        found[name] = [value, truth, truth * limit / there]
    return found


def first_line(command):
    return subprocess.run(command, capture_output=True, text=True,
                          cwd=common.ROOT).stdout.strip().split("\n")[0]


def processor():
    """Maker and model as the kernel knows them: no more than the class of the machine."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = [re.search(rf"^{key}\s*: (.*)$", text, re.M)
              for key in ("model name", "cpu family", "model")]
    name, family, model = (field.group(1) if field else "?" for field in fields)
    return f"{name}, family {family} model {model}"


def machine(args):
    """What a result has to say of where it comes from."""
    probe = common.measure_roofs(args, 1 << 28)
    info = common.run_json([sys.executable, str(SCRIPT), str(args.smollm2), "--child", "info"])
    changed = first_line(["git", "status", "--porcelain", "--untracked-files=no"])
    return {"processor": processor(), "isa": probe["isa"], "threads": args.threads,
            "compiler": first_line(["cc", "--version"]),
            "commit": first_line(["git", "rev-parse", "--short", "HEAD"]) +
            (" with changes" if changed else ""),
            "date": datetime.date.today().isoformat(), "rival": info}


def rows_wanted(name, result):
    """The rows of a race that the table has."""
    keep = {"8b": ("prefill",), "1b": ("prefill", "decode")}
    works = keep.get(name.split()[0], tuple(common.WORKS))
    if result["prompt"] < 512 and name.startswith("1b"):
        works = ("decode",)
    if name == "depth 7900":
        works = ("decode",)
    return [row for row in common.rows_of(result) if row["work"] in works]


def render(kept):
    """The table as Markdown."""
    about = kept["machine"]
    roofs = [race["roofs"] for race in kept["races"].values()]

    def span(roof):
        values = [r[roof] for r in roofs]
        return f"{min(values):.2f}..{max(values):.2f}" if values else "?"

    lines = [f"{about['processor']} ({about['isa']}), {about['threads']} threads; commit "
             f"{about['commit']}, {about['compiler']}; {about['rival']['package']} "
             f"(`{about['rival']['system']}`); {about['date']}.",
             f"Roofs over the races: int8 {span('int8')} T multiply-adds/s, read {span('read')} "
             f"GB/s, from DRAM {span('dram')} GB/s.", ""]
    rows = [row for name, result in kept["races"].items() for row in rows_wanted(name, result)]
    if rows:  # none with --only perplexity alone
        lines += common.table_lines(rows)
    if "perplexity" in kept:
        lines += ["", "| perplexity, fast path | optima | transformers, fp32 | wanted |",
                  "| --- | --- | --- | --- |"]
        lines += [f"| {name} | {value:.3f} | {truth:.3f} | <= {most:.3f} |"
                  for name, (value, truth, most) in kept["perplexity"].items()]
    return "\n".join(lines) + "\n"


def write_between_marks(path, table):
    text = path.read_text()
    begin, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    path.write_text(text[:begin] + "\n" + table + "\n" + text[end:])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smollm2", type=pathlib.Path, required=True)
    parser.add_argument("--gemma", type=pathlib.Path, required=True)
    common.add_engine_options(parser)
    parser.add_argument("--scratch", type=pathlib.Path, help="folder for one random model")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("table.json"))
    parser.add_argument("--write", type=pathlib.Path)
    args = parser.parse_args()
    args.only = args.only.split(",")
    if not set(args.only) <= set(PARTS):
        parser.error(f"--only: of {', '.join(PARTS)}")
    return args


def main():
    args = parse()
    kept = json.loads(args.json.read_text()) if args.json.exists() else {"races": {}}
    kept["machine"] = machine(args)
    for part in args.only:
        if part == "perplexity":
            kept["perplexity"] = perplexities(args)
        else:
            kept["races"].update(run_part(args, part))
        args.json.write_text(json.dumps(kept, indent=1) + "\n")
    table = render(kept)
    print(table, end="")
    if args.write:
        write_between_marks(args.write, table)


if __name__ == "__main__":
    main()
