"""Keyword options -> fields of C structs."""
from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sits_optima import _raw, errors


def make(struct: type[ctypes.Structure]) -> Any:
    out = struct()
    out.struct_size = ctypes.sizeof(struct)
    return out


def fill(out: Any, options: Mapping[str, Any]) -> list[Any]:
    """Sets the fields, and returns what must live as long as the struct. None = not given."""
    kind = type(out)
    fields = dict(kind._fields_)
    flags = {} if kind._flags_ is None else {flag.name.lower(): flag for flag in kind._flags_}
    keep: list[Any] = []
    for name, value in options.items():
        if value is None:
            continue
        if name in flags:
            out.flags |= flags[name] if value else 0
        elif name in kind._enums_:
            setattr(out, name, constant(kind._enums_[name], value))
        elif name in kind._texts_:
            _set_text(out, name, value)
        elif name in kind._lists_:
            keep.append(_set_list(out, name, value))
        elif fields.get(name) in _NUMBERS:
            _set_number(out, name, value)
        else:
            raise TypeError(f"there is no option {name!r}")
    return keep


_NUMBERS = (ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_size_t,
            ctypes.c_float, ctypes.c_double)


def _set_number(out: Any, name: str, value: Any) -> None:
    setattr(out, name, value)
    kept = getattr(out, name)
    if isinstance(kept, int) and kept != value:  # ctypes drops the upper bits
        raise errors.ArgumentError(f"{name} is {value}, which the field cannot hold")


def constant(kind: type[Any], value: Any) -> int:
    if not isinstance(value, str):
        return kind(value)
    try:
        return kind[value.upper()]
    except KeyError:
        names = ", ".join(member.name.lower() for member in kind)
        raise errors.ArgumentError(f"{value!r} is none of {names}") from None


def as_bytes(text: str | bytes | Mapping[str, Any] | Sequence[Any]) -> bytes:
    """Text as UTF-8; lists and dicts as JSON."""
    if isinstance(text, bytes):
        return text
    return (text if isinstance(text, str) else json.dumps(text)).encode("utf-8", "surrogateescape")


def _set_text(out: Any, name: str, value: Any) -> None:
    data = as_bytes(value)
    setattr(out, name, data)
    setattr(out, type(out)._texts_[name], len(data))


def _set_list(out: Any, name: str, value: Any) -> Any:
    item = dict(type(out)._fields_)[name]._type_
    if item is ctypes.c_char_p:
        return _set_strings(out, name, value)
    if item is _raw.LogitBias:
        values = [_raw.LogitBias(token, bias) for token, bias in value.items()]
    else:
        values = [int(number) for number in value]
    array = (item * len(values))(*values)
    setattr(out, name, array)
    setattr(out, type(out)._lists_[name], len(values))
    return array


def _set_strings(out: Any, name: str, value: Sequence[str | bytes]) -> Any:
    if isinstance(value, (str, bytes)):
        value = [value]
    texts = [as_bytes(text) for text in value]
    array = (ctypes.c_char_p * len(texts))(*texts)
    lengths = (ctypes.c_size_t * len(texts))(*map(len, texts))
    setattr(out, name, array)
    setattr(out, type(out)._lists_[name], len(texts))
    out.stop_bytes = lengths
    return array, lengths
