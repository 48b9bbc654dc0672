"""The raw layer of the C# binding: enums, structs, callbacks, handles, option classes and the
function table, for C# 7 and the netstandard 2.0 API, and a test of sizes and offsets.

Every pointer is an IntPtr, so that all structs and delegates are blittable: the same bytes on Mono,
CoreCLR and IL2CPP, and nothing to marshal.
"""
import html
import textwrap

from spec import NOTE, WIDTH, fields_of

RAW = "SitsOptima.Raw"
SCALARS = {"int32_t": "int", "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong",
           "float": "float", "double": "double", "size_t": "UIntPtr", "char": "byte",
           "void": "void"}
# optima_path: the name Path belongs to System.IO.
ENUM_NAMES = {"optima_path": "ComputePath", "optima_output": "SessionOutput",
              "optima_content": "ModelContent", "optima_grammar": "GrammarKind"}
GROUP_NAMES = {"feature": "Features", "ext": "ExtensionBits"}
OPTION_CLASSES = {"optima_engine_options": "EngineOptions", "optima_model_options": "ModelOptions",
                  "optima_session_options": "SessionOptions",
                  "optima_request_desc": "RequestOptions", "optima_chat_desc": "ChatOptions",
                  "optima_probe_options": "ProbeOptions"}
# Of option structs: what the classes fill by hand, from delegates, tokens and time spans.
BY_HAND = {"user", "release", "cancel", "deadline_ms", "logits_out", "logits_capacity",
           "draft_model", "alloc_user", "log_user", "spill_user", "stop_bytes"}
# Items of an array, and the method of Arena that copies them.
ITEMS = {"const int32_t*": ("int", "Ints"), "const int64_t*": ("long", "Longs"),
         "const uint64_t*": ("ulong", "Ulongs"),
         "const optima_logit_bias*": ("OptimaLogitBias", "Biases")}
KEYWORDS = {"event", "in", "out", "ref", "string", "object", "params", "fixed", "lock", "base"}


def pascal(name):
    """optima_request_desc -> OptimaRequestDesc; Q8_0 keeps the line between its digits."""
    out = ""
    for part in name.split("_"):
        out += "_" + part if part[:1].isdigit() and out[-1:].isdigit() else part.capitalize()
    return out


def camel(name):
    if name in KEYWORDS:
        return "@" + name
    word = pascal(name)
    return word[0].lower() + word[1:]


def file_text(body, namespace, usings=("System",)):
    lines = [f"// {NOTE}"] + [f"using {name};" for name in usings]
    return "\n".join(lines + ["", f"namespace {namespace}", "{", body.strip("\n"), "}"]) + "\n"


def doc(text, indent):
    pad = " " * indent + "/// "
    text = html.escape(" ".join(text.split()), quote=False)
    one = f"{pad}<summary>{text}</summary>"
    if len(one) <= WIDTH:
        return one
    body = textwrap.wrap(text, WIDTH - len(pad), break_long_words=False, break_on_hyphens=False)
    return "\n".join(pad + line for line in ["<summary>"] + body + ["</summary>"])


def since(item, text):
    """Documentation with the release that brought the item."""
    return f"{text} Since {item['since']}." if "since" in item else text


# ---------------------------------------------------------------- enums

def enum_name(group):
    if group["type"].startswith("optima_"):
        return ENUM_NAMES.get(group["type"], pascal(group["type"][len("optima_"):]))
    return GROUP_NAMES.get(group["group"], pascal(group["group"]))


def value_name(group, name):
    if group["group"] == "status" and name.startswith("E_"):
        name = name[2:]
    return pascal(name)


def enum_text(group):
    base = SCALARS.get(group["type"], "int")
    bits = base in ("uint", "ulong")
    out = [doc(group["doc"], 4)] + (["    [Flags]"] if bits else [])
    out += [f"    public enum {enum_name(group)} : {base}", "    {"]
    if bits:
        out += [doc("No bit.", 8), "        None = 0,"]
    for value in group["values"]:
        number = f"0x{value['value']:x}" if bits else value["value"]
        out += [doc(since(value, value["doc"]), 8),
                f"        {value_name(group, value['name'])} = {number},"]
    return "\n".join(out + ["    }"])


def enums_text(spec):
    major, minor, patch = spec.version["release"].split(".")
    version = f"""\
    /// <summary>The release that this binding was generated from.</summary>
    public static class OptimaRelease
    {{
        /// <summary>Its number.</summary>
        public const string Version = "{spec.version['release']}";
        /// <summary>Its parts.</summary>
        public const int Major = {major}, Minor = {minor}, Patch = {patch};
        /// <summary>Major version of the ABI.</summary>
        public const uint Abi = {spec.version['abi']};
    }}
"""
    body = version + "\n" + "\n\n".join(enum_text(group) for group in spec.constants)
    return file_text(body, "SitsOptima")


