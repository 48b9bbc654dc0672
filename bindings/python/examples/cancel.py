"""Stops an answer from another thread, at a deadline, and with Ctrl-C: cancel.py MODEL"""
import sys
import threading

from sits_optima import Cancel, Cancelled, DeadlineExceeded, Model

if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} MODEL")
with Model(sys.argv[1]) as model, model.session() as session:
    cancel = Cancel()
    threading.Timer(0.5, cancel.cancel).start()
    try:
        session.generate("Once upon a time", ignore_eos=True, cancel=cancel)
    except Cancelled as error:
        print(f"{error}: {error.result.text!r}")
    try:
        session.generate("Once upon a time", ignore_eos=True, deadline_ms=500)
    except DeadlineExceeded as error:
        print(f"{error}: {error.result.text!r}")
    try:
        # Ends with the context; Ctrl-C ends it before.
        print(session.generate("Once upon a time", ignore_eos=True, max_tokens=64).finish.name)
    except KeyboardInterrupt:
        print("interrupted; the session goes on")
    print(session.generate("The capital of France is", max_tokens=8).text)
