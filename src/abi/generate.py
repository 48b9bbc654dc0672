#!/usr/bin/env python3
"""Writes everything that follows from optima.yaml; `--check` compares instead of writing.

Outputs: the public headers, the function table, the option keys, the version script, the symbol
list, the layout test, and what each emit_<language>.py beside this file says in OUTPUTS (path ->
function of the spec): the raw layer of that language's binding. What is marked `unstable` is in the
unstable header alone. `--freeze` appends what is new to tests/abi/frozen_1.txt, the list of
promises; every run fails when a promise of that list is no longer kept. Needs python3-yaml only.
"""
import argparse
import importlib
import pathlib
import re
import sys
import textwrap

from spec import NOTE, ROOT, WIDTH, Spec, comment, fields_of, lifecycle, number, since

FROZEN = ROOT / "tests/abi/frozen_1.txt"
HERE = pathlib.Path(__file__).resolve().parent

# ---------------------------------------------------------------- optima.h

PROLOGUE = """\
/* SITS-Optima {release}: the C API of libsitsoptima. C99.
 *
 * {note}
 *
 * Ownership. A handle that a function returns through `out` is destroyed with the function that
 * its comment names; destroy functions take NULL, and handles may be destroyed in any order. A
 * pointer that a function returns belongs to the object asked and lives as long as it.
 * Strings go in as pointer and length; OPTIMA_NTS as length means NUL-terminated. UTF-8.
 * Options and out-structs begin with struct_size, which the caller sets to sizeof the struct; zero
 * is the default of every other field. Bytes that this version does not know must be zero.
 * Errors. Calls that can fail return an optima_status and take a last `err`, which may be NULL;
 * on failure *err is an optima_error to be destroyed (or NULL when no memory was left for it), on
 * success it is NULL. On failure *out is NULL.
 * Threads. Each function is tagged:
 *   OPTIMA_MT_SAFE        from any thread at any time, as long as the handle is not destroyed;
 *   OPTIMA_MT_PER_OBJECT  one thread at a time for each object;
 *   OPTIMA_MT_SIGNAL      as MT_SAFE, and from signal handlers.
 * Lifecycle. All of this header is stable (ABI.md). "Since" says from which release; fields and
 * values that say nothing are as old as what they are in. What is deprecated still works.
 * The library never prints, exits, installs signal handlers or reads the environment. */
/* clang-format off */
#ifndef OPTIMA_OPTIMA_H
#define OPTIMA_OPTIMA_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(OPTIMA_BUILD)
#define OPTIMA_API __declspec(dllexport)
#else
#define OPTIMA_API __declspec(dllimport)
#endif
#else
#define OPTIMA_API __attribute__((visibility("default")))
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define OPTIMA_NOEXCEPT noexcept
#else
#define OPTIMA_NOEXCEPT
#endif

/* Thread tags; see above. */
#define OPTIMA_MT_SAFE
#define OPTIMA_MT_PER_OBJECT
#define OPTIMA_MT_SIGNAL

#ifdef __cplusplus
extern "C" {{
#endif

#define OPTIMA_VERSION_MAJOR {major}
#define OPTIMA_VERSION_MINOR {minor}
#define OPTIMA_VERSION_PATCH {patch}
#define OPTIMA_ABI_VERSION {abi}

/* As a length: the string ends at its NUL. */
#define OPTIMA_NTS SIZE_MAX
"""


def rule(title):
    return f"/* ---- {title} " + "-" * (WIDTH - 12 - len(title)) + " */"


def constant_value(group, value):
    number = value["value"]
    if group["type"] == "uint64_t":
        return f"UINT64_C(0x{number:x})"
    if group["type"] == "uint32_t":
        return f"0x{number:x}u"
    return f"({number})" if number < 0 else str(number)


