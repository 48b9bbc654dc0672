"""Events of an engine to those who wait for them.

optima_poll gives the events of all requests of an engine. Whoever waits first polls for all, and
puts what is others' into their inboxes. A wait ends after POLL_MS at the latest, so that Python
sees an interrupt.
"""
from __future__ import annotations

import ctypes
import itertools
import threading
from collections import deque

from sits_optima import _raw
from sits_optima._library import call, library
from sits_optima.result import Event, event_of

POLL_MS = 50
_CAPACITY = 64


class Inbox:
    def __init__(self, key: int, keeps_events: bool) -> None:
        self.key = key  # the request's `user`
        self.events: deque[Event] = deque()
        self.done = False
        self._keeps_events = keeps_events

    def put(self, raw: _raw.Event) -> None:
        if self._keeps_events:
            self.events.append(event_of(raw))
        if raw.type == _raw.EventType.DONE:
            self.done = True


class Events:
    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._polling = False
        self._keys = itertools.count(1)
        self._inboxes: dict[int, Inbox] = {}
        self._raw = (_raw.Event * _CAPACITY)()

    def open(self, keeps_events: bool) -> Inbox:
        inbox = Inbox(next(self._keys), keeps_events)
        self._inboxes[inbox.key] = inbox
        return inbox

    def close(self, inbox: Inbox) -> None:
        self._inboxes.pop(inbox.key, None)

    def wait(self, engine: ctypes.c_void_p, inbox: Inbox, timeout_ms: int) -> None:
        """Returns when the inbox has something, is done, or after about the time given."""
        with self._condition:
            if inbox.events or inbox.done:
                return
            if self._polling:
                self._condition.wait(timeout_ms / 1000)
                return
            self._polling = True
        try:
            self._poll(engine, timeout_ms)
        finally:
            with self._condition:
                self._polling = False
                self._condition.notify_all()

    def _poll(self, engine: ctypes.c_void_p, timeout_ms: int) -> None:
        count = ctypes.c_size_t()
        try:
            call("optima_poll", engine, self._raw, _CAPACITY, ctypes.sizeof(_raw.Event), timeout_ms,
                 ctypes.byref(count))
        finally:
            release = library().optima_event_release
            for i in range(count.value):
                raw = self._raw[i]
                inbox = self._inboxes.get(raw.user)
                if inbox is not None:
                    inbox.put(raw)
                release(raw)
