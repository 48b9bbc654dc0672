"""Objects of the library that Python holds."""
from __future__ import annotations

import ctypes
import threading

from sits_optima import errors
from sits_optima._library import library


class Handle:
    """Destroyed by close(), by leaving a `with` block, or when nothing refers to it. Any order of
    closing is right. close() while a call of another thread uses the object ends that call's
    request, and the call destroys the object when it returns."""

    _destroy: str

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self._pointer = pointer
        self._lock = threading.Lock()
        self._users = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pointer = self._take()
        self._free(pointer)

    def _take(self) -> ctypes.c_void_p | None:
        """The pointer, once, when nobody uses it any more. Called under the lock."""
        if not self._closed or self._users > 0:
            return None
        pointer, self._pointer = self._pointer, None
        return pointer

    def _free(self, pointer: ctypes.c_void_p | None) -> None:
        if pointer:
            getattr(library(), self._destroy)(pointer)

    def _use(self) -> _Use:
        """`with handle._use() as pointer:` keeps the object from being destroyed meanwhile."""
        return _Use(self)

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        # A constructor that failed leaves no lock; at the end of the process modules may be gone.
        if getattr(self, "_lock", None) is not None and getattr(self, "_pointer", None):
            try:
                self.close()
            except (AttributeError, TypeError):
                pass


class _Use:
    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> ctypes.c_void_p:
        handle = self._handle
        with handle._lock:
            if handle._closed:
                raise errors.StateError(f"the {type(handle).__name__.lower()} is closed")
            handle._users += 1
            return handle._pointer

    def __exit__(self, *exception: object) -> None:
        handle = self._handle
        with handle._lock:
            handle._users -= 1
            pointer = handle._take()
        handle._free(pointer)
