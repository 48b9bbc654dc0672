#!/usr/bin/env python3
"""Random JSON schemas against `jsonschema` and `hypothesis-jsonschema`.

  schema_walks.py --helper build/dev/bin/grammar_stdin --gguf MODEL.gguf [--schemas 10000]
                  [--walks 2] [--instances 0] [--seed 0]

Walks: under every schema texts are written by choosing tokens of the model's vocabulary at random
among those that the mask allows, after 75 tokens those that lead to an end. Every text must then
be valid under the schema, by `jsonschema` with its format checks; those that are not at an end
after 600 tokens are counted.

Instances: `hypothesis-jsonschema`, which knows nothing of the grammar, makes values that are valid
under the schema. Each is written with its members in a random order and several spacings, with and
without \\u escapes of non-ASCII, and must be accepted. Left out are values that Python's `re` takes
and ECMA-262 does not: a line feed before `$`.

Exit status 1 when anything differs. Written for jsonschema 4.26.0, hypothesis-jsonschema 0.23.1,
hypothesis 6.98.15 (later ones do not go together), rfc3339-validator 0.1.4, gguf 0.19.0.
"""

import argparse
import collections
import json
import math
import random
import subprocess
import sys
import tempfile
import warnings

import jsonschema

PATTERNS = ["^[a-z]{1,5}$", "^[A-Z][a-z]*-[0-9]{2}$", "^(red|green|blue)$", "^[0-9]{3}-[0-9]{4}$",
            "^[^x-z]{2,6}$", "^a?b+c*$", "^(ab|cd){1,3}$", "^[\\u00e0-\\u00ff]{1,3}$", "^x|y$",
            "^.{0,4}$", "^[a-z0-9_]+@[A-Z_]+$"]
FORMATS = ["date", "time", "date-time", "email", "ipv4", "ipv6", "uuid"]
NAMES = ["a", "b", "name", "size", "count", "tags", "x y", "\u00e9t\u00e9", "q\"q", "a/b", ""]


