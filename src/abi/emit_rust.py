"""The raw layer of the Rust binding: constants, structs, callbacks, the function table and, for
programs that link the library, the functions themselves. Nothing here is checked or safe; the
crate's other files are built on it."""
import re
import textwrap

from spec import NOTE, WIDTH, fields_of

TYPES = {"char": "c_char", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "void": "c_void",
         "uint64_t": "u64", "float": "f32", "double": "f64", "size_t": "usize"}
RESERVED = {"type": "type_"}

PROLOGUE = """\
// {note}
//! The C ABI of libsitsoptima as it is: constants, structs, callbacks and the table of functions.
//!
//! Everything keeps its C name. A `*_init` macro is `Default` here. Each function says on which
//! threads it may be called: `MT_SAFE` from any at any time, `MT_PER_OBJECT` by one thread at a
//! time for each object, `MT_SIGNAL` as `MT_SAFE` and from signal handlers.
#![allow(non_camel_case_types, rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]
#![allow(clippy::all)]

use std::marker::{{PhantomData, PhantomPinned}};
use std::mem::{{size_of, zeroed}};
use std::os::raw::{{c_char, c_void}};

/// Release whose header this file follows; older libraries lack part of it.
pub const OPTIMA_RELEASE: &str = "{release}";
/// Argument of `optima_get_api`.
pub const OPTIMA_ABI_VERSION: u32 = {abi};
/// As a length: the string ends at its NUL.
pub const OPTIMA_NTS: usize = usize::MAX;
"""


