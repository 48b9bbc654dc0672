"""Compares one model's answers with tests/goldens/fidelity/NAME.json.

Usage: python3 tests/long/fidelity.py NAME MODEL.gguf [--build build/release] [--json OUT.json]

Perplexity: by the program optima, whose fast path must stay under a limit and whose reference path
must be within 0.002 of the truth. Teacher forcing: each recorded answer is fed back as a prompt; at
every position the most probable token must be the recorded one where the recorded margin to the
runner-up exceeds 0.02 logits (reference path; the fast path's count is printed). The library is
called through its string-keyed options, so that no struct layout is repeated here.
"""

import argparse
import array
import ctypes
import hashlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAST_LIMIT = {"smollm2": 18.26, "gemma3-270m": 13.89}
REFERENCE_TOLERANCE = 0.002
MARGIN = 0.02
SESSION, REQUEST = 3, 4  # OPTIMA_OPTIONS_SESSION, OPTIMA_OPTIONS_REQUEST


class Library:
    """Statuses as exceptions, handles as plain pointers."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        for name in ("optima_error_message", "optima_options_struct"):
            getattr(self.lib, name).restype = (
                ctypes.c_char_p if name == "optima_error_message" else ctypes.c_void_p)

    def call(self, name, *args):
        error = ctypes.c_void_p()
        status = getattr(self.lib, name)(*args, ctypes.byref(error))
        if status != 0:
            message = self.lib.optima_error_message(error).decode()
            raise RuntimeError(f"{name}: {message}")

    def make(self, name, *args):
        out = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(out))
        return out

    def options(self, kind, values, pointers=()):
        out = self.make("optima_options_create", ctypes.c_int32(kind))
        for key, value in values.items():
            key, value = key.encode(), str(value).encode()
            self.call("optima_options_set", out, key, ctypes.c_size_t(len(key)), value,
                      ctypes.c_size_t(len(value)))
        for key, pointer in dict(pointers).items():
            key = key.encode()
            self.call("optima_options_set_pointer", out, key, ctypes.c_size_t(len(key)), pointer)
        return out

    def struct(self, options):
        return ctypes.c_void_p(self.lib.optima_options_struct(options))


def argmax_rows(library, session, ids, first, vocabulary):
    """The most probable next token after each of ids[first:], and the distance to each id."""
    positions = range(first, len(ids))
    logits = (ctypes.c_float * (len(positions) * vocabulary))()
    options = library.options(
        REQUEST,
        {"prompt_ids": ",".join(map(str, ids)), "prompt_only": 1,
         "logits_positions": ",".join(map(str, positions)), "logits_capacity": len(logits)},
        {"logits_out": ctypes.cast(logits, ctypes.c_void_p)})
    library.call("optima_session_reset", session)
    result = library.make("optima_generate", session, library.struct(options))
    library.lib.optima_result_destroy(result)
    library.lib.optima_options_destroy(options)
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


def perplexity(program, model, text, path):
    command = [str(program), "perplexity", str(model), "-f", text, "-c", "512", "--json"]
    if path == "reference":
        command.append("--reference")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def vocabulary_size(program, model):
    done = subprocess.run([str(program), "inspect", str(model), "--json"], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)["vocabulary"]


def check(name, ok, text):
    print(f"{'ok  ' if ok else 'FAIL'} {name}: {text}", flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(FAST_LIMIT))
    parser.add_argument("model")
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    golden = json.loads((ROOT / f"tests/goldens/fidelity/{args.name}.json").read_text())
    if hashlib.sha256(pathlib.Path(args.model).read_bytes()).hexdigest() != golden["model_sha256"]:
        sys.exit(f"{args.model} is not the file that the golden was made from")
    truth, program = golden["perplexity"], args.build / "bin/optima"
    golden["vocabulary"] = vocabulary_size(program, args.model)
    ok, report = True, {"name": args.name, "truth": truth["value"]}

    for path in ("fast", "reference"):
        found = perplexity(program, args.model, truth["text"], path)
        value = found["perplexity"]
        report[f"perplexity_{path}"] = found
        if path == "fast":
            good, limit = value <= FAST_LIMIT[args.name], f"at most {FAST_LIMIT[args.name]}"
        else:
            good = abs(value - truth["value"]) <= REFERENCE_TOLERANCE
            limit = f"within {REFERENCE_TOLERANCE}"
        same = (found["ids"], found["scored"]) == (truth["ids"], truth["scored"])
        ok &= check(f"{args.name} perplexity, {path} path", good and same,
                    f"{value:.4f}, truth {truth['value']:.4f}, wanted {limit}; {found['ids']} ids, "
                    f"{found['scored']} scored, {found['seconds']:.0f} s")

    library = Library(args.build / "lib/libsitsoptima.so.1")
    engine = library.make("optima_engine_create", None)
    model_path = str(args.model).encode()
    model = library.make("optima_model_open_path", engine, model_path,
                         ctypes.c_size_t(len(model_path)), None)
    for path in ("fast", "reference"):
        total, different, wrong = teacher_force(library, model, golden, path)
        report[f"teacher_forced_{path}"] = {"positions": total, "different": different}
        good = path == "fast" or not wrong
        ok &= check(f"{args.name} most probable token, {path} path", good,
                    f"{total - len(different)} of {total} equal, {len(wrong)} different beyond a "
                    f"margin of {MARGIN}" +
                    (f", widest {max(n['margin'] for n in wrong):.3f}" if wrong else ""))
    library.lib.optima_model_destroy(model)
    library.lib.optima_engine_destroy(engine)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
