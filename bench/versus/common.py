"""What the scripts of this folder share: sides that run in turn, roofs, checks, targets, tables.

A side is a command that prints one JSON object: `optima bench`, or a script of this folder called
as the child of itself with another engine in it. Sides run in turn, A B C A B C ..., and only
figures of one race are compared, by their medians.

The scripts are named after the packages that they import, so this folder must not be searched for
modules: importing this one takes it out of the path. `sibling` loads another script of it.
"""

import argparse
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != FOLDER]

CHECKED_TOKENS = 16
CLEAR_MARGIN = 0.5
LOGITS_LIMIT = 2e-2  # root mean square of the difference, of that of the logits
PROMPTS = [
    "The capital of France is",
    "1, 2, 3, 4, 5,",
    "def fibonacci(n):\n    ",
    "The quick brown fox jumps over the lazy dog. The quick brown fox",
    "A, B, C, D, E,",
]
# Of each kind of work: the figure, what is better, the roof it is held against, its unit.
WORKS = {
    "prefill": ("prefill_tokens_per_s", max, "int8", "t/s"),
    "decode": ("decode_tokens_per_s", max, "read", "t/s"),
    "first": ("load_to_first_token_ms", min, None, "ms"),
}
# What is wanted on a machine with AVX-512 VNNI and two threads: by kind of model and work, (ratio
# to the rival's best setting, ratio to its flash attention, share of the roof). None = not said.
# Decode at depth reads weights and KV, so its roof is that of both.
TARGETS = {
    ("random", "prefill"): (2.7, None, 0.45),
    ("random", "decode"): (1.6, None, 0.80),
    ("smollm2", "prefill"): (4.0, None, None),
    ("smollm2", "decode"): (1.5, None, None),
    ("smollm2", "prefill at depth"): (3.0, None, None),
    ("smollm2", "decode at depth"): (2.5, 8.0, 0.80),
    ("gemma", "prefill"): (2.2, None, None),
    ("gemma", "decode"): (1.5, None, None),
    ("smollm2", "first"): (0.7, None, None),
    ("gemma", "first"): (0.7, None, None),
}


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sibling(name):
    return load(f"versus_{name}", FOLDER / f"{name}.py")


def bench_ids(count, vocabulary, stream=0):
    """The ids that `optima bench` uses, by the same rule: spread over the vocabulary."""
    return [(i * 7919 + 13 + stream * 101) % vocabulary for i in range(count)]


def add_engine_options(parser):
    parser.add_argument("--optima", type=pathlib.Path, default=ROOT / "build/release/bin/optima")
    parser.add_argument("-t", "--threads", type=int, default=2)


def add_race_options(parser):
    """Of a script that races one model; `python` runs the rival's side."""
    parser.add_argument("model", type=pathlib.Path)
    add_engine_options(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=1, help="repetitions inside a round")
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--tokens", type=int, default=128)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--check", choices=("tokens", "logits"), default="tokens")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable,
                        help="the interpreter that has the rival's package")
    # A child prints an object for each line that it reads; --child names what it measures.
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--logits", type=pathlib.Path, help=argparse.SUPPRESS)


def run_json(command, lines=""):
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Fresh:
    """A side that is started anew for each sample, so that loading is part of it."""

    def __init__(self, command):
        self.command = command

    def sample(self):
        return run_json(self.command, "\n")

    def close(self):
        pass


class Kept:
    """A side whose process stays and keeps its prefix, where computing that takes minutes."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def sample(self):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(map(str, self.command))}: ended with {self.process.wait()}")
        return json.loads(line)

    def close(self):
        if self.process is not None:
            self.process.communicate()


def serve(measure):
    """The child's end of a side: an object for each line."""
    for _ in sys.stdin:
        print(json.dumps(measure()), flush=True)


def race(sides, rounds, between):
    """Samples of all sides in turn: {name: [object of each round]}. between(samples) is called
    after the first and after the last round."""
    samples = {name: [] for name in sides}
    try:
        for i in range(rounds):
            for name, side in sides.items():
                samples[name].append(side.sample())
                figures = ", ".join(f"{work} {samples[name][-1][key]:.1f} {unit}"
                                    for work, (key, _, _, unit) in WORKS.items()
                                    if samples[name][-1].get(key))
                print(f"round {i + 1}/{rounds} {name}: {figures}", file=sys.stderr)
            if i in (0, rounds - 1):
                between(samples)
    finally:
        for side in sides.values():
            side.close()
    return samples


