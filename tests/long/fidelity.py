"""Compares one model's answers with tests/goldens/fidelity/NAME.json.

Usage: python3 tests/long/fidelity.py NAME MODEL.gguf [--build build/release] [--json OUT.json]

Perplexity: by the program optima; the reference path must be within 0.002 of the truth, the fast
path no more above it than PUBLISHED says. Where the published figure stands on other ids
(make_fidelity.py tells why), these ids are scored too, through the library.
Teacher forcing: each recorded answer is fed back as a prompt; at every position the most probable
token must be the recorded one where the recorded margin to the runner-up exceeds 0.02 logits
(reference path; the fast path's count is printed).
"""

import argparse
import array
import ctypes
import hashlib
import json
import math
import pathlib
import subprocess
import sys

from optima_library import REQUEST, SESSION, Library

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The published truth and the most that the fast path may show on the same ids.
PUBLISHED = {"smollm2": (18.130, 18.26), "gemma3-270m": (13.829, 13.89)}
REFERENCE_TOLERANCE = 0.002
MARGIN = 0.02


def argmax_rows(library, session, ids, first, vocabulary):
    """The most probable next token after each of ids[first:], and the distance to each id."""
    positions = range(first, len(ids))
    logits = library.logits(session, ids, positions, vocabulary)
    values = array.array("f")
    values.frombytes(bytes(logits))
    rows = []
    for i in range(len(positions)):
        row = values[i * vocabulary:(i + 1) * vocabulary]
        best = max(row)
        rows.append((row.index(best), row, best))
    return rows


def teacher_force(library, model, golden, path):
    """(positions, different, different beyond the margin, worst gap of those)."""
    options = library.options(SESSION, {"path": path, "context_tokens": 1024})
    session = library.make("optima_session_create", model, library.struct(options))
    vocabulary = golden["vocabulary"]
    total, different, wrong = 0, [], []
    for prompt in golden["prompts"]:
        ids = prompt["prompt_ids"] + prompt["ids"][:-1]
        rows = argmax_rows(library, session, ids, len(prompt["prompt_ids"]) - 1, vocabulary)
        for i, ((best, row, value), want) in enumerate(zip(rows, prompt["ids"])):
            total += 1
            if best == want:
                continue
            note = {"prompt": prompt["text"], "position": i, "want": want, "got": best,
                    "margin": prompt["margins"][i], "behind": round(value - row[want], 5)}
            different.append(note)
            if prompt["margins"][i] > MARGIN:
                wrong.append(note)
    library.lib.optima_session_destroy(session)
    library.lib.optima_options_destroy(options)
    return total, different, wrong


def perplexity_of_ids(library, model, path, ids, window):
    """Of whole windows of the given ids; for models that add no BOS."""
    options = library.options(SESSION, {"path": path, "context_tokens": window})
    session = library.make("optima_session_create", model, library.struct(options))
    losses = []
    for begin in range(0, len(ids) - window + 1, window):
        part = ",".join(map(str, ids[begin:begin + window]))
        request = library.options(REQUEST, {"prompt_ids": part, "prompt_only": 1,
                                            "prompt_logprobs": 1,
                                            "prompt_logprobs_from": window // 2 + 1})
        library.call("optima_session_reset", session)
        result = library.make("optima_generate", session, library.struct(request))
        count = ctypes.c_int64()
        logprobs = library.lib.optima_result_prompt_logprobs(result, ctypes.byref(count))
        losses += [-value for value in logprobs[:count.value]]
        library.lib.optima_result_destroy(result)
        library.lib.optima_options_destroy(request)
    library.lib.optima_session_destroy(session)
    library.lib.optima_options_destroy(options)
    return math.exp(sum(losses) / len(losses))


def program_json(*command):
    done = subprocess.run([*map(str, command), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


class Report:
    def __init__(self, name):
        self.name, self.ok, self.rows = name, True, []

    def check(self, what, ok, text):
        self.ok &= ok
        self.rows.append({"what": what, "ok": ok, "found": text})
        print(f"{'ok  ' if ok else 'FAIL'} {self.name} {what}: {text}", flush=True)

    def perplexity(self, what, path, value, truth):
        """The fast path may be as much worse, in proportion, as on the published ids."""
        published, limit = PUBLISHED[self.name]
        most = truth * limit / published if path == "fast" else truth + REFERENCE_TOLERANCE
        least = 0 if path == "fast" else truth - REFERENCE_TOLERANCE
        self.check(f"perplexity, {what}, {path} path", least <= value <= most,
                   f"{value:.4f}, truth {truth:.4f}, at most {most:.3f}")


def check_model(args, golden, report):
    program = args.build / "bin/optima"
    golden["vocabulary"] = program_json(program, "inspect", args.model)["vocabulary"]
    library = Library(args.build / "lib/libsitsoptima.so.1")
    engine, model = library.open_model(args.model)
    truth, published = golden["perplexity"], golden["published"]
    for path in ("fast", "reference"):
        total, different, wrong = teacher_force(library, model, golden, path)
        report.check(f"most probable token, {path} path", path == "fast" or not wrong,
                     f"{total - len(different)} of {total} equal, {len(wrong)} different beyond a "
                     f"margin of {MARGIN}" +
                     (f", widest {max(n['margin'] for n in wrong):.3f}" if wrong else ""))
        found = program_json(program, "perplexity", args.model, "-f", golden["text"], "-c",
                             truth["window"], *(["--reference"] if path == "reference" else []))
        report.check(f"ids, {path} path",
                     (found["ids"], found["scored"]) == (truth["ids"], truth["scored"]),
                     f"{found['ids']} ids, {found['scored']} scored, {found['seconds']:.0f} s")
        report.perplexity("own ids", path, found["perplexity"], truth["value"])
        if "token_ids" in published:
            value = perplexity_of_ids(library, model, path, published["token_ids"],
                                      published["window"])
            report.perplexity("published ids", path, value, published["value"])
    library.close_model(engine, model)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(PUBLISHED))
    parser.add_argument("model")
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    golden = json.loads((ROOT / f"tests/goldens/fidelity/{args.name}.json").read_text())
    if hashlib.sha256(pathlib.Path(args.model).read_bytes()).hexdigest() != golden["model_sha256"]:
        sys.exit(f"{args.model} is not the file that the golden was made from")
    report = Report(args.name)
    check_model(args, golden, report)
    if args.json:
        args.json.write_text(json.dumps(report.rows, indent=1) + "\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