def constants_text(spec, constants):
    out = []
    for group in constants:
        out.append("\n" + comment(group["doc"] + lifecycle(group)))
        if group["type"] in spec.typedefs:
            out.append(f"typedef int32_t {group['type']};")
        for value in group["values"]:
            name = group["prefix"] + value["name"]
            line = f"#define {name} {constant_value(group, value)}"
            doc = value["doc"] + lifecycle(value, group)
            one = f"{line} /* {doc} */"
            out.append(one if len(one) <= WIDTH else comment(doc) + "\n" + line)
    return "\n".join(out)


def prototype(head, params, tail, indent="    "):
    args = ", ".join(params) or "void"
    one = f"{head}({args}){tail}"
    if len(one) <= WIDTH:
        return one
    pad = " " * (len(head) + 1)
    if max(len(pad + p) for p in params) + 1 > WIDTH - len(tail):
        pad = indent
        head += "(\n" + indent
    else:
        head += "("
    lines, line = [], ""
    for i, param in enumerate(params):
        piece = param + ("," if i + 1 < len(params) else "")
        used = len(head.rsplit("\n", 1)[-1]) if not lines else len(pad)
        if line and used + len(line) + 1 + len(piece) + len(tail) > WIDTH:
            lines.append(line)
            line = piece
        else:
            line = f"{line} {piece}".strip()
    return head + ("\n" + pad).join(lines + [line]) + ")" + tail


def struct_text(spec, struct):
    name = struct["name"]
    out = [comment(struct["doc"] + lifecycle(struct)), f"struct {name} {{"]
    for field in fields_of(struct):
        array = f"[{field['array']}]" if "array" in field else ""
        line = f"  {field['type']} {field['name']}{array};"
        doc = field["doc"] + lifecycle(field, struct)
        one = f"{line} /* {doc} */"
        out.append(one if len(one) <= WIDTH else comment(doc, "  ") + "\n" + line)
    out.append("};")
    if struct["kind"] in ("options", "in", "out"):
        out.append(init_macro(spec, struct))
    return "\n".join(out)


def init_macro(spec, struct):
    values = [f"(uint32_t)sizeof({struct['name']})"]
    for field in fields_of(struct)[1:]:
        pointer = field["type"].endswith("*") or field["type"].endswith("_fn")
        values.append("{0}" if "array" in field else "NULL" if pointer else "0")
    body = textwrap.wrap(", ".join(values), WIDTH - 6, break_long_words=False)
    return f"#define {struct['name'].upper()}_INIT \\\n  {{ " + " \\\n    ".join(body) + " }"


def function_text(function):
    doc = comment(function["doc"] + lifecycle(function))
    head = f"OPTIMA_MT_{function['mt']} OPTIMA_API {function['returns']} {function['name']}"
    return doc + "\n" + prototype(head, function["params"], " OPTIMA_NOEXCEPT;")


def table_text(spec):
    out = [comment("All functions, for users of dlopen: optima_get_api. Only ever grows at the "
                   "end; struct_size says how far."),
           "struct optima_api_v1 {", "  uint32_t struct_size;", "  uint32_t abi;"]
    for function in spec.functions:
        short = function["name"][len("optima_"):]
        out.append(prototype(f"  {function['returns']} (*{short})", function["params"], ";",
                             "      "))
    out.append("};")
    return "\n".join(out)


def header_text(spec):
    major, minor, patch = spec.version["release"].split(".")
    parts = [PROLOGUE.format(release=spec.version["release"], note=NOTE, major=major, minor=minor,
                             patch=patch, abi=spec.version["abi"]), rule("Constants"),
             constants_text(spec, spec.constants), "\n" + rule("Handles") + "\n"]
    for handle in spec.handles:
        name = handle["name"]
        doc = comment(handle["doc"] + lifecycle(handle))
        parts.append(f"{doc}\ntypedef struct {name} {name};")
    parts.append("\n" + rule("Structs and callbacks") + "\n")
    for struct in spec.structs:
        parts.append(f"typedef struct {struct['name']} {struct['name']};")
    parts.append("typedef struct optima_api_v1 optima_api_v1;\n")
    for callback in spec.callbacks:
        parts.append(comment(callback["doc"] + lifecycle(callback)))
        parts.append(prototype(f"typedef {callback['returns']} (*{callback['name']})",
                               callback["params"], ";") + "\n")
    parts += [struct_text(spec, struct) + "\n" for struct in spec.structs]
    parts.append(rule("Functions") + "\n")
    parts += [function_text(function) + "\n" for function in spec.functions]
    parts.append(table_text(spec) + "\n")
    parts.append('#ifdef __cplusplus\n}\n#endif\n\n#endif /* OPTIMA_OPTIMA_H */')
    return "\n".join(parts) + "\n"


