#!/usr/bin/env python3
"""What masks cost: a typical schema and any JSON over the vocabulary of a GGUF file.

  grammar_bench.py --helper build/release/bin/grammar_stdin --gguf MODEL.gguf

Prints for each text, token by token: how many tokens, microseconds of a mask (mean and highest) and
of accepting a token (mean). The first text of a grammar finds nothing kept; the second is the same
text; the third and fourth are another one.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import schema_walks  # noqa: E402

ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"},
                   "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
    "required": ["street", "city", "zip"],
    "additionalProperties": False,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"},
                   "age": {"type": "integer", "minimum": 0, "maximum": 150},
                   "email": {"type": "string", "format": "email"},
                   "bio": {"type": "string", "maxLength": 300},
                   "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
                   "address": ADDRESS},
    "required": ["name", "age", "email", "bio", "tags", "address"],
    "additionalProperties": False,
}
FIRST = {
    "name": "Ada Lovelace", "age": 36, "email": "ada.lovelace@example.org",
    "bio": "An English mathematician and writer, chiefly known for her work on the proposed "
           "mechanical general-purpose computer, the Analytical Engine.",
    "tags": ["math", "computing", "poetry"],
    "address": {"street": "12 St. James's Square", "city": "London", "zip": "12345"},
}
SECOND = FIRST | {"name": "Charles Babbage", "tags": ["engines"],
                  "bio": "A polymath; he originated the concept of a programmable computer."}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--gguf", required=True)
    arguments = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as vocabulary:
        schema_walks.write_vocabulary(arguments.gguf, vocabulary)
        helper = schema_walks.Helper(arguments.helper, vocabulary.name)
        for label, command in (("schema", ("schema", json.dumps(PERSON).encode().hex())),
                               ("json", ("json",))):
            print(label, helper.ask(*command))
            for text in (FIRST, FIRST, SECOND, SECOND):
                _, tokens, mean, highest, accept = helper.ask(
                    "time", json.dumps(text).encode().hex()).split()
                print(f"  {tokens} tokens: mask {mean} us, highest {highest}; accept {accept} us")


if __name__ == "__main__":
    main()
