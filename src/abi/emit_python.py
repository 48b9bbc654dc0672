"""The raw layer of the Python binding: constants as enums, structs, callbacks and the signatures of
all functions for ctypes, and the test of sizes and offsets. Nothing here is checked; the package's
other modules are built on it."""
import re
import textwrap

from spec import NOTE, WIDTH, fields_of

TYPES = {"char": "c_char", "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64",
         "uint64_t": "c_uint64", "float": "c_float", "double": "c_double", "size_t": "c_size_t"}

PROLOGUE = '''\
# {note}
"""The C API of libsitsoptima as it is, for ctypes.

Enums, structs and callbacks have their C names in Python's spelling. Handles are c_void_p. Each
function says on which threads it may be called: MT_SAFE from any at any time, MT_PER_OBJECT by one
thread at a time for each object, MT_SIGNAL as MT_SAFE and from signal handlers.
"""
from __future__ import annotations

from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32,
                    c_int64, c_size_t, c_uint32, c_uint64, c_void_p)
from enum import IntEnum, IntFlag

# Release whose header this file follows; older libraries lack part of it.
RELEASE = "{release}"
# As a length: the string ends at its NUL.
NTS = 2 ** 64 - 1
'''


def note(text, indent=""):
    lines = textwrap.wrap(" ".join(text.split()), WIDTH - len(indent) - 2,
                          break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{indent}# {line}" for line in lines)


def docstring(text, indent):
    text = " ".join(text.split())
    one = f'{indent}"""{text}"""'
    if len(one) <= WIDTH:
        return one
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False,
                          break_on_hyphens=False)
    return f'{indent}"""' + f"\n{indent}".join(lines) + f'\n{indent}"""'


def class_name(name):
    """optima_token_logprob -> TokenLogprob, optima_on_event_fn -> OnEventFn."""
    return "".join(part.capitalize() for part in name.removeprefix("optima_").split("_"))


def group_name(group):
    if group["type"].startswith("optima_"):
        return class_name(group["type"])
    name = class_name(group["group"].removesuffix("s"))
    return name if name.endswith("Flag") else name + "Flag"


class Types:
    def __init__(self, spec):
        self.typedefs = spec.typedefs
        self.enums = {group["type"]: group_name(group) for group in spec.constants}
        self.structs = {struct["name"] for struct in spec.structs}
        self.handles = {handle["name"] for handle in spec.handles}

    def of(self, ctype, text="c_char_p"):
        """`text` is what a pointer to characters becomes: c_char_p where it ends at its NUL."""
        base, *stars = re.sub(r"\s+", " ", ctype).strip().split("*")
        name = base.replace("const ", "").strip()
        depth = len(stars)
        if name in self.typedefs:
            out = "c_int32"
        elif name.endswith("_fn") or name in self.structs:
            out = class_name(name)
        elif name in self.handles or name in ("void", "optima_api_v1"):
            out, depth = "c_void_p", depth - 1
        elif name == "char" and stars:
            out, depth = text, depth - 1
        else:
            out = TYPES[name]
        for _ in range(depth):
            out = f"POINTER({out})"
        return "None" if name == "void" and not stars else out

    def param(self, text):
        return self.of(re.fullmatch(r"(.*?[\s*])\w+", text).group(1))

    def params_of(self, function):
        return [self.param(text) for text in function["params"]]

    def result_of(self, function):
        counted = any(param.startswith("int64_t*") for param in function["params"])
        return self.of(function["returns"], "c_void_p" if counted else "c_char_p")


def enums_text(spec):
    out = []
    for group in spec.constants:
        flags = group["type"] in ("uint32_t", "uint64_t")
        lines = [f"class {group_name(group)}({'IntFlag' if flags else 'IntEnum'}):",
                 docstring(group["doc"], "    "), ""]
        for value in group["values"]:
            number = hex(value["value"]) if flags else value["value"]
            line = f"    {value['name']} = {number}"
            one = f"{line}  # {value['doc']}"
            lines += [one] if len(one) <= WIDTH else [note(value["doc"], "    "), line]
        out.append("\n".join(lines))
    return "\n\n\n".join(out)