class Maker:
    """One random schema; sub-schemas get simpler with their depth."""

    def __init__(self, rng):
        self.rng = rng
        self.defs = {}

    def schema(self):
        top = self.any(0)
        if isinstance(top, bool):
            top = {}
        for name in list(self.defs):
            if self.defs[name] is None:
                self.defs[name] = self.object(2)
        if self.defs:
            top["$defs"] = self.defs
        return top

    def any(self, depth):
        kinds = [self.integer, self.number, self.string, self.enum, self.simple]
        weights = [3, 2, 4, 2, 2]
        if depth < 3:
            kinds += [self.object, self.array, self.any_of, self.all_of, self.one_of, self.ref,
                      self.types]
            weights += [8, 5, 2, 1, 1, 1, 1]
        return self.rng.choices(kinds, weights)[0](depth)

    def simple(self, depth):
        if depth and self.rng.random() < 0.15:
            return True
        return self.rng.choice([{"type": "boolean"}, {"type": "null"}, {"type": "string"},
                                {"type": ["string", "null"]}, {"type": "integer"}])

    def types(self, depth):
        names = ["null", "boolean", "integer", "number", "string", "array", "object"]
        schema = {"type": self.rng.sample(names, self.rng.randint(1, 3))}
        if self.rng.random() < 0.5:
            schema.update(minimum=self.rng.randint(-5, 5), maxLength=self.rng.randint(0, 9))
        return schema

    def bounds(self, schema, draw):
        low, high = sorted([draw(), draw()])
        if low == high:
            high = low + 1
        if self.rng.random() < 0.7:
            schema[self.rng.choice(["minimum", "exclusiveMinimum"])] = low
        if self.rng.random() < 0.7:
            schema[self.rng.choice(["maximum", "exclusiveMaximum"])] = high + 1
        return schema

    def integer(self, depth):
        span = self.rng.choice([5, 100, 10**6, 2**62])
        schema = self.bounds({"type": "integer"}, lambda: self.rng.randint(-span, span))
        if self.rng.random() < 0.2:
            schema["multipleOf"] = self.rng.choice([2, 3, 5, 7, 10, 12])
        return schema

    def number(self, depth):
        span = self.rng.choice([1, 100, 1e6])
        digits = self.rng.randint(0, 4)
        return self.bounds({"type": "number"},
                           lambda: round(self.rng.uniform(-span, span), digits))

    def string(self, depth):
        schema = {"type": "string"}
        which = self.rng.random()
        if which < 0.25:
            schema["pattern"] = self.rng.choice(PATTERNS)
        elif which < 0.4:
            schema["format"] = self.rng.choice(FORMATS)
        elif which < 0.7:
            schema["minLength"] = self.rng.randint(0, 4)
            if self.rng.random() < 0.7:
                schema["maxLength"] = schema["minLength"] + self.rng.randint(0, 30)
        return schema

    def value(self, depth=0):
        kinds = [None, True, False, self.rng.randint(-9, 99), round(self.rng.uniform(-9, 9), 2),
                 self.rng.choice(NAMES), "line\nbreak"]
        if depth < 2:
            kinds += [[self.value(depth + 1) for _ in range(self.rng.randint(0, 2))],
                      {name: self.value(depth + 1) for name in self.rng.sample(NAMES, 2)}]
        return self.rng.choice(kinds)

    def enum(self, depth):
        if self.rng.random() < 0.3:
            return {"const": self.value()}
        values = []
        for _ in range(self.rng.randint(1, 4)):
            value = self.value()
            if value not in values:
                values.append(value)
        return {"enum": values}

    def object(self, depth):
        names = self.rng.sample(NAMES, self.rng.randint(0, 5))
        schema = {"type": "object", "properties": {n: self.any(depth + 1) for n in names}}
        required = [n for n in names if self.rng.random() < 0.5]
        if required:
            schema["required"] = required
        which = self.rng.random()
        if which < 0.5:
            schema["additionalProperties"] = False
        elif which < 0.7:
            schema["additionalProperties"] = self.any(depth + 2)
        if self.rng.random() < 0.1:
            schema["patternProperties"] = {self.rng.choice(["^x", "^[a-c]$", "_id$"]):
                                           self.any(depth + 2)}
        if self.rng.random() < 0.1 and names:
            schema["maxProperties"] = self.rng.randint(len(required), len(names) + 1)
        if self.rng.random() < 0.1 and names and schema.get("additionalProperties") is False:
            schema["minProperties"] = self.rng.randint(0, len(names))
        if self.rng.random() < 0.1:
            schema["description"] = "an object"
        return schema

    def array(self, depth):
        schema = {"type": "array"}
        if self.rng.random() < 0.3:
            schema["prefixItems"] = [self.any(depth + 1) for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.8:
            schema["items"] = self.any(depth + 1)
        elif "prefixItems" in schema:
            schema["items"] = False
        if self.rng.random() < 0.4:
            schema["minItems"] = self.rng.randint(0, 2)
        if self.rng.random() < 0.4:
            schema["maxItems"] = schema.get("minItems", 0) + self.rng.randint(0, 3)
        return schema

    def any_of(self, depth):
        schema = {"anyOf": [self.any(depth + 1) for _ in range(self.rng.randint(1, 3))]}
        if self.rng.random() < 0.2:
            schema["type"] = ["integer", "string", "object"]
        return schema

    def one_of(self, depth):
        if self.rng.random() < 0.5:
            return {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 3},
                              {"type": "array", "items": self.any(depth + 2)}]}
        branches = []
        for kind in ("one", "two"):
            branch = self.object(depth + 1)
            branch["properties"]["kind"] = {"const": kind}
            branch["required"] = sorted({"kind", *branch.get("required", [])})
            branch.pop("maxProperties", None)
            branches.append(branch)
        return {"oneOf": branches}

    def all_of(self, depth):
        if self.rng.random() < 0.5:
            return {"allOf": [{"type": "integer", "minimum": self.rng.randint(-9, 9)},
                              {"maximum": self.rng.randint(10, 99)}]}
        a, b = self.object(depth + 1), self.object(depth + 1)
        for part in (a, b):
            part.pop("additionalProperties", None)
            part.pop("minProperties", None)
        return {"allOf": [a, b]}

    def ref(self, depth):
        name = self.rng.choice(["node", "leaf"])
        if name not in self.defs:
            self.defs[name] = None
            target = self.object(1)
            target.pop("minProperties", None)
            if name == "node":  # recursion, never required
                target["properties"]["next"] = {"$ref": "#/$defs/node"}
                target["required"] = [n for n in target.get("required", []) if n != "next"]
            self.defs[name] = target
        return {"$ref": f"#/$defs/{name}"}


ENDS = ("<|im_end|>", "<|endoftext|>", "<eos>", "<end_of_turn>")


def write_vocabulary(gguf_path, out):
    """The vocabulary of a GGUF file, byte-level or SentencePiece, in the helper's form."""
    import gguf

    reader = gguf.GGUFReader(gguf_path)
    model = reader.fields["tokenizer.ggml.model"]
    byte_level = bytes(model.parts[model.data[0]]) == b"gpt2"
    tokens = reader.fields["tokenizer.ggml.tokens"]
    kinds = reader.fields["tokenizer.ggml.token_type"]
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(b): b for b in printable}
    others = [b for b in range(256) if b not in printable]
    alphabet.update({chr(256 + n): b for n, b in enumerate(others)})
    for token, index in zip(tokens.data, kinds.data):
        name, kind = bytes(tokens.parts[token]).decode(), int(kinds.parts[index][0])
        if name in ENDS:
            out.write("e \n")
        elif kind == 6:
            out.write("t " + name[3:5] + "\n")
        elif kind != 1:
            out.write("c \n")
        elif byte_level:
            out.write("t " + bytes(alphabet[c] for c in name).hex() + "\n")
        else:
            out.write("t " + name.replace("\u2581", " ").encode().hex() + "\n")
    out.flush()


