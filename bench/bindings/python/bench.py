"""What an event costs a host that is written in Python: the workload of bench/bindings/bench.c.

    bench.py LIBRARY MODEL.gguf [ROUNDS]

Prints one line of JSON for bench/bindings/compare.py. The ways: `callback` is Session.generate with
an on_event, the engine driven by the host; `poll` is Session.stream."""
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bindings/python"))
import sits_optima  # noqa: E402

TOKENS, REQUESTS, ROUNDS = 250, 4, 20
REQUEST = {"max_tokens": TOKENS, "ignore_eos": True}


class Tally:
    def __init__(self):
        self.tokens = self.bytes = 0

    def add(self, event):
        self.tokens += event.type == sits_optima.EventType.TOKEN
        self.bytes += len(event.text)


def by_callback(session, tally):
    session.generate("a", on_event=tally.add, **REQUEST)


def by_poll(session, tally):
    for event in session.stream("a", **REQUEST):
        tally.add(event)


def ns_per_event(session, way):
    tally = Tally()
    start = time.perf_counter_ns()
    for _ in range(REQUESTS):
        session.reset()
        way(session, tally)
    return (time.perf_counter_ns() - start) / tally.tokens


def measure(path, way, drive, rounds):
    engine = sits_optima.Engine(threads=1, drive=drive)
    with sits_optima.Model(path, engine=engine) as model, model.session() as session:
        ns_per_event(session, way)
        return sorted(ns_per_event(session, way) for _ in range(rounds))


def main():
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} LIBRARY MODEL.gguf [ROUNDS]")
    sits_optima.load(sys.argv[1])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else ROUNDS
    report = {"language": "python"}
    for name, way, drive in (("callback", by_callback, "host"), ("poll", by_poll, "library")):
        times = measure(sys.argv[2], way, drive, rounds)
        report[f"{name}_ns_per_event"] = round(times[0])
        report[f"{name}_median_ns_per_event"] = round(statistics.median(times))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
