"""Threads and memory that models share."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sits_optima import _raw
from sits_optima._events import Events
from sits_optima._fill import fill, make
from sits_optima._handle import Handle
from sits_optima._library import call, library
from sits_optima._raw import Drive, LogLevel

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sits_optima.options import EngineOptions


class Engine(Handle):
    """Owns threads and memory, and runs the requests of its models. A Model without one makes its
    own; give several models one engine for one memory budget and one set of threads."""

    _destroy = "optima_engine_destroy"

    def __init__(self, **options: Unpack[EngineOptions]) -> None:
        given: dict[str, Any] = dict(options)
        cpus = given.pop("affinity", None)
        log = given.pop("log", None)
        struct = make(_raw.EngineOptions)
        keep = fill(struct, given)
        if cpus is not None:
            keep += fill(struct, {"affinity": _mask_words(cpus)})
        self._log = None if log is None else _raw.LogFn(_logger(log))
        if self._log is not None:
            struct.log = self._log
        self.host_drives = struct.drive == Drive.HOST
        self._events = Events()
        self._callbacks: set[int] = set()  # threads that are inside an on_event
        pointer = ctypes.c_void_p()
        call("optima_engine_create", ctypes.byref(struct), ctypes.byref(pointer))
        super().__init__(pointer)

    @property
    def threads(self) -> int:
        """Threads that compute."""
        with self._use() as pointer:
            return library().optima_engine_threads(pointer)

    @property
    def memory(self) -> Mapping[str, int]:
        """Bytes, by the names of optima_memory."""
        return self._query("optima_mem_query", _raw.Memory)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """What the engine does and has done, by the names of optima_metrics."""
        return self._query("optima_metrics_query", _raw.Metrics)

    def step(self) -> bool:
        """With drive="host": one turn of the engine on this thread. False = nothing to do."""
        with self._use() as pointer:
            return self._step(pointer)

    def _step(self, pointer: ctypes.c_void_p) -> bool:
        worked = ctypes.c_int32()
        call("optima_step", pointer, ctypes.byref(worked))
        return worked.value != 0

    def _query(self, function: str, struct: type[ctypes.Structure]) -> dict[str, Any]:
        out = make(struct)
        with self._use() as pointer:
            call(function, pointer, ctypes.byref(out))
        return fields_of(out)

    def _refuse_in_callback(self) -> None:
        """BUSY, by the library, on a thread that is inside a callback of this engine."""
        if threading.get_ident() in self._callbacks:
            event, count = _raw.Event(), ctypes.c_size_t()
            with self._use() as pointer:
                call("optima_poll", pointer, ctypes.byref(event), 1, ctypes.sizeof(event), 0,
                     ctypes.byref(count))


def fields_of(out: Any) -> dict[str, Any]:
    return {name: getattr(out, name) for name, *_ in out._fields_
            if name != "struct_size" and not name.startswith("reserved")}


def _mask_words(cpus: Any) -> list[int]:
    words = [0] * (max(cpus, default=0) // 64 + 1)
    for cpu in cpus:
        words[cpu // 64] |= 1 << cpu % 64
    return words


def _logger(log: Callable[[LogLevel, str], object]) -> Callable[..., None]:
    def write(_user: int, level: int, message: bytes, _count: int) -> None:
        try:
            log(LogLevel(level), message.decode("utf-8", "replace"))
        except Exception:  # pylint: disable=broad-except; a log must not fail what it tells of
            pass
    return write