def doc(text, indent="", mark="///"):
    lines = textwrap.wrap(" ".join(text.split()), WIDTH - len(indent) - len(mark) - 1,
                          break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{indent}{mark} {line}" for line in lines)


def rust_type(ctype):
    """`const char* const*` as `*const *const c_char`: each star takes the `const` before it."""
    base, *stars = re.sub(r"\s+", " ", ctype).strip().split("*")
    constant = base.startswith("const ")
    name = base.replace("const ", "").strip()
    out = TYPES.get(name, name)
    for index in range(len(stars)):
        out = f"*{'const' if constant else 'mut'} {out}"
        constant = stars[index].strip() == "const"
    return f"Option<{out}>" if name.endswith("_fn") and not stars else out


def parameter(text):
    ctype, name = re.fullmatch(r"(.*?[\s*])(\w+)", text).groups()
    return f"{RESERVED.get(name, name)}: {rust_type(ctype)}"


def signature(head, function, tail, indent):
    params = [parameter(text) for text in function["params"]]
    returns = function["returns"]
    result = "" if returns == "void" else f" -> {rust_type(returns)}"
    one = f"{indent}{head}({', '.join(params)}){result}{tail}"
    if len(one) <= WIDTH:
        return one
    inner = "\n".join(f"{indent}    {param}," for param in params)
    return f"{indent}{head}(\n{inner}\n{indent}){result}{tail}"


def constants_text(spec):
    out = []
    for group in spec.constants:
        ctype = group["type"]
        if ctype in spec.typedefs:
            out.append(doc(group["doc"]) + f"\npub type {ctype} = i32;")
        else:
            out.append(doc(f"{group['prefix']}: {group['doc']}", mark="//"))
        for value in group["values"]:
            number = value["value"] if ctype in spec.typedefs else f"{value['value']:#x}"
            head = f"pub const {group['prefix']}{value['name']}: {rust_type(ctype)}"
            out.append(f"{doc(value['doc'])}\n{head} = {number};")
        out.append("")
    return "\n".join(out)


def handles_text(spec):
    return "\n".join(f"""\
{doc(handle['doc'])}
#[repr(C)]
pub struct {handle['name']} {{
    _opaque: [u8; 0],
    _unmovable: PhantomData<(*mut u8, PhantomPinned)>,
}}
""" for handle in spec.handles)


def callbacks_text(spec):
    return "\n".join(doc(callback["doc"]) + "\n" + signature(
        f"pub type {callback['name']} = unsafe extern \"C\" fn", callback, ";", "") + "\n"
        for callback in spec.callbacks)


def struct_text(struct):
    name = struct["name"]
    lines = [doc(struct["doc"]), "#[repr(C)]", "#[derive(Clone, Copy, Debug)]",
             f"pub struct {name} {{"]
    for field in fields_of(struct):
        ctype = rust_type(field["type"])
        if "array" in field:
            ctype = f"[{ctype}; {field['array']}]"
        lines += [doc(field["doc"], "    "),
                  f"    pub {RESERVED.get(field['name'], field['name'])}: {ctype},"]
    lines.append("}")
    sized = "" if struct["kind"] == "plain" else """
        it.struct_size = size_of::<Self>() as u32;"""
    lines.append(f"""
impl Default for {name} {{
    fn default() -> Self {{
        // SAFETY: integers, floats, pointers and optional functions: zero is a value of each.
        let {'mut ' if sized else ''}it: Self = unsafe {{ zeroed() }};{sized}
        it
    }}
}}
""")
    return "\n".join(lines)


def function_doc(function, indent):
    return doc(f"{function['doc']} MT_{function['mt']}. Since {function.get('since', '1.0')}.",
               indent)


def table_text(spec):
    out = [doc("All functions, as `optima_get_api` gives them. The table only ever grows at the "
               "end; `struct_size` says how far the library's own goes."),
           "#[repr(C)]", "pub struct optima_api_v1 {",
           "    /// Bytes of the library's table.", "    pub struct_size: u32,",
           "    /// Major version of the ABI.", "    pub abi: u32,"]
    for function in spec.functions:
        short = function["name"][len("optima_"):]
        out += [function_doc(function, "    "),
                signature(f"pub {short}: unsafe extern \"C\" fn", function, ",", "    ")]
    return "\n".join(out + ["}"])


def linked_text(spec):
    out = ["// The same functions, linked when the program is built (feature `link`).",
           "#[cfg(feature = \"link\")]", "#[link(name = \"sitsoptima\")]", "extern \"C\" {"]
    for function in spec.functions:
        out.append(signature(f"pub fn {function['name']}", function, ";", "    "))
    return "\n".join(out + ["}"])


def raw_text(spec):
    parts = [PROLOGUE.format(note=NOTE, release=spec.version["release"], abi=spec.version["abi"]),
             constants_text(spec), handles_text(spec), callbacks_text(spec)]
    parts += [struct_text(struct) for struct in spec.structs]
    parts += [table_text(spec) + "\n", linked_text(spec)]
    return "\n".join(parts) + "\n"


LAYOUT_PROLOGUE = """\
// {note}
//! Sizes and offsets of every struct on LP64 targets, as the C compiler has them.
use optima::raw::*;
use std::mem::{{size_of, MaybeUninit}};
use std::ptr::addr_of;

macro_rules! at {{
    ($type:ty, $field:ident, $offset:expr) => {{
        let place = MaybeUninit::<$type>::uninit();
        let start = place.as_ptr();
        // SAFETY: the address of a field is made without reading it, inside of `place`.
        let field = unsafe {{ addr_of!((*start).$field) }};
        let found = field as usize - start as usize;
        assert_eq!(found, $offset, "{{}}.{{}}", stringify!($type), stringify!($field));
    }};
}}

"""


def layout_text(spec):
    out = [LAYOUT_PROLOGUE.format(note=NOTE)]
    tables = [(struct["name"], *spec.layout(struct)) for struct in spec.structs]
    rows = [("struct_size", 0), ("abi", 4)]
    rows += [(f["name"][len("optima_"):], 8 + 8 * i) for i, f in enumerate(spec.functions)]
    tables.append(("optima_api_v1", rows, 8 + 8 * len(spec.functions)))
    for name, rows, size in tables:
        out += ["#[test]", f"fn {name}_is_laid_out_as_in_c() {{",
                f"    assert_eq!(size_of::<{name}>(), {size});"]
        out += [f"    at!({name}, {RESERVED.get(field, field)}, {offset});"
                for field, offset in rows]
        out += ["}", ""]
    return "\n".join(out).rstrip("\n") + "\n"


OUTPUTS = {"bindings/rust/src/raw.rs": raw_text, "bindings/rust/tests/layout.rs": layout_text}
