"""Nothing is lost: memory, descriptors and threads stay, however objects are made and dropped."""
import ctypes
import gc
import os
import threading

from sits_optima import Engine, Model

ROUNDS = 1000
LIBC = ctypes.CDLL(None)
M_ARENA_MAX = -8
# One heap for all threads, so that what is free in it can be given back before memory is read.
LIBC.mallopt(M_ARENA_MAX, 1)


def resident_bytes():
    gc.collect()
    LIBC.malloc_trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def counts():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def test_engines_and_models(golden):
    """An engine, a model, a session and a request each time; every second one is left to Python."""
    def one_round(index):
        model = Model(golden.path, threads=1)
        session = model.session(context_tokens=64)
        assert session.generate([1, 2, 3], max_tokens=2, ignore_eos=True).token_ids
        if index % 2:
            list(session.stream([1, 2, 3, 4], max_tokens=1))
            session.close()
            model.close()

    for index in range(100):
        one_round(index)
    before_bytes, before = resident_bytes(), counts()
    for index in range(ROUNDS):
        one_round(index)
    after_bytes = resident_bytes()
    assert counts() == before
    assert after_bytes - before_bytes < 1 << 20


def test_a_thousand_sessions_and_streams(model):
    def one_round(index):
        with model.session(context_tokens=64) as session:
            stream = session.stream([1, 2, 3], max_tokens=3, ignore_eos=True)
            next(stream)
            if index % 2:
                stream.close()

    for index in range(100):
        one_round(index)
    before, before_bytes = counts(), resident_bytes()
    for index in range(ROUNDS):
        one_round(index)
    assert counts() == before
    assert resident_bytes() - before_bytes < 4 << 20
    assert not model.engine._events._inboxes


def test_two_engines_at_once(golden):
    failures = []
    start = threading.Barrier(4)

    def work(model):
        try:
            start.wait()
            for _ in range(20):
                tokens = [event.token for event in model.stream(golden.prompt, max_tokens=24)]
                assert tokens == golden.continuation_ids
        except BaseException as error:
            failures.append(error)
            raise

    with Engine(threads=1) as one, Engine(threads=2) as two:
        with Model(golden.path, engine=one) as first, Model(golden.path, engine=two) as second:
            # Two threads of each engine, so that one polls for the other.
            threads = [threading.Thread(target=work, args=(model,))
                       for model in (first, second, first, second)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert not failures


def test_any_order_of_closing(golden):
    engine = Engine(threads=1)
    model = Model(golden.path, engine=engine)
    session = model.session()
    result = session.generate(golden.prompt, max_tokens=3)
    engine.close()
    model.close()
    session.close()
    assert result.token_ids == golden.continuation_ids[:3]
    result.close()


def test_the_lock_of_python_is_free_meanwhile(model, golden):
    """A thread counts while the main one waits in the library for a callback of that thread."""
    counted = threading.Event()

    def wait(_logits, _tokens):
        thread = threading.Thread(target=counted.set)
        thread.start()
        thread.join()

    assert model.generate(golden.prompt, max_tokens=1, on_logits=wait).token_ids
    assert counted.is_set()
