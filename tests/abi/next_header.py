#!/usr/bin/env python3
"""The header that a next release could have: today's with one more field at the end of the engine
options and of the event, and one more function. next_header.py SOURCE_DIR OUTPUT_FOLDER writes
optima.h and next.map, the version script of a library that has the function."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "src/abi"))
import generate  # noqa: E402
from spec import Spec  # noqa: E402

spec = Spec()
major, minor = spec.version["release"].split(".")[:2]
node = f"{major}.{int(minor) + 1}"
for struct in spec.structs:
    if struct["name"] in ("optima_engine_options", "optima_event"):
        struct["fields"].append({"name": "next_option", "type": "int64_t", "since": node,
                                 "doc": "0 = as before."})
spec.functions.append({"name": "optima_next_call", "returns": "int32_t", "params": [], "mt": "SAFE",
                       "since": node, "doc": "1."})
folder = pathlib.Path(sys.argv[2])
(folder / "optima.h").write_text(generate.header_text(spec))
(folder / "next.map").write_text(f"OPTIMA_{node} {{ global: optima_next_call; }};\n")