# ---------------------------------------------------------------- structs

def scalar(spec, ctype):
    """The C# type of a value that is passed or kept as it is."""
    if ctype.endswith("*") or ctype.endswith("_fn"):
        return "IntPtr"
    if ctype in spec.typedefs:
        return ENUM_NAMES.get(ctype, pascal(ctype[len("optima_"):]))
    return SCALARS[ctype]


def field_type(spec, struct, field):
    """As scalar; bits of a flags field get their enum."""
    if "flags" in field and struct["kind"] == "options":
        group = next(g for g in spec.constants if g["group"] == field["flags"])
        return enum_name(group)
    return scalar(spec, field["type"])


def struct_text(spec, struct):
    name = pascal(struct["name"])
    arrays = any("array" in field for field in struct["fields"])
    word = "unsafe struct" if arrays else "struct"
    out = [doc(since(struct, struct["doc"]), 4), "    [StructLayout(LayoutKind.Sequential)]",
           f"    public {word} {name}", "    {"]
    for field in fields_of(struct):
        kind = field_type(spec, struct, field)
        out.append(doc(since(field, field["doc"]), 8))
        member = pascal(field["name"])
        out.append(f"        public fixed {kind} {member}[{field['array']}];" if "array" in field
                   else f"        public {kind} {member};")
    if struct["kind"] != "plain":
        out += ["", doc("The defaults, with the size set.", 8),
                f"        public static {name} Create()", "        {",
                f"            return new {name} {{ StructSize = {spec.layout(struct)[1]} }};",
                "        }"]
    return "\n".join(out + ["    }"])


def structs_text(spec):
    body = "\n\n".join(struct_text(spec, struct) for struct in spec.structs)
    return file_text(body, RAW, ("System", "System.Runtime.InteropServices"))


# ---------------------------------------------------------------- functions

def split_param(param):
    ctype, name = param.rsplit(" ", 1)
    return ctype, name


def param_text(spec, function, param):
    ctype, name = split_param(param)
    growing = {s["name"] for s in spec.structs if s["kind"] != "plain"}
    pointed = ctype.replace("const ", "").rstrip("*")
    if ctype.endswith("**") and not ctype.startswith("const"):
        kind = "out IntPtr"
    elif ctype.endswith("*") and pointed in growing and name != "events":
        kind = "ref " + pascal(pointed)
    elif ctype.endswith("*") and not ctype.startswith("const") and pointed in SCALARS and (
            pointed not in ("void", "char")):
        kind = "out " + SCALARS[pointed]
    else:
        kind = scalar(spec, ctype)
    return f"{kind} {camel(name)}"


def delegate_text(spec, item, name, params):
    mark = "        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]"
    head = f"        public delegate {scalar(spec, item['returns'])} {name}("
    one = head + ", ".join(params) + ");"
    if len(one) <= WIDTH:
        return f"{mark}\n{one}"
    lines = textwrap.wrap("\0".join(p.replace(" ", "\1") + "," for p in params).replace("\0", " "),
                          WIDTH - 12, break_long_words=False)
    body = "\n".join("            " + line.replace("\1", " ") for line in lines)
    return f"{mark}\n{head}\n{body.rstrip(',')});"


def callbacks_text(spec):
    out = ["    /// <summary>The types of the C API's callbacks.</summary>",
           "    public static class Callback", "    {"]
    for item in spec.callbacks:
        params = [f"{scalar(spec, split_param(p)[0])} {camel(split_param(p)[1])}"
                  for p in item["params"]]
        name = pascal(item["name"][len("optima_"):-len("_fn")])
        out += [doc(since(item, item["doc"]), 8), delegate_text(spec, item, name, params), ""]
    return "\n".join(out[:-1] + ["    }"])


def function_name(function):
    return pascal(function["name"][len("optima_"):])


def types_text(spec):
    out = ["    /// <summary>The types of the C API's functions.</summary>",
           "    public static class Function", "    {"]
    for function in spec.functions:
        params = [param_text(spec, function, p) for p in function["params"]]
        release = function.get("since", "1.0")
        text = f"{function['doc']} Thread tag {function['mt']}, since {release}."
        out += [doc(text, 8), delegate_text(spec, function, function_name(function), params), ""]
    return "\n".join(out[:-1] + ["    }"])


