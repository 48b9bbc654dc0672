"""SITS-Optima: language models inside your process.

    from sits_optima import Model
    model = Model("model.gguf")
    for event in model.stream("The capital of France is", max_tokens=24):
        print(event.text, end="", flush=True)

Options of calls are the fields of the C structs (sits_optima.options). No call holds the GIL while
the library works.
"""
from sits_optima._cancel import Cancel
from sits_optima._enable import Enabled, enable_optima
from sits_optima._library import load, version
from sits_optima._raw import (CacheMiss, Content, Drive, EventType, Finish, Grammar, KvType,
                              LogLevel, MetadataKind, Normalise, Output, Path, Pooling, Repack,
                              Status, TokenKind, Verdict, Weights)
from sits_optima._request import Stream
from sits_optima.engine import Engine
from sits_optima.errors import (ArgumentError, Busy, Cancelled, ContextFull, DeadlineExceeded,
                                DeviceLost, DeviceNotFound, Forked, FormatError, InputOutputError,
                                InternalError, LibraryNotFound, OptimaError, OutOfDeviceMemory,
                                OutOfMemory, StateError, Unfinished, Unsupported, VersionMismatch)
from sits_optima.model import Model
from sits_optima.result import Counters, Event, Result, TokenLogprob
from sits_optima.session import Session

__all__ = [name for name in dir() if not name.startswith("_") and name not in (
    "annotations", "engine", "errors", "model", "options", "result", "session")]