def callbacks_text(spec, types, wanted):
    out = []
    for callback in spec.callbacks:
        if callback["name"] in wanted:
            parts = [types.of(callback["returns"], "c_void_p")]
            parts += [types.param(text) for text in callback["params"]]
            line = f"{class_name(callback['name'])} = CFUNCTYPE({', '.join(parts)})"
            body = "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent=" " * 4))
            out.append(note(callback["doc"]) + "\n" + body)
    return "\n".join(out)


def conversions_text(struct, spec, types):
    """How Python values get into the fields: names of constants, flags, texts and lists."""
    groups = {group["group"]: group_name(group) for group in spec.constants}
    fields = struct["fields"]
    enums = [f'"{f["name"]}": {types.enums[f["type"]]}' for f in fields
             if f["type"] in spec.typedefs]
    texts = [f'"{f["name"]}": "{f["text"]}"' for f in fields if "text" in f]
    lists = [f'"{f["name"]}": "{f["list"]}"' for f in fields if "list" in f]
    flags = [groups[f["flags"]] for f in fields if "flags" in f]
    lines = []
    for name, items in (("_enums_", enums), ("_texts_", texts), ("_lists_", lists)):
        lines += textwrap.wrap(f"{name} = {{{', '.join(items)}}}", WIDTH, initial_indent="    ",
                               subsequent_indent=" " * 14)
    return lines + [f"    _flags_ = {(flags + ['None'])[0]}"]


def struct_text(struct, spec, types):
    # Text that the library writes is counted; ctypes would end it at its first NUL. Events come
    # with every token, and c_char_p is the fast way: who reads them compares the length.
    counted = struct["kind"] in ("out", "plain") and struct["name"] != "optima_event"
    text = "c_void_p" if counted else "c_char_p"
    lines = [f"class {class_name(struct['name'])}(Structure):", docstring(struct["doc"], "    ")]
    fields = []
    for field in fields_of(struct):
        ctype = types.of(field["type"], text)
        if field["name"] == "next":
            ctype = "c_void_p"
        if "array" in field:
            ctype += f" * {field['array']}"
        fields += [note(field["doc"], "        "), f'        ("{field["name"]}", {ctype}),']
    lines += ["    _fields_ = ["] + fields + ["    ]"]
    if "options_kind" in struct:
        lines += conversions_text(struct, spec, types)
    return "\n".join(lines)


def functions_text(spec, types):
    out = ["# Name -> (what it returns, parameters).", "FUNCTIONS = {"]
    for function in spec.functions:
        since = f" Since {function.get('since', '1.0')}. MT_{function['mt']}."
        names = ", ".join(re.sub(r".*[\s*]", "", text) for text in function["params"])
        out.append(note(f"({names}) {function['doc']}{since}", "    "))
        params = ", ".join(types.params_of(function))
        row = f'"{function["name"]}": ({types.result_of(function)}, [{params}]),'
        out += textwrap.wrap(row, WIDTH, initial_indent="    ", subsequent_indent=" " * 8,
                             break_long_words=False)
    return "\n".join(out + ["}"])


def raw_text(spec):
    types = Types(spec)
    before = {name for struct in spec.structs for field in fields_of(struct)
              for name in [field["type"]] if name.endswith("_fn")}
    # Callbacks that take a struct come behind it, and those in structs before.
    late = {c["name"] for c in spec.callbacks
            if any("optima_event*" in param for param in c["params"])}
    order = sorted(spec.structs, key=lambda struct: any(
        field["type"] in late for field in fields_of(struct)))
    first = [s for s in order if not any(f["type"] in late for f in fields_of(s))]
    last = [s for s in order if s not in first]
    early = {c["name"] for c in spec.callbacks} - late
    if not before <= early | late:
        raise ValueError("a struct has a callback that the spec does not name")
    blocks = [PROLOGUE.format(note=NOTE, release=spec.version["release"]) + "\n",
              enums_text(spec) + "\n\n", callbacks_text(spec, types, early) + "\n\n"]
    blocks += [struct_text(struct, spec, types) + "\n\n" for struct in first]
    blocks.append(callbacks_text(spec, types, late) + "\n\n")
    blocks += [struct_text(struct, spec, types) + "\n\n" for struct in last]
    blocks.append(functions_text(spec, types))
    return "\n".join(blocks) + "\n"


