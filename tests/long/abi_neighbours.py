#!/usr/bin/env python3
"""libsitsoptima and llama.cpp's libraries in one process, loaded in both orders and generating at
the same time: neither changes what the other says, so no symbol of one is taken for the other's.

abi_neighbours.py LIBRARY MODEL.gguf. Needs llama_cpp (the PyPI package llama-cpp-python)."""
import ctypes
import os
import pathlib
import subprocess
import sys
import threading

PROMPT = b"The capital of France is"
TOKENS = 16
ROUNDS = 3


class Optima:
    """Greedy tokens by the string-keyed options, so that no struct is declared here."""

    def __init__(self, library, model):
        self.c = ctypes.CDLL(library, mode=os.RTLD_LOCAL)
        self.c.optima_options_struct.restype = ctypes.c_void_p
        self.c.optima_result_token_ids.restype = ctypes.POINTER(ctypes.c_int32)
        self.engine, self.model = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.c.optima_engine_create(None, ctypes.byref(self.engine), None))
        self.check(self.c.optima_model_open_path(
            self.engine, model.encode(), ctypes.c_size_t(-1), None, ctypes.byref(self.model), None))

    @staticmethod
    def check(status):
        if status != 0:
            sys.exit(f"libsitsoptima: status {status}")

    def ids(self):
        end = ctypes.c_size_t(-1)
        options, session, result = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.c.optima_options_create(4, ctypes.byref(options), None))  # REQUEST
        for key, value in (("prompt", PROMPT), ("max_tokens", str(TOKENS).encode()),
                           ("ignore_eos", b"1")):
            self.check(self.c.optima_options_set(options, key.encode(), end, value, end, None))
        self.check(self.c.optima_session_create(self.model, None, ctypes.byref(session), None))
        desc = ctypes.c_void_p(self.c.optima_options_struct(options))
        self.check(self.c.optima_generate(session, desc, ctypes.byref(result), None))
        count = ctypes.c_int64()
        ids = self.c.optima_result_token_ids(result, ctypes.byref(count))[:count.value]
        for name, handle in (("result", result), ("session", session), ("options", options)):
            getattr(self.c, f"optima_{name}_destroy")(handle)
        return ids

    def close(self):
        self.c.optima_model_destroy(self.model)
        self.c.optima_engine_destroy(self.engine)


class LlamaCpp:
    def __init__(self, model):
        from llama_cpp import Llama
        self.llama = Llama(model_path=model, n_ctx=256, n_threads=2, verbose=False)

    def ids(self):
        self.llama.reset()
        tokens = self.llama.tokenize(PROMPT)
        ids = []
        for token in self.llama.generate(tokens, temp=0.0, repeat_penalty=1.0):
            ids.append(token)
            if len(ids) == TOKENS:
                return ids
        return ids

    def close(self):
        self.llama.close()


def alone(which, library, model):
    """The ids of a process that has one of the two only."""
    done = subprocess.run([sys.executable, __file__, library, model, which], check=True,
                          capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def together(library, model, order):
    made = {}
    for name in order:
        made[name] = Optima(library, model) if name == "optima" else LlamaCpp(model)
    said = {name: [] for name in order}

    def run(name):
        for _ in range(ROUNDS):
            said[name].append(made[name].ids())

    threads = [threading.Thread(target=run, args=(name,)) for name in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in order:
        made[name].close()
    return said


def main():
    library, model = sys.argv[1], sys.argv[2]
    if len(sys.argv) == 4:
        one = Optima(library, model) if sys.argv[3] == "optima" else LlamaCpp(model)
        print(*one.ids())
        return
    library = str(pathlib.Path(library).resolve())
    wanted = {name: alone(name, library, model) for name in ("optima", "llama")}
    failed = False
    for order in (("optima", "llama"), ("llama", "optima")):
        said = together(library, model, order)
        for name in order:
            same = all(ids == wanted[name] for ids in said[name])
            print(f"{' then '.join(order)}: {name} {'as alone' if same else said[name]}")
            failed |= not same
    sys.exit(failed)


if __name__ == "__main__":
    main()
