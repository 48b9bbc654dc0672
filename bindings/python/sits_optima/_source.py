"""Where a model's bytes come from."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import IO, Any

from sits_optima import _raw
from sits_optima._fill import make
from sits_optima._library import call


class Source:
    """One of them. What a callback raises while the library reads is raised by the open call."""

    def __init__(self) -> None:
        self._failure: BaseException | None = None

    def guard(self, function: Callable[..., object]) -> Callable[..., int]:
        """A C callback: 0 = done, 1 = it raised."""

        def run(_user: int, *arguments: Any) -> int:
            try:
                function(*arguments)
            except BaseException as error:  # pylint: disable=broad-except; raised by the open call
                self._failure = error
                return 1
            return 0

        return run

    def open(self, engine: ctypes.c_void_p, options: _raw.ModelOptions,
             out: ctypes.c_void_p) -> None:
        self._call(self._function, engine, *self._arguments(), ctypes.byref(options),
                   ctypes.byref(out))

    _function: str

    def _arguments(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _call(self, function: str, *arguments: Any) -> None:
        try:
            call(function, *arguments)
        except Exception:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure from None
            raise


class PathSource(Source):
    _function = "optima_model_open_path"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = os.fsencode(path)

    def _arguments(self) -> tuple[Any, ...]:
        return self._path, len(self._path)


class BytesSource(Source):
    _function = "optima_model_open_memory"

    def __init__(self, data: Any) -> None:
        super().__init__()
        import numpy
        self._bytes = numpy.frombuffer(data, numpy.uint8)  # keeps the buffer

    def _arguments(self) -> tuple[Any, ...]:
        return self._bytes.ctypes.data, self._bytes.size


class ReaderSource(Source):
    """An object with seek() and readinto()."""

    _function = "optima_model_open_io"

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._io = make(_raw.Io)
        self._io.length = file.seek(0, os.SEEK_END)
        self._io.read = _raw.ReadFn(self.guard(self._read))

    def _arguments(self) -> tuple[Any, ...]:
        return (ctypes.byref(self._io),)

    def _read(self, into: int, offset: int, count: int) -> None:
        view = view_of(into, count)
        self._file.seek(offset)
        done = 0
        while done < count:
            read = self._file.readinto(view[done:])
            if not read:
                raise EOFError(f"the file ends at byte {offset + done} of {self._io.length}")
            done += read

    def restore(self, model: ctypes.c_void_p, options: _raw.SessionOptions,
                out: ctypes.c_void_p) -> None:
        self._call("optima_session_restore", model, ctypes.byref(options), ctypes.byref(self._io),
                   ctypes.byref(out))


class FolderSource(Source):
    """Files of a Hugging Face folder: their lengths, and a function that fills views from them."""

    _function = "optima_model_open_folder"

    def __init__(self, lengths: Mapping[str, int],
                 read: Callable[[str, int, memoryview], object]) -> None:
        super().__init__()
        names = list(lengths)
        self._folder = make(_raw.Folder)
        self._folder.names = (ctypes.c_char_p * len(names))(*map(os.fsencode, names))
        self._folder.lengths = (ctypes.c_int64 * len(names))(*lengths.values())
        self._folder.file_count = len(names)

        def fill(file: int, into: int, offset: int, count: int) -> None:
            read(names[file], offset, view_of(into, count))

        self._folder.read = _raw.ReadFileFn(self.guard(fill))

    def _arguments(self) -> tuple[Any, ...]:
        return (ctypes.byref(self._folder),)


def view_of(address: int, count: int) -> memoryview:
    """Memory of the library, to be written to during a callback."""
    return memoryview((ctypes.c_char * count).from_address(address)).cast("B")
