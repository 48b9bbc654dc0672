"""Finds the shared library, and calls it with errors as exceptions."""
from __future__ import annotations

import ctypes
import os
import pathlib
import threading

from sits_optima import _raw, errors

FILE_NAME = "libsitsoptima.so.1"
INSIDE = pathlib.Path(__file__).resolve().parent / "lib"

_lock = threading.Lock()
_loaded: ctypes.CDLL | None = None
_loaded_from: pathlib.Path | None = None


def load(path: str | os.PathLike[str] | None = None) -> str:
    """Loads the library from a file, or from a folder that holds it; without a path the one inside
    the package. Returns the file's path. Once for a process: the first use of the package loads the
    one inside, and another path afterwards is a StateError."""
    global _loaded, _loaded_from
    file = pathlib.Path(path) if path is not None else INSIDE
    if file.is_dir() or path is None:
        file = file / FILE_NAME
    file = file.absolute()
    with _lock:
        if _loaded is not None and path is not None and not _same(file, _loaded_from):
            raise errors.StateError(f"{_loaded_from} is loaded already, {file} cannot be")
        if _loaded is None:
            _loaded, _loaded_from = _open(file, inside=path is None), file
        return str(_loaded_from)


def _same(file: pathlib.Path, other: pathlib.Path) -> bool:
    return file == other or (file.exists() and other.exists() and file.samefile(other))


def _open(file: pathlib.Path, inside: bool) -> ctypes.CDLL:
    place = "the package's own" if inside else "given to sits_optima.load"
    if not file.exists():
        hint = "; sits_optima.load(path) takes another" if inside else ""
        raise errors.LibraryNotFound(
            f"SITS-Optima's library {file.name} was not found: looked for {file} ({place}){hint}")
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise errors.LibraryNotFound(
            f"SITS-Optima's library {file} ({place}) cannot be loaded: {error}") from None
    bind(library, str(file))
    return library


def bind(library: ctypes.CDLL, name: str) -> None:
    """Gives every function its types; VersionMismatch where one is missing."""
    for function, (result, parameters) in _raw.FUNCTIONS.items():
        try:
            bound = getattr(library, function)
        except AttributeError:
            raise errors.VersionMismatch(_too_old(library, name, function)) from None
        bound.restype, bound.argtypes = result, parameters


def _too_old(library: ctypes.CDLL, name: str, function: str) -> str:
    release = "no release of it"
    if hasattr(library, "optima_version"):
        library.optima_version.restype = ctypes.c_char_p
        release = library.optima_version().decode()
    return (f"{name} is {release} and lacks {function}: this package needs "
            f"{_raw.RELEASE} or later")


def library() -> ctypes.CDLL:
    if _loaded is None:
        load()
    return _loaded


def call(function: str, *arguments: object) -> None:
    """Calls a function that returns a status and takes `err` last; a failure is raised."""
    error = ctypes.c_void_p()
    status = getattr(library(), function)(*arguments, ctypes.byref(error))
    if status != 0:
        raise taken(status, error)


def taken(status: int, error: ctypes.c_void_p) -> errors.OptimaError:
    """The exception of an error object, which is destroyed."""
    functions = library()
    if not error:
        return errors.make_error(status, functions.optima_status_name(status).decode())
    try:
        return errors.make_error(status, functions.optima_error_message(error).decode(),
                                 functions.optima_error_wanted(error),
                                 functions.optima_error_available(error),
                                 functions.optima_error_limit(error))
    finally:
        functions.optima_error_destroy(error)


def version() -> str:
    """Release of the library, such as "1.1.0"."""
    return library().optima_version().decode()