def layout_text(spec):
    lines = [f"# {NOTE}", '"""Sizes and offsets of every struct on LP64 targets."""',
             "import ctypes", "", "import pytest", "", "from sits_optima import _raw", "",
             "LAYOUTS = ["]
    for struct in spec.structs:
        rows, size = spec.layout(struct)
        lines.append(f'    ("{class_name(struct["name"])}", {size}, {{')
        offsets = ", ".join(f'"{name}": {offset}' for name, offset in rows)
        lines += textwrap.wrap(offsets, WIDTH, initial_indent="        ",
                               subsequent_indent="        ")
        lines.append("    }),")
    lines += ["]", "", "",
              '@pytest.mark.parametrize("name, size, offsets", LAYOUTS)',
              "def test_layout(name, size, offsets):",
              "    struct = getattr(_raw, name)",
              "    assert ctypes.sizeof(struct) == size",
              "    assert [field[0] for field in struct._fields_] == list(offsets)",
              "    for field, offset in offsets.items():",
              "        assert getattr(struct, field).offset == offset, field"]
    return "\n".join(lines) + "\n"


# What the package gives other types than the C API has.
OWN_TYPES = {"affinity": "Sequence[int]", "cancel": "Cancel", "draft_model": "Model",
             "logit_bias": "Mapping[int, float]", "stops": "Sequence[str | bytes]",
             "on_logits": "Callable[[numpy.ndarray, numpy.ndarray], object]",
             "progress": "Callable[[float], object]", "log": "Callable[[LogLevel, str], object]"}
LEFT_OUT = re.compile(r"reserved\d|(?:\w+_)?(?:user|release)|alloc|free|spill_\w+|on_event|"
                      r"prompt|prompt_ids|logits_out|logits_capacity|stop_bytes")

OPTIONS_PROLOGUE = '''\
# {note}
"""Keyword options of engines, models, sessions and requests: the fields of the C structs, and the
names of their flags. Absent = zero = the default. Constants may be given by name, such as
path="deterministic"."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from sits_optima._raw import ({enums})

if TYPE_CHECKING:
    import numpy

    from sits_optima._cancel import Cancel
    from sits_optima.model import Model
'''


def python_type(field, types):
    ctype = field["type"]
    if field["name"] in OWN_TYPES:
        return OWN_TYPES[field["name"]]
    if "text" in field:
        return "str | bytes"
    if "list" in field:
        return "Sequence[int]"
    if ctype in types.typedefs:
        return f"{types.enums[ctype]} | str"
    return "float" if ctype in ("float", "double") else "int"


def typed_dict_text(struct, spec, types):
    lines = [f"class {class_name(struct['name']).removesuffix('Desc').removesuffix('Options')}"
             "Options(TypedDict, total=False):", docstring(struct["doc"], "    "), ""]
    counts = {field.get(key) for field in struct["fields"] for key in ("list", "text")}
    for field in struct["fields"]:
        name = field["name"]
        if LEFT_OUT.fullmatch(name) or name in counts or "flags" in field:
            continue
        lines += [note(field["doc"], "    "), f"    {name}: {python_type(field, types)}"]
    for field in struct["fields"]:
        for group in spec.constants:
            if field.get("flags") == group["group"]:
                for value in group["values"]:
                    lines += [note(value["doc"], "    "), f"    {value['name'].lower()}: bool"]
    return "\n".join(lines)


def options_text(spec):
    types = Types(spec)
    structs = [struct for struct in spec.structs
               if struct.get("options_kind") in ("ENGINE", "MODEL", "SESSION", "REQUEST")]
    enums = sorted({types.enums[field["type"]] for struct in structs for field in struct["fields"]
                    if field["type"] in spec.typedefs})
    names = textwrap.fill(", ".join(enums), WIDTH - 31,
                          subsequent_indent=" " * 31)
    head = OPTIONS_PROLOGUE.format(note=NOTE, enums=names)
    return "\n\n".join([head] + [typed_dict_text(s, spec, types) + "\n" for s in structs])


OUTPUTS = {"bindings/python/sits_optima/_raw.py": raw_text,
           "bindings/python/sits_optima/options.py": options_text,
           "bindings/python/tests/test_layout.py": layout_text}
