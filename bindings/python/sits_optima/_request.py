"""One request: its C struct, its run, and how it ends."""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Union

from sits_optima import _raw, errors
from sits_optima._cancel import Cancel
from sits_optima._events import POLL_MS
from sits_optima._fill import as_bytes, fill, make
from sits_optima._library import call, library, taken
from sits_optima._raw import EventType, Finish, Status, Verdict
from sits_optima.result import Event, Result, event_of

if TYPE_CHECKING:
    from sits_optima.session import Session

Prompt = Union[str, bytes, Sequence[int]]


class Request:
    """The struct, and what must live as long as the request runs."""

    def __init__(self, session: Session, prompt: Prompt | None, options: Mapping[str, Any]) -> None:
        self.desc = make(_raw.RequestDesc)
        self.logits = None
        self.failure: BaseException | None = None  # what a callback raised
        options = dict(options)
        self.cancel: Cancel | None = options.pop("cancel", None)
        on_logits = options.pop("on_logits", None)
        if prompt is not None:
            self._set_prompt(options, prompt)
        self._keep = fill(self.desc, options)
        if on_logits is not None:
            self._set_on_logits(on_logits)
        if options.get("logits_positions"):
            self._make_logits(session, len(options["logits_positions"]))

    def _set_prompt(self, options: dict[str, Any], prompt: Prompt) -> None:
        if isinstance(prompt, (str, bytes)):
            options["prompt"] = as_bytes(prompt)
        else:
            options["prompt_ids"] = prompt

    def _make_logits(self, session: Session, rows: int) -> None:
        import numpy
        self.logits = numpy.zeros((rows, session.model.info.vocabulary), numpy.float32)
        self.desc.logits_out = self.logits.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self.desc.logits_capacity = self.logits.size

    def _set_on_logits(self, on_logits: Callable[[Any, Any], object]) -> None:
        import numpy

        def change(_user: int, logits: Any, vocabulary: int, tokens: Any, count: int) -> int:
            try:
                seen = numpy.ctypeslib.as_array(tokens, (count,)) if count else numpy.zeros(
                    0, numpy.int32)
                on_logits(numpy.ctypeslib.as_array(logits, (vocabulary,)), seen)
            except BaseException as error:  # pylint: disable=broad-except; raised by the caller
                self.failure = error
                return 1
            return 0

        self.desc.on_logits = _raw.OnLogitsFn(change)

    def use_cancel(self) -> Any:
        """A `with` block in which the cancel object cannot be destroyed."""
        return _CancelUse(self.desc, self.cancel)

    def finished(self, pointer: ctypes.c_void_p, asked: Verdict | None = None) -> Result:
        """The result; a request that was cancelled or late raises, with it."""
        result = Result(pointer, self.logits)
        finish = result.finish
        if self.failure is not None:
            raise self.failure
        if finish == Finish.DEADLINE:
            limit, tokens = self.desc.deadline_ms, len(result.token_ids)
            raise _unfinished(Status.E_DEADLINE, f"the deadline of {limit} ms passed after "
                              f"{tokens} tokens", result, tokens, limit)
        if finish == Finish.CANCELLED and asked != Verdict.CANCEL:
            tokens = len(result.token_ids)
            raise _unfinished(Status.E_CANCELLED, f"cancelled after {tokens} tokens", result,
                              tokens, -1)
        return result

    def drop_callbacks(self) -> None:
        """They refer to this object: without this only a collection would free it."""
        self.desc.on_event, self.desc.on_logits = _raw.OnEventFn(), _raw.OnLogitsFn()

    def raise_failure(self, error: errors.OptimaError) -> None:
        """What a callback raised is the cause of the failure."""
        raise self.failure or error


def _unfinished(status: Status, message: str, result: Result, available: int,
                limit: int) -> errors.Unfinished:
    error = errors.make_error(status, message, -1, available, limit)
    error.result = result
    return error


class _CancelUse:
    def __init__(self, desc: _raw.RequestDesc, cancel: Any) -> None:
        self._desc = desc
        self._use = cancel._use() if cancel is not None else None

    def __enter__(self) -> None:
        if self._use is not None:
            self._desc.cancel = self._use.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._use is not None:
            self._use.__exit__()


