#!/usr/bin/env python3
"""Writes the expected renderings of the chat templates under chat_templates/templates.

Made with jinja2 3.1.6 in the environment that transformers 5.24.0 builds for chat templates
(immutable sandbox, trim_blocks, lstrip_blocks, loop controls, its own tojson, raise_exception,
strftime_now and the generation tag). Two things are added: the filter from_json, which some hosts
offer, and a fixed moment for strftime_now, in UTC.

    python make_chat_templates.py            # rewrites conversations, renders and snippets
"""
import datetime
import json
import pathlib

import jinja2
import jinja2.sandbox
import transformers
from transformers.utils.chat_template_utils import _compile_jinja_template

from chat_templates_data import (CONVERSATIONS, MUTABLE_SNIPPETS, OUTSIDE, SNIPPET_VARIABLES,
                                 SNIPPETS)

HERE = pathlib.Path(__file__).parent / "chat_templates"
NOW_UNIX_S = 1_772_000_123


def environment():
    env = _compile_jinja_template("").environment
    moment = datetime.datetime.fromtimestamp(NOW_UNIX_S, datetime.timezone.utc).replace(tzinfo=None)
    env.globals["strftime_now"] = moment.strftime
    env.filters["from_json"] = json.loads
    return env


class MutableEnvironment(jinja2.sandbox.SandboxedEnvironment):
    """The same without the ban on methods that change lists and dicts."""


def mutable_environment():
    env = MutableEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.extensions = environment().extensions
    env.filters = environment().filters
    env.globals = environment().globals
    return env


def render(env, source, variables):
    """The output; or the template's own error; or null for any other error."""
    try:
        output = env.from_string(source).render(**variables)
        output.encode("utf-8")
        return output
    except jinja2.exceptions.TemplateRuntimeError:
        return None
    except jinja2.exceptions.TemplateSyntaxError:
        return None
    except jinja2.exceptions.TemplateError as error:
        return {"raised": str(error)}
    except Exception:
        return None


def write(name, value):
    text = json.dumps(value, ensure_ascii=False, indent=0, separators=(",", ":"))
    (HERE / name).write_text(text + "\n", encoding="utf-8")


def main():
    versions = {"jinja2": jinja2.__version__, "transformers": transformers.__version__}
    env = environment()
    conversations = []
    for name, messages, tools, extra in CONVERSATIONS:
        conversations.append({
            "name": name,
            "messages": json.dumps(messages, ensure_ascii=False),
            "tools": json.dumps(tools, ensure_ascii=False) if tools is not None else "",
            "extra": json.dumps(extra, ensure_ascii=False) if extra else "",
        })
    write("conversations.json", {"versions": versions, "now_unix_s": NOW_UNIX_S,
                                 "conversations": conversations})
    renders = {}
    for path in sorted((HERE / "templates").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        rows = []
        for number, (_, messages, tools, extra) in enumerate(CONVERSATIONS):
            for prompt in (True, False) if number % 4 == 0 else (True,):
                variables = {"messages": json.loads(json.dumps(messages)), "tools": tools,
                             "documents": None, "add_generation_prompt": prompt,
                             "bos_token": "<s>", "eos_token": "</s>", **(extra or {})}
                rows.append([number, prompt, render(env, source, variables)])
        renders[path.stem] = rows
    write("renders.json", renders)
    snippets = [[source, render(env, source, dict(SNIPPET_VARIABLES))] for source in SNIPPETS]
    env = mutable_environment()
    snippets += [[source, render(env, source, json.loads(json.dumps(SNIPPET_VARIABLES)))]
                 for source in MUTABLE_SNIPPETS]
    # What prints an address is not the same twice.
    snippets = [s for s in snippets if not (isinstance(s[1], str) and " at 0x" in s[1])]
    write("snippets.json", {"variables": json.dumps(SNIPPET_VARIABLES, ensure_ascii=False),
                            "snippets": snippets, "outside": OUTSIDE})
    count = sum(len(rows) for rows in renders.values())
    failed = sum(row[2] is None for rows in renders.values() for row in rows)
    print(f"{len(renders)} templates, {count} renders ({failed} errors), {len(snippets)} snippets "
          f"({sum(s[1] is None for s in snippets)} errors)")


if __name__ == "__main__":
    main()