def optima_side(args):
    """At least three repetitions inside a round: the passes after the first also make panels of the
    weights, which libllama does while it loads."""
    return Fresh([str(args.optima), "bench", str(args.model), "-t", str(args.threads),
                  "-p", str(args.prompt), "-n", str(args.tokens), "--depth", str(args.depth),
                  "-r", str(max(args.repeat, 3)), "--no-roofs", "--json"])


def child_command(args, script, what):
    """The command of a rival's side: a script of this folder as its own child."""
    return [args.python, str(script), str(args.model), "--child", what, "-t", str(args.threads),
            "-p", str(args.prompt), "-n", str(args.tokens), "--depth", str(args.depth),
            "--repeat", str(args.repeat)]


def medians_of(samples):
    """{side: {figure: median}}; a figure that a side does not give is missing there."""
    medians = {}
    for name, rows in samples.items():
        medians[name] = {}
        for key, _, _, _ in WORKS.values():
            values = [row[key] for row in rows if row.get(key)]
            if values:
                medians[name][key] = statistics.median(values)
    return medians


# Roofs and shares of them.


def measure_roofs(args, read_bytes):
    return run_json([str(args.optima), "probe", "--json", "-t", str(args.threads),
                     "--read-bytes", str(int(read_bytes))])


def best_roofs(reports):
    """Of several reports: a roof is the most that was ever reached."""
    return {"int8": max(r["int8_roof_tmac_per_s"] for r in reports),
            "read": max(r["read_roof_gb_per_s"] for r in reports),
            "dram": max(r["dram_read_gb_per_s"] for r in reports)}


def layer_weights(description):
    """Weights that a prompt's token meets in the layers' products; none counts of the head. None
    for a model with experts, of which a token meets some."""
    tensors = [t for t in description["tensors"] if t["name"].startswith("blk.")]
    if any(len(t["shape"]) > 2 for t in tensors):
        return None
    return sum(t["shape"][0] * t["shape"][1] for t in tensors if len(t["shape"]) == 2)


def race_model(args, rivals):
    """The race of one model against {name: side}, with the roofs measured beside it."""
    description = run_json([str(args.optima), "inspect", str(args.model), "--json"])
    weights, reports = layer_weights(description), []
    samples = race({"optima": optima_side(args), **rivals}, args.rounds, lambda so_far: (
        reports.append(measure_roofs(args, so_far["optima"][0]["bytes_per_token"]))))
    return {"model": description["name"], "file": args.model.name, "threads": args.threads,
            "prompt": args.prompt, "tokens": args.tokens, "depth": args.depth,
            "isa": reports[0]["isa"], "roofs": best_roofs(reports),
            # 10^12 multiply-adds of the layers, GB that optima counted.
            "work_per_token": {"int8": weights and weights / 1e12,
                               "read": samples["optima"][0]["bytes_per_token"] / 1e9},
            "samples": samples, "medians": medians_of(samples)}


# Checks: no race before both sides say the same.


def greedy_ids(args, prompt, count):
    return run_json([str(args.optima), "run", str(args.model), "-p", prompt, "-n", str(count),
                     "--ignore-eos", "--json", "-t", str(args.threads)])["token_ids"]


def check_tokens(args, theirs):
    """theirs: {"prompt", "ids", "margin"} of the rival's greedy answer."""
    ours = greedy_ids(args, theirs["prompt"], len(theirs["ids"]))
    if ours != theirs["ids"]:
        sys.exit(f"the answers differ on {theirs['prompt']!r} (margin {theirs['margin']:.2f}):\n"
                 f"  rival  {theirs['ids']}\n  optima {ours}")
    return (f"same first {len(theirs['ids'])} greedy tokens on {theirs['prompt']!r}, "
            f"smallest margin {theirs['margin']:.2f}")


def optima_logits(args, ids, vocabulary):
    """[position][vocabulary] of a prompt, of the fast path."""
    import numpy
    library_module = load("optima_library", ROOT / "tests/long/optima_library.py")
    library = library_module.Library(args.optima.parents[1] / "lib/libsitsoptima.so.1")
    engine, model = library.open_model(args.model, args.threads)
    options = library.options(library_module.SESSION, {"context_tokens": len(ids) + 8})
    session = library.make("optima_session_create", model, library.struct(options))
    flat = library.logits(session, ids, range(len(ids)), vocabulary)
    library.lib.optima_session_destroy(session)
    library.lib.optima_options_destroy(options)
    library.close_model(engine, model)
    return numpy.frombuffer(flat, numpy.float32).reshape(len(ids), vocabulary)


