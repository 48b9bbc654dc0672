#!/usr/bin/env python3
"""Compares the program's renderings of the templates inside GGUF files with those of jinja2.

    python chat_template_parity.py build/release/bin/optima MODEL.gguf…

Needs gguf, jinja2 and transformers. Runs every conversation of the goldens, with and without tools.
Not part of the test run: the model files are not part of the project.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import gguf

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens"
sys.path.insert(0, str(GOLDENS))
from chat_templates_data import CONVERSATIONS  # noqa: E402
from make_chat_templates import environment, render  # noqa: E402


def text_field(reader, name):
    field = reader.get_field(name)
    return field.contents() if field else None


def special_token(reader, kind):
    index = text_field(reader, f"tokenizer.ggml.{kind}_token_id")
    if index is None:
        return ""
    field = reader.get_field("tokenizer.ggml.tokens")
    return bytes(field.parts[field.data[index]]).decode("utf-8")


def ours(program, model, messages, tools, prompt):
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("messages.json", "tools.json")]
        paths[0].write_text(json.dumps(messages), encoding="utf-8")
        command = [program, "template", model, "--messages", str(paths[0])]
        if tools is not None:
            paths[1].write_text(json.dumps(tools), encoding="utf-8")
            command += ["--tools", str(paths[1])]
        if not prompt:
            command.append("--no-generation-prompt")
        done = subprocess.run(command, capture_output=True)
        return done.stdout.decode("utf-8") if done.returncode == 0 else None


def main():
    program, *models = sys.argv[1:]
    env = environment()
    wrong = 0
    for model in models:
        reader = gguf.GGUFReader(model)
        source = text_field(reader, "tokenizer.chat_template")
        if source is None:
            print(f"{model}: holds no template")
            continue
        count = 0
        for name, messages, tools, _ in CONVERSATIONS:
            for prompt in (True, False):
                expected = render(env, source, {
                    "messages": json.loads(json.dumps(messages)), "tools": tools, "documents": None,
                    "add_generation_prompt": prompt, "bos_token": special_token(reader, "bos"),
                    "eos_token": special_token(reader, "eos")})
                expected = expected if isinstance(expected, str) else None
                got = ours(program, model, messages, tools, prompt)
                count += 1
                if got != expected:
                    wrong += 1
                    print(f"{model}: {name}: expected {expected!r}, got {got!r}")
        print(f"{model}: {count} renderings compared")
    print(f"{wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