class Run:
    """A submitted request, whose events come to an inbox. Until end() neither session nor engine is
    destroyed: close() of one of them cancels the request."""

    # Rounds without an event after which a request that is done is taken to have lost its last
    # one: an interrupt can fall between its arrival and its delivery.
    _ROUNDS_MAX = 20

    def __init__(self, session: Session, request: Request, keeps_events: bool) -> None:
        self._engine = session.model.engine
        self._session = session
        self._request = request
        self._pointer: ctypes.c_void_p | None = None
        self._pid = os.getpid()
        self._engine._refuse_in_callback()
        self._uses = ExitStack()
        with ExitStack() as uses:
            self._engine_pointer = uses.enter_context(self._engine._use())
            session_pointer = uses.enter_context(session._use())
            self.inbox = self._engine._events.open(keeps_events)
            uses.callback(self._engine._events.close, self.inbox)
            request.desc.user = self.inbox.key
            pointer = ctypes.c_void_p()
            with request.use_cancel():
                call("optima_submit", session_pointer, ctypes.byref(request.desc),
                     ctypes.byref(pointer))
            self._pointer = pointer
            self._uses = uses.pop_all()

    def wait(self, timeout_ms: int = POLL_MS) -> None:
        """Returns when there are events, or after about the time given."""
        self._cancel_if_closed()
        if self._engine.host_drives and not self.inbox.done:
            self._engine._step(self._engine_pointer)
            timeout_ms = 0
        self._engine._events.wait(self._engine_pointer, self.inbox, timeout_ms)

    def wait_done(self) -> None:
        """Sleeps until it is done; the events are taken afterwards, all together."""
        done = ctypes.c_int32()
        while not done and not self._engine.host_drives:
            self._cancel_if_closed()
            call("optima_request_wait", self._pointer, POLL_MS, ctypes.byref(done))
        self._take_events()

    def _take_events(self) -> None:
        rounds = 0
        while not self.inbox.done and rounds < self._ROUNDS_MAX:
            if library().optima_request_done(self._pointer):
                rounds += 1
            self.wait()

    def _cancel_if_closed(self) -> None:
        if self._session.closed or self._engine.closed:
            self.cancel()

    def cancel(self) -> None:
        library().optima_request_cancel(self._pointer)

    def result(self) -> Result:
        out, error = ctypes.c_void_p(), ctypes.c_void_p()
        status = library().optima_request_result(self._pointer, ctypes.byref(out),
                                                 ctypes.byref(error))
        if status != 0:
            self._request.raise_failure(taken(status, error))
        return self._request.finished(out)

    def end(self) -> None:
        """Cancels what still runs, takes its last events, and lets go of it."""
        if self._pointer is None:
            return
        try:
            if self._pid == os.getpid():
                self.cancel()
                self._take_events()
        finally:
            pointer, self._pointer = self._pointer, None
            library().optima_request_destroy(pointer)
            self._request.drop_callbacks()
            self._uses.close()


def run_with_callback(session: Session, request: Request,
                      on_event: Callable[[Event], object]) -> Result:
    """optima_generate: the callback is called on this thread, and the next token waits for it."""
    asked: Verdict | None = None
    engine = session.model.engine

    def tell(_user: int, event: Any) -> int:
        nonlocal asked
        engine._callbacks.add(threading.get_ident())
        try:
            if session.closed or engine.closed:
                return Verdict.CANCEL
            verdict = on_event(event_of(event.contents))
            if isinstance(verdict, int) and verdict != Verdict.CONTINUE:
                asked = Verdict(verdict)
                return asked
            return Verdict.CONTINUE
        except BaseException as error:  # pylint: disable=broad-except; raised by the caller
            request.failure = request.failure or error
            return Verdict.CANCEL
        finally:
            engine._callbacks.discard(threading.get_ident())

    request.desc.on_event = _raw.OnEventFn(tell)
    out = ctypes.c_void_p()
    try:
        with session._use() as pointer, request.use_cancel():
            call("optima_generate", pointer, ctypes.byref(request.desc), ctypes.byref(out))
    except errors.OptimaError as error:
        request.raise_failure(error)
    finally:
        request.drop_callbacks()
    return request.finished(out, asked)


def run_blocking(session: Session, request: Request) -> Result:
    run = Run(session, request, keeps_events=False)
    try:
        run.wait_done()
        return run.result()
    finally:
        run.end()


def call_interruptibly(session: Session, request: Request, function: str,
                       *arguments: Any) -> None:
    """A blocking function of a session and a request, on another thread, so that this one sees an
    interrupt and a close; both cancel."""
    session.model.engine._refuse_in_callback()
    failure: list[BaseException] = []

    def run() -> None:
        try:
            call(function, pointer, ctypes.byref(request.desc), *arguments)
        except BaseException as error:  # pylint: disable=broad-except; raised below
            failure.append(error)

    theirs = request.cancel
    with session._use() as pointer, Cancel() as cancel, cancel._use() as latch:
        request.desc.cancel = latch
        if theirs is not None and theirs.cancelled:
            cancel.cancel()
        thread = threading.Thread(target=run, name="sits_optima")
        thread.start()
        try:
            while thread.is_alive():
                thread.join(POLL_MS / 1000)
                if session.closed or (theirs is not None and theirs.cancelled):
                    cancel.cancel()
        finally:
            if thread.is_alive():
                cancel.cancel()
                thread.join()
    if failure:
        raise failure[0]


class Stream:
    """Iterates over a request's events as they come: one for each output token, and a last one when
    text was held back. Leaving the loop cancels the request; the session keeps the tokens so far,
    which may be more than were taken. `result` is there at the end."""

    def __init__(self, session: Session, request: Request,
                 after: Callable[[], None] | None = None) -> None:
        self.result: Result | None = None
        self._after = after
        self._run: Run | None = None
        try:
            self._run = Run(session, request, keeps_events=True)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Event:
        run = self._run
        if run is None:
            raise StopIteration
        events = run.inbox.events
        try:
            while True:
                while not events and not run.inbox.done:
                    run.wait()
                if not events:
                    break
                event = events.popleft()
                if event.type == EventType.TOKEN or event.text:
                    return event
            self.result = run.result()
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Cancels the request if it still runs, and waits for its end: a chunk at the most."""
        run, self._run = self._run, None
        after, self._after = self._after, None
        try:
            if run is not None:
                run.end()
        finally:
            if after is not None:
                after()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_run", None) is not None:
            self.close()
