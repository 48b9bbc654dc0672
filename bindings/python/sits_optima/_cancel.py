"""A latch that stops requests."""
from __future__ import annotations

import ctypes

from sits_optima._handle import Handle
from sits_optima._library import call, library


class Cancel(Handle):
    """Stops every request that was given it (`cancel=`), from any thread, now and later: before its
    start, in the prompt and in the output. The call then raises Cancelled, with what there is."""

    _destroy = "optima_cancel_destroy"

    def __init__(self) -> None:
        pointer = ctypes.c_void_p()
        call("optima_cancel_create", ctypes.byref(pointer))
        super().__init__(pointer)

    def cancel(self) -> None:
        with self._use() as pointer:
            library().optima_cancel_trigger(pointer)

    @property
    def cancelled(self) -> bool:
        with self._use() as pointer:
            return library().optima_cancel_triggered(pointer) == 1