def unstable_text(spec):
    return f"""\
/* Functions without a promise: they may change or go with any release.
 *
 * {NOTE}
 *
 * A program that uses them must be built against exactly the release it runs with; they live in
 * the version node OPTIMA_UNSTABLE and are not in optima_api_v1. */
/* clang-format off */
#ifndef OPTIMA_OPTIMA_UNSTABLE_H
#define OPTIMA_OPTIMA_UNSTABLE_H

#include "optima/optima.h"

#ifdef __cplusplus
extern "C" {{
#endif

/* Compare with optima_version() at run time before calling anything declared here. */
#define OPTIMA_UNSTABLE_RELEASE "{spec.version['release']}"

{rule("Constants")}
{constants_text(spec, spec.unstable_constants)}

{rule("Structs")}

{chr(10).join(f"typedef struct {s['name']} {s['name']};" for s in spec.unstable_structs)}

{chr(10).join(struct_text(spec, s) + chr(10) for s in spec.unstable_structs)}
{rule("Functions")}

{chr(10).join(function_text(f) + chr(10) for f in spec.unstable_functions)}
#ifdef __cplusplus
}}
#endif

#endif /* OPTIMA_OPTIMA_UNSTABLE_H */
"""


# ---------------------------------------------------------------- ABI.md

MARKS = ("<!-- Lifecycle: generated by src/abi/generate.py -->", "<!-- End of the lifecycle -->")


def names_text(title, names):
    body = ", ".join(f"`{name}`" for name in names) or "none"
    return textwrap.fill(f"- **{title}**: {body}.", 110, subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False)


def lifecycle_text(spec):
    """By release, each item once: what belongs to something as old is told with it."""
    items = [(name.removeprefix("constants "), row, outer, since(row, outer))
             for name, row, outer in spec.items()
             if not row.get("name", "").startswith("reserved")]
    kinds = {"constant groups": lambda row, outer: "group" in row,
             "constants": lambda row, outer: "values" in outer,
             "types": lambda row, outer: row in spec.handles + spec.callbacks + spec.structs,
             "fields": lambda row, outer: "fields" in outer,
             "functions": lambda row, outer: row in spec.functions}
    lines = []
    for release in sorted({item[3] for item in items}, key=number):
        lines.append(f"Stable since {release}:\n")
        for title, belongs in kinds.items():
            names = [name for name, row, outer, begin in items if begin == release
                     and belongs(row, outer) and (not outer or begin != since(outer))]
            if names:
                lines.append(names_text(title.capitalize(), names))
        lines.append("")
    gone = [f"{name} (since {row['deprecated']['since']}: {row['deprecated']['use']})"
            for name, row, _, _ in items if "deprecated" in row]
    unstable = spec.unstable_structs + spec.unstable_functions
    lines.append(names_text("Deprecated", gone))
    lines.append(names_text("Unstable", [row["name"] for row in unstable]))
    return "\n".join(lines)


def abi_md_text(spec):
    """ABI.md with the part between the marks written anew."""
    head, rest = (ROOT / "ABI.md").read_text().split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    return f"{head}{MARKS[0]}\n{lifecycle_text(spec)}\n{MARKS[1]}{tail}"


# ---------------------------------------------------------------- library sources

def api_table_text(spec):
    lines = [f"// {NOTE}", "// The rows of the function table, in the order of optima_api_v1."]
    lines += [f"{f['name']}," for f in spec.functions]
    return "\n".join(lines) + "\n"


FIELD_KINDS = {"int32_t": "int32", "int64_t": "int64", "uint64_t": "uint64", "float": "real",
               "void*": "pointer"}


