"""What requests tell and produce."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sits_optima import _raw
from sits_optima._fill import make
from sits_optima._handle import Handle
from sits_optima._library import call, library
from sits_optima._raw import CacheMiss, EventType, Finish, Status

if TYPE_CHECKING:
    import numpy


class TokenLogprob(NamedTuple):
    """A token and the natural logarithm of its probability."""

    token: int
    logprob: float


class Event(NamedTuple):
    """Something that happened to a request."""

    type: EventType
    text: str  # that became complete: whole code points, may be empty
    bytes: bytes  # exactly the token's, may be an incomplete code point
    token: int  # id, -1 for other types
    logprob: float
    index: int  # of the token in the output
    top: tuple[TokenLogprob, ...]  # as many as `logprobs` asked, best first
    tokens_done: int  # prompt tokens processed
    tokens_total: int  # prompt tokens in all
    finish: Finish  # why it ended (EventType.DONE)
    status: Status  # of a request that failed (EventType.DONE)


_EVENT_TYPES = {int(kind): kind for kind in EventType}
_FINISHES = {int(reason): reason for reason in Finish}
_STATUSES = {int(status): status for status in Status}


def event_of(raw: _raw.Event) -> Event:
    """A copy: the library's event may go. Runs for every token."""
    text, data = raw.text, raw.bytes
    if len(text) != raw.text_bytes or len(data) != raw.bytes_count:
        text = _with_zeros(raw, _raw.Event.text.offset, raw.text_bytes)
        data = _with_zeros(raw, _raw.Event.bytes.offset, raw.bytes_count)
    kind, finish, status = raw.type, raw.finish, raw.status
    return tuple.__new__(Event, (
        _EVENT_TYPES.get(kind, kind), text.decode(), data, raw.token, raw.logprob, raw.index,
        _top_of(raw) if raw.top_count else (), raw.tokens_done, raw.tokens_total,
        _FINISHES.get(finish, finish), _STATUSES.get(status, status)))


def _top_of(raw: _raw.Event) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(raw.top[i].token, raw.top[i].logprob) for i in range(raw.top_count))


def _with_zeros(raw: _raw.Event, offset: int, count: int) -> bytes:
    """Text with NUL in it, at which ctypes ends what it gives."""
    address = ctypes.c_void_p.from_address(ctypes.addressof(raw) + offset).value
    return ctypes.string_at(address, count) if address else b""


class Counters(NamedTuple):
    """What a request cost. Times in nanoseconds from its submission."""

    prompt_tokens: int
    cached_tokens: int  # of them, not computed again
    output_tokens: int
    queue_ns: int
    prefill_ns: int
    decode_ns: int
    first_token_ns: int
    weight_bytes_read: int
    kv_bytes_read: int
    draft_tokens: int
    draft_tokens_accepted: int
    shifted_tokens: int
    cache_miss: CacheMiss  # why cached_tokens is 0


class Result(Handle):
    """What a finished request produced. Immutable."""

    _destroy = "optima_result_destroy"

    def __init__(self, pointer: ctypes.c_void_p, logits: numpy.ndarray | None = None) -> None:
        super().__init__(pointer)
        # The rows of logits_positions, [positions, vocabulary]; None when none were asked for.
        self.logits = logits

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """Whole code points, without the stop string."""
        return self._string("optima_result_text").decode()

    @property
    def output_bytes(self) -> bytes:
        """The bytes of the output's tokens, as they are."""
        return self._string("optima_result_bytes")

    @property
    def prompt_ids(self) -> list[int]:
        return self._numbers("optima_result_prompt_ids")

    @property
    def token_ids(self) -> list[int]:
        return self._numbers("optima_result_token_ids")

    @property
    def logprobs(self) -> list[float]:
        """Natural logarithm of each output token's probability."""
        return self._numbers("optima_result_logprobs")

    @property
    def prompt_logprobs(self) -> list[float]:
        """Of each prompt token from max(prompt_logprobs_from, 1) on."""
        return self._numbers("optima_result_prompt_logprobs")

    def top_logprobs(self, index: int) -> list[TokenLogprob]:
        """Most probable tokens at output index `index`, best first."""
        with self._use() as pointer:
            count = ctypes.c_int64()
            rows = library().optima_result_top_logprobs(pointer, index, ctypes.byref(count))
            return [TokenLogprob(rows[i].token, rows[i].logprob) for i in range(count.value)]

    @property
    def embedding(self) -> numpy.ndarray | None:
        """Of a session for embeddings; None otherwise."""
        with self._use() as pointer:
            return floats(lambda count: library().optima_result_embedding(pointer, count))

    @property
    def finish(self) -> Finish:
        with self._use() as pointer:
            reason = library().optima_result_finish(pointer)
            return _FINISHES.get(reason, reason)

    @property
    def stop_index(self) -> int:
        """Which of `stops` ended it, -1 = none."""
        with self._use() as pointer:
            return library().optima_result_stop_index(pointer)

    @property
    def counters(self) -> Counters:
        with self._use() as pointer:
            out = make(_raw.Counters)
            call("optima_result_counters", pointer, ctypes.byref(out))
            names = Counters._fields[:-1]
            return Counters(*(getattr(out, name) for name in names), CacheMiss(out.cache_miss))

    def _string(self, function: str) -> bytes:
        with self._use() as pointer:
            count = ctypes.c_int64()
            data = getattr(library(), function)(pointer, ctypes.byref(count))
            return ctypes.string_at(data, count.value) if data else b""

    def _numbers(self, function: str) -> list:
        with self._use() as pointer:
            count = ctypes.c_int64()
            numbers = getattr(library(), function)(pointer, ctypes.byref(count))
            return numbers[:count.value] if numbers else []


def floats(read: Callable) -> numpy.ndarray | None:
    """A copy of floats that the library owns; `read` takes where their number goes."""
    import numpy
    count = ctypes.c_int64()
    data = read(ctypes.byref(count))
    if not data:
        return None
    return numpy.ctypeslib.as_array(data, (count.value,)).copy()
