"""What goes wrong, as exceptions with the library's numbers."""
from __future__ import annotations

from typing import TYPE_CHECKING

from sits_optima._raw import Status

if TYPE_CHECKING:
    from sits_optima.result import Result


class LibraryNotFound(ImportError):
    """The shared library is missing or cannot be loaded; the message names what was looked for."""


class OptimaError(Exception):
    """A call failed. Numbers are None where they do not apply; the message says their unit."""

    status: Status = Status.E_INTERNAL
    wanted: int | None = None
    available: int | None = None
    limit: int | None = None


class ArgumentError(OptimaError, ValueError):
    """An argument is wrong: out of range, of the wrong kind."""

    status = Status.E_ARG


class StateError(OptimaError):
    """The object is not in a state that allows the call, or it is closed."""

    status = Status.E_STATE


class InputOutputError(OptimaError, OSError):
    """Reading or writing failed, or a file is missing."""

    status = Status.E_IO


class FormatError(OptimaError, ValueError):
    """A file is malformed."""

    status = Status.E_FORMAT


class OutOfMemory(OptimaError, MemoryError):
    """Host memory or the engine's limit is exhausted: bytes wanted, available and the limit."""

    status = Status.E_OOM_HOST


class OutOfDeviceMemory(OptimaError, MemoryError):
    """Device memory is exhausted."""

    status = Status.E_OOM_DEVICE


class DeviceLost(OptimaError):
    """The device is gone."""

    status = Status.E_DEVICE_LOST


class Unfinished(OptimaError):
    """A request ended early; `result` is what it produced until then, if it began."""

    result: Result | None = None


class Cancelled(Unfinished):
    """A cancel object, a close or a loading callback stopped the call."""

    status = Status.E_CANCELLED


class DeadlineExceeded(Unfinished, TimeoutError):
    """deadline_ms passed: `limit` is the deadline in ms, `available` the tokens made until then."""

    status = Status.E_DEADLINE


class ContextFull(OptimaError):
    """The prompt does not fit: tokens wanted and the context's limit."""

    status = Status.E_CONTEXT_FULL


class Busy(OptimaError):
    """The session runs another request, the queue is full, or the call came from a callback."""

    status = Status.E_BUSY


class Forked(OptimaError):
    """The object was made in another process."""

    status = Status.E_FORKED


class VersionMismatch(OptimaError):
    """Versions of package, library, model or snapshot do not fit together."""

    status = Status.E_VERSION


class InternalError(OptimaError):
    """A fault of the library."""

    status = Status.E_INTERNAL


class Unsupported(OptimaError, NotImplementedError):
    """Well-formed, but this version cannot do it."""

    status = Status.E_UNSUPPORTED


class DeviceNotFound(Unsupported):
    """A device that was asked for by name is not there; the message names those that are."""


_KINDS = {kind.status: kind for kind in
          (ArgumentError, StateError, InputOutputError, FormatError, OutOfMemory,
           OutOfDeviceMemory, DeviceLost, Cancelled, DeadlineExceeded, ContextFull, Busy, Forked,
           VersionMismatch, InternalError, Unsupported)}


def make_error(status: int, message: str, wanted: int = -1, available: int = -1,
               limit: int = -1) -> OptimaError:
    """The exception of a status; -1 stands for a number that does not apply."""
    kind = _KINDS.get(status)
    error = (kind or OptimaError)(message)
    if kind is None:
        error.status = status  # of a newer library
    error.wanted = None if wanted == -1 else wanted
    error.available = None if available == -1 else available
    error.limit = None if limit == -1 else limit
    return error
