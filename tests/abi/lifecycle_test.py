#!/usr/bin/env python3
"""What the generator makes of the lifecycle of an item, and what it refuses. lifecycle_test.py
SOURCE_DIR"""
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "src/abi"))
import generate  # noqa: E402
from spec import Spec  # noqa: E402

KEPT = generate.FROZEN.read_text().splitlines()
problems = []


def require(holds, what):
    if not holds:
        problems.append(what)


def refused(spec):
    try:
        spec.check_lifecycle()
    except SystemExit:
        return True
    return False


spec = Spec()
require(not generate.undated(spec, KEPT), "today's items are dated")
step = next(row for row in spec.functions if row["name"] == "optima_step")
step["deprecated"] = {"since": "1.1", "use": "optima_poll."}
require(not refused(spec), "a function may be deprecated")
header = " ".join(generate.header_text(spec).replace("\n *", " ").split())
require("from a callback. Since 1.0. Deprecated since 1.1: optima_poll. */" in header,
        "the header says what is deprecated")
require("optima_step (since 1.1: optima_poll.)" in generate.lifecycle_text(spec),
        "ABI.md says what is deprecated")
for change in ({"since": "0.9", "use": "x"}, {"since": "99.0", "use": "x"}, {"since": "1.1"}):
    step["deprecated"] = change
    require(refused(spec), f"deprecated {change} is refused")

spec = Spec()
spec.functions.append(dict(step, name="optima_new"))
require(generate.undated(spec, KEPT) == ["optima_new"], "a new function must say since when")
spec = Spec()
spec.constants[0]["values"].append({"name": "E_NEW", "value": -99, "doc": "New."})
require(generate.undated(spec, KEPT) == ["OPTIMA_E_NEW"], "a new constant must say since when")
spec = Spec()
spec.structs[3]["fields"].append({"name": "new", "type": "int64_t", "doc": "New."})
require(generate.undated(spec, KEPT) == [f"{spec.structs[3]['name']}.new"],
        "a new field must say since when")
spec.functions[0]["since"] = "99.0"
require(refused(spec), "nothing is from a later release")

print("\n".join(problems) or "as ABI.md says")
sys.exit(bool(problems))