def table_text(spec):
    out = [doc("The functions of a loaded library, from its optima_api_v1. They are documented at "
               "their types in Function.", 4),
           "    public sealed class Api", "    {"]
    for function in spec.functions:
        name = function_name(function)
        out.append(f"        public readonly Function.{name} {name};")
    out += ["", doc("The offset behind the last function that is needed.", 8),
            f"        public const int TableSize = {8 + 8 * len(spec.functions)};", "",
            doc("The name and release of the function at an index of the table.", 8),
            "        internal static readonly string[] Names =", "        {"]
    out += [f"            \"{f['name']} of {f.get('since', '1.0')}\"," for f in spec.functions]
    out += ["        };", "", doc("Binds a table that has at least TableSize bytes.", 8),
            "        internal Api(IntPtr table)", "        {"]
    for index, function in enumerate(spec.functions):
        name = function_name(function)
        out.append(f"            {name} = Bind<Function.{name}>(table, {8 + 8 * index});")
    out += ["        }", "", "        private static T Bind<T>(IntPtr table, int offset)",
            "        {", "            return Marshal.GetDelegateForFunctionPointer<T>("
            "Marshal.ReadIntPtr(table, offset));", "        }", "    }"]
    return "\n".join(out)


def api_text(spec):
    body = "\n\n".join([callbacks_text(spec), types_text(spec), table_text(spec)])
    return file_text(body, RAW, ("System", "System.Runtime.InteropServices"))


def handles_text(spec):
    names = {f["name"] for f in spec.functions}
    out = []
    for handle in spec.handles:
        name = pascal(handle["name"])
        destroy = f"{handle['name']}_destroy"
        if destroy not in names:
            continue
        out.append(f"""\
{doc(handle['doc'], 4)}
    public sealed class {name}Handle : OptimaHandle
    {{
        protected override bool ReleaseHandle()
        {{
            OptimaLibrary.Api.{pascal(destroy[len('optima_'):])}(handle);
            return true;
        }}
    }}""")
    return file_text("\n\n".join(out), RAW)


# ---------------------------------------------------------------- option classes

def property_of(spec, struct, field, counts):
    """(C# type, statements that fill the struct) of a field, or None for one that has no key."""
    name, ctype, member = field["name"], field["type"], pascal(field["name"])
    if name in BY_HAND or name in counts or name.startswith("reserved") or ctype.endswith("_fn"):
        return None
    if "text" in field:
        return "string", f"desc.{member} = arena.Text({member}, out desc.{pascal(field['text'])});"
    if ctype == "const char* const*":
        count = pascal(field["list"])
        return ("IReadOnlyList<string>",
                f"desc.{member} = arena.Texts({member}, out desc.StopBytes, out desc.{count});")
    if "list" in field:
        (item, method), count = ITEMS[ctype], pascal(field["list"])
        return (f"IReadOnlyList<{item}>",
                f"desc.{member} = arena.{method}({member}, out desc.{count});")
    return field_type(spec, struct, field), f"desc.{member} = {member};"


def options_class(spec, struct):
    counts = {field.get(key) for field in struct["fields"] for key in ("list", "text")}
    name, raw = OPTION_CLASSES[struct["name"]], pascal(struct["name"])
    members, fill = [], []
    for field in struct["fields"]:
        found = property_of(spec, struct, field, counts)
        if found:
            members += [doc(since(field, field["doc"]), 8),
                        f"        public {found[0]} {pascal(field['name'])} {{ get; set; }}"]
            fill.append("            " + found[1])
    return "\n".join(
        [doc(struct["doc"], 4), f"    public sealed partial class {name}", "    {"] + members
        + ["", doc("Sets the fields that are properties; arrays live as long as the arena.", 8),
           f"        internal void Fill(ref {raw} desc, Arena arena)", "        {"] + fill
        + ["        }", "    }"])


def options_text(spec):
    body = "\n\n".join(options_class(spec, struct) for struct in spec.structs
                       if struct["name"] in OPTION_CLASSES)
    return file_text(body, "SitsOptima", ("System", "System.Collections.Generic", RAW))


# ---------------------------------------------------------------- test

def layout_text(spec):
    out = [doc("Sizes and offsets of every struct, as the C compiler has them.", 4),
           "    internal static unsafe class LayoutTable", "    {",
           "        public static void Run(LayoutCheck check)", "        {"]
    for struct in spec.structs:
        name = pascal(struct["name"])
        rows, size = spec.layout(struct)
        out.append(f"            check.Size(typeof({name}), sizeof({name}), {size});")
        out += [f"            check.Offset(typeof({name}), \"{pascal(field)}\", {offset});"
                for field, offset in rows]
    out += [f"            check.Table({len(spec.functions)}, {8 + 8 * len(spec.functions)});",
            "        }", "    }"]
    return file_text("\n".join(out), "SitsOptima.Tests", (RAW,))


FOLDER = "bindings/csharp/src/Raw"
OUTPUTS = {
    f"{FOLDER}/Enums.cs": enums_text,
    f"{FOLDER}/Structs.cs": structs_text,
    f"{FOLDER}/Api.cs": api_text,
    f"{FOLDER}/Handles.cs": handles_text,
    f"{FOLDER}/Options.cs": options_text,
    "bindings/csharp/tests/LayoutTable.cs": layout_text,
}