def option_row(spec, struct, field):
    """(key, kind, field, count or length field, constants) of a field that a key can set."""
    ctype, pointed = field["type"], field["type"].rstrip("*").replace("const ", "")
    if "flags" in field or field["name"].startswith("reserved"):
        return None
    if "text" in field:
        return "text", field["text"]
    if "list" in field:
        return {"int32_t": "ids", "int64_t": "positions", "uint64_t": "cpus", "char* ": "strings",
                "optima_logit_bias": "biases"}.get(pointed, "strings"), field["list"]
    if ctype in spec.typedefs:
        return "constant", None
    if ctype.endswith("_fn") or ctype.endswith("*"):
        return ("pointer", None) if field["name"] != "stop_bytes" else None
    counts = {f.get(k) for f in struct["fields"] for k in ("list", "text")}
    if ctype == "size_t":
        return None if field["name"] in counts else ("size", None)
    return FIELD_KINDS[ctype], None


def options_text(spec):
    groups = {g["group"]: g for g in spec.constants}
    lines = [f"// {NOTE}",
             "// FIELD(options kind, struct, key, value kind, field, length field or field)",
             "// NAMED(options kind, struct, key, name, value): names of a constant's values",
             "// FLAG(options kind, struct, key, field, bit)"]
    for struct in spec.structs:
        if "options_kind" not in struct:
            continue
        head = f"OPTIMA_OPTIONS_{struct['options_kind']}, {struct['name']}"
        for field in struct["fields"]:
            row = option_row(spec, struct, field)
            name = field["name"]
            if row:
                lines.append(f'FIELD({head}, "{name}", {row[0]}, {name}, {row[1] or name})')
            if "enum" in field:
                group = groups[field["enum"]]
                lines += [f'NAMED({head}, "{name}", "{v["name"].lower()}", '
                          f'{group["prefix"]}{v["name"]})' for v in group["values"]]
            if "flags" in field:
                group = groups[field["flags"]]
                lines += [f'FLAG({head}, "{v["name"].lower()}", {name}, '
                          f'{group["prefix"]}{v["name"]})' for v in group["values"]]
    lines += ["#undef FIELD", "#undef NAMED", "#undef FLAG"]
    return "\n".join(lines) + "\n"


def struct_sizes_text(spec):
    """The smallest struct_size that a host can have: the struct as its first release had it."""
    lines = [f"// {NOTE}"]
    for struct in spec.structs + spec.unstable_structs:
        if struct["kind"] == "plain":
            continue
        since = str(struct.get("since", "1.0"))
        first = dict(struct, fields=[f for f in struct["fields"]
                                     if str(f.get("since", since)) == since])
        lines += ["template <>",
                  f"inline constexpr uint32_t kSizeMin<{struct['name']}> = "
                  f"{spec.layout(first)[1]};"]
    return "\n".join(lines) + "\n"


def version_node(function):
    if function.get("unstable"):
        return "OPTIMA_UNSTABLE"
    return "OPTIMA_" + str(function.get("since", "1.0"))


def symbols_map_text(spec):
    lines = [f"# {NOTE}"]
    nodes = {}
    for function in spec.functions + spec.unstable_functions:
        nodes.setdefault(version_node(function), []).append(function["name"])
    previous = ""
    for node, names in nodes.items():
        lines += [f"{node} {{", "  global:"] + [f"    {n};" for n in names]
        if not previous:
            lines += ["  local:", "    *;"]
        lines.append(f"}}{previous};")
        previous = " " + node
    return "\n".join(lines) + "\n"


def symbols_text(spec):
    functions = spec.functions + spec.unstable_functions
    return "\n".join(sorted(f"{f['name']}@@{version_node(f)}" for f in functions)) + "\n"


# ---------------------------------------------------------------- tests

