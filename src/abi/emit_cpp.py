"""The C++ binding's enums and options (include/optima/cpp/types.hpp): what optima.hpp is built on.

An options struct of C becomes an aggregate with the same field names and owned values. Pointers
with a length become std::string or std::vector; callbacks with a `user` become std::function. What
an argument of the C++ call says (prompt, on_event, buffers) is not in it.
"""
import textwrap

from spec import NOTE, WIDTH, lifecycle

KEYWORDS = {"auto", "bool", "break", "case", "char", "const", "continue", "default", "delete", "do",
            "double", "else", "enum", "explicit", "false", "float", "for", "if", "int", "long", "new",
            "not", "or", "private", "public", "return", "short", "signed", "static", "switch", "this",
            "true", "union", "unsigned", "void", "while"}
# Structs that the C++ classes take, and what they are called there.
OPTIONS = {"optima_engine_options": "EngineOptions", "optima_model_options": "ModelOptions",
           "optima_session_options": "SessionOptions", "optima_request_desc": "RequestOptions",
           "optima_chat_desc": "ChatOptions", "optima_probe_options": "ProbeOptions"}
# Callbacks that become functions; their `user` and `release` are the binding's own.
FUNCTIONS = {"optima_log_fn": "LogFunction", "optima_progress_fn": "ProgressFunction",
             "optima_on_logits_fn": "LogitsFunction"}
HANDLES = {"const optima_cancel*": "const Cancel*", "const optima_model*": "const Model*"}
# Set by optima.hpp itself.
HIDDEN = {("optima_request_desc", name) for name in
          ("prompt", "prompt_ids", "logits_out", "logits_capacity", "on_event", "user", "release")}
HIDDEN |= {("optima_model_options", name) for name in ("user", "release")}
HIDDEN |= {("optima_engine_options", name) for name in ("log_user", "log_release")}
STANDARD = {"int32_t", "int64_t", "uint32_t", "uint64_t", "size_t"}

PROLOGUE = """\
// Enums and options of the C++ binding.
//
// {note}
#pragma once

#include <optima/optima.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "optima/cpp/slice.hpp"

// clang-format off
namespace optima {{
inline namespace OPTIMA_CPP_MODE {{

class Cancel;
class Model;
"""
CALLBACKS = """
/// One message of the engine, from any of its threads. Must not call into the engine. What it
/// throws is dropped.
using LogFunction = std::function<void(LogLevel level, std::string_view message)>;
/// Loading progress in [0, 1], on the thread that opens the model; false cancels.
using ProgressFunction = std::function<bool(float fraction)>;
/// Changes the logits of the next token in place; `tokens` are prompt and output so far. Called on
/// the thread that drives the engine, which it must not call into. What it throws ends the request
/// and is thrown to whoever asks for the result.
using LogitsFunction = std::function<void(Slice<float> logits, Slice<const std::int32_t> tokens)>;
"""
EPILOGUE = """\
}  // namespace detail
}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
// clang-format on
"""


def camel(name):
    return "".join(part.capitalize() for part in name.replace("optima_", "", 1).split("_"))


def doc(text, indent=""):
    return "\n".join(textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent=f"{indent}/// ",
                                   subsequent_indent=f"{indent}/// ", break_long_words=False,
                                   break_on_hyphens=False))


def value_name(group, value):
    name = value["name"].lower()
    if group["group"] == "status":
        name = name.removeprefix("e_")
    return name + "_" if name in KEYWORDS else name


def enum_text(spec, group):
    c_name = group["prefix"]
    if group["type"] in spec.typedefs:
        lines = [doc(group["doc"] + lifecycle(group)),
                 f"enum class {camel(group['type'])} : std::int32_t {{"]
        form, end = "  {name} = {c},", "};"
    else:
        name = group["group"].removesuffix("s") + "s"
        lines = [doc(group["doc"] + lifecycle(group)), f"namespace {name} {{"]
        form, end = f"inline constexpr std::{group['type']} {{name}} = {{c}};", "}"
    indent = "  " if end == "};" else ""
    for value in group["values"]:
        lines.append(doc(value["doc"] + lifecycle(value, group), indent))
        lines.append(form.format(name=value_name(group, value), c=c_name + value["name"]))
    return "\n".join(lines + [end])


