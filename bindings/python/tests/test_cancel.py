"""Cancelling, deadlines, interrupts, and what a callback raises."""
import _thread
import threading
import time

import pytest

from sits_optima import (Busy, Cancel, Cancelled, DeadlineExceeded, Engine, EventType, Finish,
                         Model, StateError)

LONG_PROMPT = [5, 9, 13] * 60


def usable(session, golden):
    result = session.generate(golden.prompt, max_tokens=4)
    assert result.token_ids == golden.continuation_ids[:4]


def cancel_elsewhere(cancel):
    """Cancels on another thread, and returns when that is done."""
    thread = threading.Thread(target=cancel.cancel)
    thread.start()
    thread.join()


def test_cancel_from_another_thread_ends_the_output(session, golden):
    for run in (session.generate, lambda *a, **k: list(session.stream(*a, **k))):
        with Cancel() as cancel:
            def at_the_third(_logits, tokens, latch=cancel):
                if len(tokens) == len(golden.prompt_ids) + 2:
                    cancel_elsewhere(latch)

            with pytest.raises(Cancelled) as caught:
                run(golden.prompt, cancel=cancel, on_logits=at_the_third)
            # The token whose logits were there may still come, and no other.
            assert len(caught.value.result.token_ids) in (2, 3)
            assert caught.value.result.finish == Finish.CANCELLED
            session.reset()
    usable(session, golden)


def test_cancel_ends_the_prompt_within_a_chunk(golden):
    """The engine is driven by the call, so that no chunk is computed while the callback runs."""
    events = []
    with Engine(drive="host", threads=1) as engine, Model(golden.path, engine=engine) as model:
        with model.session(prefill_chunk_tokens=16) as session, Cancel() as cancel:
            def on_event(event):
                events.append(event)
                if event.type == EventType.PREFILL and not cancel.cancelled:
                    cancel_elsewhere(cancel)

            with pytest.raises(Cancelled) as caught:
                session.generate(LONG_PROMPT, cancel=cancel, on_event=on_event)
            assert caught.value.result.token_ids == []
            done = [event.tokens_done for event in events if event.type == EventType.PREFILL]
            assert done == [16]
            usable(session, golden)


def test_cancel_before_the_start(session, golden):
    with Cancel() as cancel:
        assert not cancel.cancelled
        cancel.cancel()
        assert cancel.cancelled
        for run in (session.generate, lambda *a, **k: list(session.stream(*a, **k))):
            with pytest.raises(Cancelled) as caught:
                run(golden.prompt, cancel=cancel)
            assert caught.value.result.token_ids == []
        with pytest.raises(Cancelled):
            session.model.embed(["a text"], cancel=cancel)
    usable(session, golden)


def test_leaving_a_stream_cancels_it(session, golden):
    for event in session.stream(golden.prompt, on_logits=lambda *_: time.sleep(0.001)):
        if event.index == 1:
            break
    usable(session, golden)  # BUSY if the request still ran
    stream = session.stream(golden.prompt)
    next(stream)
    stream.close()
    assert list(stream) == []
    usable(session, golden)


def slow(session):
    """Keyword arguments of a request that takes seconds, and the tokens it has taken so far."""
    steps = []

    def wait(_logits, tokens):
        steps.append(len(tokens))
        time.sleep(0.02)

    return {"on_logits": wait, "ignore_eos": True}, steps


def test_interrupts_cancel(session, golden):
    for run in (session.generate, lambda *a, **k: list(session.stream(*a, **k))):
        options, steps = slow(session)
        wait = options["on_logits"]

        def interrupt(logits, tokens):
            wait(logits, tokens)
            if len(steps) == 2:
                _thread.interrupt_main()

        with pytest.raises(KeyboardInterrupt):
            run(golden.prompt, **{**options, "on_logits": interrupt})
        assert len(steps) < session.context_tokens - len(golden.prompt_ids)
        session.reset()
        usable(session, golden)


def test_interrupts_in_a_callback(session, golden):
    def on_event(event):
        if event.index == 1 and event.token >= 0:
            _thread.interrupt_main()
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        session.generate(golden.prompt, on_event=on_event)
    assert session.tokens == []
    usable(session, golden)


def test_a_deadline_is_an_error_with_numbers(session, golden):
    options, _ = slow(session)
    for run in (session.generate, lambda *a, **k: list(session.stream(*a, **k))):
        with pytest.raises(DeadlineExceeded) as caught:
            run(golden.prompt, deadline_ms=50, **options)
        error = caught.value
        assert error.limit == 50
        assert error.available == len(error.result.token_ids)
        assert isinstance(error, TimeoutError)
        assert "50 ms" in str(error)
    session.reset()
    usable(session, golden)


def test_what_a_callback_raises_is_raised(session, golden):
    class Mine(Exception):
        pass

    def on_event(event):
        if event.index == 2:
            raise Mine("from the callback")

    with pytest.raises(Mine, match="from the callback"):
        session.generate(golden.prompt, on_event=on_event)
    assert session.tokens == []

    def on_logits(_logits, _tokens):
        raise Mine("from the hook")

    for run in (session.generate, lambda *a, **k: list(session.stream(*a, **k))):
        with pytest.raises(Mine, match="from the hook"):
            run(golden.prompt, on_logits=on_logits)
    session.reset()
    usable(session, golden)


def test_calls_from_a_callback_are_refused(model, session, golden):
    refused = []

    def on_event(event):
        if event.type == EventType.DONE:
            return
        for call in (lambda: session.generate("x"), lambda: model.generate("x"),
                     lambda: session.stream("x"), lambda: session.generate("x", on_event=print)):
            with pytest.raises(Busy) as caught:
                call()
            refused.append(caught.value)

    result = session.generate(golden.prompt, max_tokens=2, on_event=on_event)
    assert result.token_ids == golden.continuation_ids[:2]
    assert len(refused) == 4 * 3
    usable(session, golden)


def test_one_request_at_a_time(session, golden):
    options, _ = slow(session)
    with session.stream(golden.prompt, **options) as stream:
        next(stream)
        with pytest.raises(Busy):
            session.generate(golden.prompt)
    usable(session, golden)


def test_closing_cancels(golden):
    """By another thread, while a request runs."""
    for close in ("session", "engine"):
        with Model(golden.path, threads=1) as model:
            session = model.session()
            options, _ = slow(session)
            target = session if close == "session" else model.engine
            with pytest.raises(Cancelled):
                for event in session.stream(golden.prompt, **options):
                    if event.index == 1:
                        thread = threading.Thread(target=target.close)
                        thread.start()
                        thread.join()
            with pytest.raises(StateError):
                session.generate(golden.prompt)