def check_logits(args, command):
    """Logits of 16 positions, for weights whose answers have no clear margins. `command` is the
    rival's child, which writes its rows into the file that is appended."""
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "logits"
        vocabulary = run_json([*command, "--logits", str(path)])["vocabulary"]
        theirs = numpy.fromfile(path, numpy.float32).reshape(CHECKED_TOKENS, vocabulary)
    ours = optima_logits(args, bench_ids(CHECKED_TOKENS, vocabulary), vocabulary)
    scale = numpy.sqrt((theirs.astype(numpy.float64) ** 2).mean(-1))
    apart = numpy.sqrt(((ours - theirs).astype(numpy.float64) ** 2).mean(-1)) / scale
    text = (f"logits of {CHECKED_TOKENS} positions: apart by {apart.max():.1e} of their root mean "
            f"square at the most, at most {LOGITS_LIMIT:.0e}")
    if not apart.max() <= LOGITS_LIMIT:
        sys.exit(text)
    return text


# Results.


def model_kind(name):
    for kind in ("random", "smollm2", "gemma"):
        if kind in name.lower():
            return kind
    return None


def wanted_of(result, work):
    """(ratio, ratio to flash attention, share of the roof), each or None; libllama is meant."""
    if not any(name.startswith("libllama") for name in result["medians"]):
        return None, None, None
    place = work + (" at depth" if result["depth"] else "")
    return TARGETS.get((model_kind(result["model"]), place), (None, None, None))


def rows_of(result):
    """One row for each kind of work of a race: figures, ratios, shares, and what is wanted."""
    rows = []
    for work, (key, best, roof, unit) in WORKS.items():
        figures = {name: m[key] for name, m in result["medians"].items() if key in m}
        rivals = {name: value for name, value in figures.items() if name != "optima"}
        if "optima" not in figures or not rivals:
            continue
        ours = figures["optima"]
        ratio, flash_ratio, share = wanted_of(result, work)
        row = {"model": result["model"], "work": work, "prompt": result["prompt"],
               "depth": result["depth"], "unit": unit, "figures": figures, "shares": {},
               "roof": roof, "share_wanted": share, "ratio": ours / best(rivals.values()),
               "ratio_wanted": ratio}
        per_token = roof and result["work_per_token"][roof]
        if per_token:
            row["shares"] = {name: value * per_token / result["roofs"][roof]
                             for name, value in figures.items()}
        flash = [value for name, value in rivals.items() if name.endswith("fa=1")]
        if flash and flash_ratio:
            row["ratio_flash"], row["ratio_flash_wanted"] = ours / flash[0], flash_ratio
        rows.append(row)
    return rows


def cells_of(row):
    """What is printed of a row: (what, figures, ratios, share)."""
    what = row["work"] + (f" {row['prompt']}" if row["work"] == "prefill" else "")
    if row["depth"]:
        what += f" at {row['depth']}"
    figures = ", ".join(f"{value:.{0 if value >= 100 else 1}f}"
                        for name, value in row["figures"].items() if name != "optima")
    ours = f"{row['figures']['optima']:.{0 if row['figures']['optima'] >= 100 else 1}f}"

    def beside(value, wanted):
        return value if wanted is None else f"{value} ({wanted})"

    sign = "<=" if row["work"] == "first" else ">="
    ratio = beside(f"{row['ratio']:.2f}x",
                   row["ratio_wanted"] and f"{sign} {row['ratio_wanted']}")
    if "ratio_flash" in row:
        ratio += ", fa=1 " + beside(f"{row['ratio_flash']:.2f}x",
                                    f">= {row['ratio_flash_wanted']}")
    share = "-"
    if row["shares"]:
        share = beside(f"{row['shares']['optima']:.0%}",
                       row["share_wanted"] and f">= {row['share_wanted']:.0%}")
        share += f" of {row['roof']}, " + ", ".join(
            f"{value:.0%}" for name, value in row["shares"].items() if name != "optima")
    return [what, f"{ours} {row['unit']}", figures, ratio, share]


def table_lines(rows):
    """A Markdown table, with what is wanted in brackets."""
    rivals = [name for name in rows[0]["figures"] if name != "optima"]
    lines = [["model", "work", "optima", ", ".join(rivals), "ratio to the best (wanted)",
              "share of the roof (wanted), rivals'"], ["---"] * 6]
    lines += [[row["model"], *cells_of(row)] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def finish(args, results, check):
    """Prints the table of several races and writes all that was measured."""
    rows = [row for result in results for row in rows_of(result)]
    print("\n".join(table_lines(rows)))
    for roof in results[0]["roofs"]:
        print(f"{roof} roof: " + ", ".join(f"{r['roofs'][roof]:.2f}" for r in results),
              "T multiply-adds/s" if roof == "int8" else "GB/s", file=sys.stderr)
    if args.json:
        args.json.write_text(json.dumps({"check": check, "rows": rows, "results": results},
                                        indent=1) + "\n")