def layout_text(spec):
    lines = [f"/* {NOTE}",
             " * Sizes and offsets of every struct on LP64 targets; the compiler checks them. */",
             "/* clang-format off */", '#include "optima/optima.h"',
             '#include "optima/optima_unstable.h"', "",
             "#define SIZE(type, n) _Static_assert(sizeof(type) == (n), #type)",
             "#define AT(type, field, n) _Static_assert(offsetof(type, field) == (n), "
             "#type \".\" #field)", ""]
    for struct in spec.structs + spec.unstable_structs:
        rows, size = spec.layout(struct)
        lines.append(f"SIZE({struct['name']}, {size});")
        lines += [f"AT({struct['name']}, {name}, {offset});" for name, offset in rows]
    lines.append(f"SIZE(optima_api_v1, {8 + 8 * len(spec.functions)});")
    lines += [f"AT(optima_api_v1, {f['name'][7:]}, {8 + 8 * i});"
              for i, f in enumerate(spec.functions)]
    lines += ["", "int main(void) { return 0; }"]
    return "\n".join(lines) + "\n"


def promises(spec):
    """One line per thing that a built program relies on."""
    lines = []
    for group in spec.constants:
        lines += [f"constant {group['prefix']}{v['name']} = {v['value']}" for v in group["values"]]
    for callback in spec.callbacks:
        lines.append(f"callback {callback['returns']} {callback['name']}"
                     f"({', '.join(types(callback['params']))})")
    for struct in spec.structs:
        rows, size = spec.layout(struct)
        lines += [f"field {struct['name']}.{name} {ctype} @ {offset}" for (name, offset), ctype in
                  zip(rows, [f["type"] for f in fields_of(struct)])]
        if struct["kind"] == "plain":
            lines.append(f"size {struct['name']} {size}")
    for index, function in enumerate(spec.functions):
        lines.append(f"function {function['returns']} {function['name']}"
                     f"({', '.join(types(function['params']))}) # {index} MT_{function['mt']}")
    return lines


def types(params):
    return [re.sub(r"\s*\w+$", "", param) for param in params]


def undated(spec, kept):
    """What was added after a release was frozen and says that it is older than that."""
    frozen = {line.split()[1].split("(")[0] for line in kept if not line.startswith("function ")}
    frozen |= {line.split("(")[0].split()[-1] for line in kept if line.startswith("function ")}
    frozen |= {line.split("(")[0].split()[-1] for line in kept if line.startswith("callback ")}
    current = ".".join(spec.version["release"].split(".")[:2])
    return [name for name, row, outer in spec.items()
            if name not in frozen and since(row, outer) != current
            and (row in spec.functions + spec.callbacks or "values" in outer or "fields" in outer)]


def check_promises(spec, freeze):
    now = promises(spec)
    kept = FROZEN.read_text().splitlines() if FROZEN.exists() else []
    broken = [line for line in kept if line not in set(now)]
    for line in broken:
        print(f"broken promise: {line}", file=sys.stderr)
    late = undated(spec, kept)
    for name in late:
        print(f"{name} is new and must say since when", file=sys.stderr)
    if freeze and not broken:
        FROZEN.write_text("\n".join(kept + [line for line in now if line not in set(kept)]) + "\n")
    return not broken and not late


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--freeze", action="store_true", help="add what is new to the promises")
    args = parser.parse_args()
    spec = Spec()
    outputs = {
        "include/optima/optima.h": header_text,
        "include/optima/optima_unstable.h": unstable_text,
        "src/abi/api_table.inc": api_table_text,
        "src/abi/option_fields.inc": options_text,
        "src/abi/struct_sizes.inc": struct_sizes_text,
        "src/abi/symbols.map": symbols_map_text,
        "tests/abi/symbols.txt": symbols_text,
        "tests/abi/layout_test.c": layout_text,
        "ABI.md": abi_md_text,
    }
    for emitter in sorted(HERE.glob("emit_*.py")):
        outputs |= importlib.import_module(emitter.stem).OUTPUTS
    good = check_promises(spec, args.freeze)
    for name, make in outputs.items():
        path, text = ROOT / name, make(spec)
        if args.check:
            if not path.exists() or path.read_text() != text:
                print(f"{name} differs from a fresh run of src/abi/generate.py", file=sys.stderr)
                good = False
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
