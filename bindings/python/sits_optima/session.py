"""One conversation: a sequence of tokens and their KV."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from sits_optima import _raw
from sits_optima._fill import fill, make
from sits_optima._handle import Handle
from sits_optima._library import call, library
from sits_optima._request import (Prompt, Request, Stream, run_blocking, run_with_callback)
from sits_optima.engine import fields_of
from sits_optima.result import Event, Result

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Unpack

    from sits_optima.model import Model
    from sits_optima.options import RequestOptions

OnEvent = Callable[[Event], object]


class Session(Handle):
    """Made by Model.session. Runs one request at a time (Busy otherwise); what a prompt shares with
    the session's tokens is not computed again. Give `append=True` to continue behind them."""

    _destroy = "optima_session_destroy"

    def __init__(self, model: Model, pointer: ctypes.c_void_p) -> None:
        super().__init__(pointer)
        self.model = model

    def generate(self, prompt: Prompt, *, on_event: OnEvent | None = None,
                 **options: Unpack[RequestOptions]) -> Result:
        """Runs a request to its end. The prompt is text, or token ids. on_event is called on this
        thread for every event and may return a Verdict; what it raises ends the request, leaves
        the session as before it, and is raised here. An interrupt (Ctrl-C) cancels."""
        request = Request(self, prompt, options)
        if on_event is not None:
            return run_with_callback(self, request, on_event)
        return run_blocking(self, request)

    def stream(self, prompt: Prompt, **options: Unpack[RequestOptions]) -> Stream:
        """Iterates over the output as it comes: `for event in session.stream(...): event.text`."""
        return Stream(self, Request(self, prompt, options))

    def chat(self, messages: Sequence[Mapping[str, Any]], *,
             tools: Sequence[Mapping[str, Any]] | None = None, on_event: OnEvent | None = None,
             **options: Unpack[RequestOptions]) -> Result:
        """generate() with the whole conversation, written by the model's chat template."""
        prompt = self.model.render(messages, tools=tools)
        return self.generate(prompt, on_event=on_event, no_add_special=True, **options)

    def stream_chat(self, messages: Sequence[Mapping[str, Any]], *,
                    tools: Sequence[Mapping[str, Any]] | None = None,
                    **options: Unpack[RequestOptions]) -> Stream:
        """stream() with the whole conversation, written by the model's chat template."""
        prompt = self.model.render(messages, tools=tools)
        return self.stream(prompt, no_add_special=True, **options)

    def logits(self, prompt: Prompt, **options: Unpack[RequestOptions]) -> numpy.ndarray:
        """Row i is what the model says after the prompt's token i: float32 [tokens, vocabulary]."""
        ids = self.model.tokenize(prompt) if isinstance(prompt, (str, bytes)) else list(prompt)
        positions = range(len(ids))
        return self.generate(ids, prompt_only=True, logits_positions=positions, **options).logits

    def embed(self, prompt: Prompt, **options: Unpack[RequestOptions]) -> Result:
        """In a session with output="embedding": a result with the prompt's embedding."""
        return run_blocking(self, Request(self, prompt, options))

    @property
    def context_tokens(self) -> int:
        """Most tokens it holds."""
        with self._use() as pointer:
            return library().optima_session_context_tokens(pointer)

    @property
    def tokens(self) -> list[int]:
        """The tokens it holds, as of the last finished step."""
        out = ctypes.c_void_p()
        with self._use() as pointer:
            call("optima_session_tokens", pointer, ctypes.byref(out))
        return take_ids(out)

    @property
    def kv(self) -> Mapping[str, int]:
        """What it holds of KV, by the names of optima_session_kv."""
        out = make(_raw.SessionKv)
        with self._use() as pointer:
            call("optima_session_kv_query", pointer, ctypes.byref(out))
        return fields_of(out)

    def reset(self) -> None:
        """Forgets all tokens and gives their memory back."""
        with self._use() as pointer:
            call("optima_session_reset", pointer)

    def truncate(self, tokens: int) -> None:
        """Keeps the first `tokens` tokens."""
        with self._use() as pointer:
            call("optima_session_truncate", pointer, tokens)

    def fork(self) -> Session:
        """Another session with the same tokens; memory is shared until one of them writes on."""
        out = ctypes.c_void_p()
        with self._use() as pointer:
            call("optima_session_fork", pointer, ctypes.byref(out))
        return Session(self.model, out)

    def save(self, to: str | os.PathLike[str] | IO[bytes]) -> None:
        """Writes tokens and KV for Model.restore, into a file (whole or not at all), or to an
        object with write()."""
        if hasattr(to, "write"):
            return self._save_to(to.write)
        path = os.fsencode(to)
        with self._use() as pointer:
            call("optima_session_save_path", pointer, path, len(path))

    def _save_to(self, write: Callable[[bytes], object]) -> None:
        failure: list[BaseException] = []

        def put(_user: int, data: int, count: int) -> int:
            try:
                write(ctypes.string_at(data, count))
            except BaseException as error:  # pylint: disable=broad-except; raised below
                failure.append(error)
                return 1
            return 0

        try:
            with self._use() as pointer:
                call("optima_session_save", pointer, _raw.WriteFn(put), None)
        except Exception:
            if failure:
                raise failure[0] from None
            raise


def session_struct(options: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """optima_session_options, and what must live as long as the call that takes it."""
    given = dict(options)
    draft = given.pop("draft_model", None)
    struct = make(_raw.SessionOptions)
    keep = fill(struct, given)
    if draft is not None:
        struct.draft_model = draft._pointer
        keep.append(draft)
    return struct, keep


def take_ids(buffer: ctypes.c_void_p) -> list[int]:
    """The ids of a buffer, which is destroyed."""
    try:
        count = ctypes.c_int64()
        ids = library().optima_buffer_ids(buffer, ctypes.byref(count))
        return ids[:count.value] if count.value else []
    finally:
        library().optima_buffer_destroy(buffer)