class Helper:
    def __init__(self, path, vocabulary):
        self.process = subprocess.Popen([path, vocabulary], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("the helper has ended")
        return answer.rstrip("\n")


def shuffled(value, rng):
    if isinstance(value, dict):
        items = [(key, shuffled(item, rng)) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    return value


def written(value, rng):
    """Three texts of one value."""
    for style in ({"separators": (",", ":")}, {"indent": rng.choice([1, 2, 4, "\t"])},
                  {"separators": (" , ", " :\t")}):
        yield json.dumps(shuffled(value, rng), ensure_ascii=rng.random() < 0.5, **style)


def left_out(value):
    """Texts on which the regular expressions of Python and of ECMA-262 differ; integers that are
    written with a point."""
    if isinstance(value, str):
        return value.endswith("\n")
    if isinstance(value, float):
        return value == int(value) if math.isfinite(value) else True
    if isinstance(value, dict):
        return any(left_out(item) for item in [*value, *value.values()])
    return isinstance(value, list) and any(left_out(item) for item in value)


def unrolled(schema, defs, depth=0):
    """Without references, two levels deep: the generator has no recursion."""
    if isinstance(schema, list):
        return [unrolled(item, defs, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        if depth == 2:
            return False
        return unrolled(defs[schema["$ref"].split("/")[-1]], defs, depth + 1)
    return {key: item if key in ("enum", "const") else unrolled(item, defs, depth)
            for key, item in schema.items() if key != "$defs"}


def instances_of(schema, count, seed):
    import hypothesis
    from hypothesis_jsonschema import from_schema

    found = []

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=count, database=None, deadline=None,
                         phases=[hypothesis.Phase.generate],
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(from_schema(unrolled(schema, schema.get("$defs", {}))))
    def collect(value):
        found.append(value)

    collect()
    return found


class Check:
    def __init__(self, helper, arguments):
        self.helper = helper
        self.arguments = arguments
        self.counts = collections.Counter()

    def report(self, *lines):
        self.counts["differences"] += 1
        if self.counts["differences"] <= 20:
            print("DIFFERENT", *lines, sep="\n  ", flush=True)

    def walks(self, schema, validator, seed):
        for walk in range(self.arguments.walks):
            answer = self.helper.ask("walk", str(seed * 10 + walk), "600")
            kind, _, text = answer.partition(" ")
            self.counts[kind] += 1
            if kind == "error":
                self.report(json.dumps(schema), answer)
            if kind != "ended":
                continue
            text = bytes.fromhex(text)
            try:
                error = next(validator.iter_errors(json.loads(text)), None)
            except ValueError as problem:
                error = problem
            if error is not None:
                self.report(json.dumps(schema), text, str(error).split("\n")[0])

    def instances(self, schema, validator, rng, seed):
        try:
            values = instances_of(schema, self.arguments.instances, seed)
        except Exception as problem:  # the generator's own limits
            self.counts["generator: " + type(problem).__name__] += 1
            return
        for value in values:
            if left_out(value) or not validator.is_valid(value):
                self.counts["instances left out"] += 1
                continue
            self.counts["instances"] += 1
            for text in written(value, rng):
                answer = self.helper.ask("accept", text.encode().hex())
                self.counts["texts"] += 1
                if answer != "yes":
                    self.report(json.dumps(schema), text, answer)

    def run(self):
        validator_class = jsonschema.Draft202012Validator
        for number in range(self.arguments.schemas):
            seed = self.arguments.seed + number
            rng = random.Random(seed)
            schema = Maker(rng).schema()
            validator_class.check_schema(schema)
            answer = self.helper.ask("schema", json.dumps(schema).encode().hex())
            self.counts["schemas"] += 1
            if not answer.startswith("ok"):
                reason = "no text satisfies" if "no text" in answer else answer.split(": ")[-1]
                self.counts["refused: " + reason[:60]] += 1
                continue
            self.counts["compiled"] += 1
            validator = validator_class(schema, format_checker=validator_class.FORMAT_CHECKER)
            self.walks(schema, validator, seed)
            if self.arguments.instances:
                self.instances(schema, validator, rng, seed)
            if number % 50 == 49:
                print(dict(self.counts), flush=True)
        for name, count in sorted(self.counts.items()):
            print(f"{count:8} {name}")
        ended, unfinished = self.counts["ended"], self.counts["unfinished"]
        print(f"unfinished: {100 * unfinished / max(ended + unfinished, 1):.3f} %")
        return 1 if self.counts["differences"] else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--schemas", type=int, default=10000)
    parser.add_argument("--walks", type=int, default=2)
    parser.add_argument("--instances", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as vocabulary:
        write_vocabulary(arguments.gguf, vocabulary)
        return Check(Helper(arguments.helper, vocabulary.name), arguments).run()


if __name__ == "__main__":
    sys.exit(main())