def shown(struct):
    """The fields that a user of C++ sets."""
    counted = {field.get(key) for field in struct["fields"] for key in ("list", "text")}
    return [field for field in struct["fields"]
            if field["name"] not in counted | {"stop_bytes"}
            and not field["name"].startswith("reserved")
            and (struct["name"], field["name"]) not in HIDDEN]


def pointed(ctype):
    return ctype.removeprefix("const ").rstrip("*").strip()


def cpp_type(spec, field):
    """Its type and its default."""
    ctype = field["type"]
    if "text" in field:
        return "std::string", ""
    if "list" in field:
        item = "std::string" if "char" in ctype else pointed(ctype)
        return f"std::vector<{'std::' if item in STANDARD else ''}{item}>", ""
    if ctype in spec.typedefs:
        return camel(ctype), "{}"
    if ctype in FUNCTIONS:
        return FUNCTIONS[ctype], ""
    if ctype in HANDLES:
        return HANDLES[ctype], " = nullptr"
    if ctype.endswith("*") or ctype.endswith("_fn"):
        return ctype, " = nullptr"
    return ("std::" if ctype in STANDARD else "") + ctype, " = 0"


def struct_text(spec, struct):
    lines = [doc(struct["doc"] + lifecycle(struct)), f"struct {OPTIONS[struct['name']]} {{"]
    for field in shown(struct):
        ctype, default = cpp_type(spec, field)
        lines.append(doc(field["doc"] + lifecycle(field, struct), "  "))
        lines.append(f"  {ctype} {field['name']}{default};")
    return "\n".join(lines + ["};"])


def assignment(spec, field):
    """How the field of C gets its value; nothing for what optima.hpp fills in."""
    name, ctype = field["name"], field["type"]
    if ctype in FUNCTIONS or ctype in HANDLES:
        return []
    if "text" in field:
        return [f"  if (!from.{name}.empty()) {{", f"    to.{name} = from.{name}.data();",
                f"    to.{field['text']} = from.{name}.size();", "  }"]
    if "list" in field:
        size = f"  to.{field['list']} = from.{name}.size();"
        if "char" not in ctype:
            return [f"  to.{name} = from.{name}.empty() ? nullptr : from.{name}.data();", size]
        return [f"  strings.assign(from.{name});", f"  to.{name} = strings.data();",
                f"  to.{name.removesuffix('s')}_bytes = strings.bytes();", size]
    if ctype in spec.typedefs:
        return [f"  to.{name} = static_cast<{ctype}>(from.{name});"]
    return [f"  to.{name} = from.{name};"]


def conversion_text(spec, struct):
    table = ", StringTable& strings" if any("char* const*" in field["type"]
                                            for field in struct["fields"]) else ""
    lines = [f"inline {struct['name']} to_c(const {OPTIONS[struct['name']]}& from{table}) {{",
             f"  {struct['name']} to{{}};", "  to.struct_size = sizeof to;"]
    for field in shown(struct):
        lines += assignment(spec, field)
    return "\n".join(lines + ["  return to;", "}"])


def types_text(spec):
    groups = [group for group in spec.constants if group["group"] not in ("options_kind", "ext")]
    structs = [struct for struct in spec.structs if struct["name"] in OPTIONS]
    enums = [enum_text(spec, group) for group in groups]
    parts = [PROLOGUE.format(note=NOTE), "\n\n".join(enums), CALLBACKS,
             "\n\n".join(struct_text(spec, struct) for struct in structs), "",
             "// The structs of C. They point into the options, which must outlive them.",
             "namespace detail {",
             "\n\n".join(conversion_text(spec, struct) for struct in structs)]
    return "\n".join(parts) + "\n" + EPILOGUE


OUTPUTS = {"include/optima/cpp/types.hpp": types_text}
