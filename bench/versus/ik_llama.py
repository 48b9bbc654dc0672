"""Races the program optima against ik_llama.cpp on one GGUF file, as llama_cpp.py does libllama.

Usage: python bench/versus/ik_llama.py MODEL.gguf [--optima build/release/bin/optima] [--rounds 5]
       [-p 512] [-n 128] [--depth 0] [-t 2] [--check tokens|logits] [--json OUT.json]
       [--python INTERPRETER]
--python names the interpreter that has the packages ik-llama-cpp-python and numpy. The package has
to be built from source, as its wheels do without AVX-512; docs/PERFORMANCE.md says how.

Checks, figures and medians are those of llama_cpp.py; the wanted ratios are not meant for this
rival. Its sides are three: with flash attention, as is its default, without, and with it and the
weights rearranged as they are loaded (--run-time-repack of its own programs), which takes time from
`first` and may give it back in the rest. The ratio is to the best of them, for each figure.
"""

import argparse
import ctypes
import os
import sys
import types

import common

single = common.sibling("llama_cpp")
LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def load_api():
    """The package's functions, and those of its library that it does not declare."""
    try:
        from ik_llama_cpp import _ctypes_api as declared
    except (ImportError, OSError) as error:
        sys.exit(f"ik-llama-cpp-python cannot be used ({error}): build it from source with pip for "
                 f"{sys.executable}, or name the interpreter that has it by --python")
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    api = types.SimpleNamespace(**vars(declared))
    for name, result, arguments in (
            ("llama_log_set", None, [LOG_CALLBACK, pointer]),
            ("llama_batch_get_one", api.llama_batch, [api.llama_token_p, number, number, number]),
            ("llama_kv_cache_seq_rm", ctypes.c_bool, [pointer, number, number, number]),
            ("llama_get_logits", ctypes.POINTER(ctypes.c_float), [pointer])):
        function = getattr(declared._lib, name)
        function.restype, function.argtypes = result, arguments
        setattr(api, name, function)
    return api


class IkLlama(single.Llama):
    """The calls of a race where ik_llama.cpp's differ from those of libllama: it branched off
    before contexts had a memory that knows the next position."""

    REPACK = False

    @staticmethod
    def imports():
        load_api()

    def __init__(self, path, threads, context, flash):
        api = load_api()
        import numpy
        self.api, self.numpy, self.length = api, numpy, 0
        self.quiet = LOG_CALLBACK(lambda level, text, user: None)
        api.llama_log_set(self.quiet, None)
        api.llama_backend_init()
        model_params = api.llama_model_default_params()
        model_params.n_gpu_layers = 0
        if self.REPACK:  # what is mapped cannot be rearranged
            model_params.repack_tensors, model_params.use_mmap = True, False
        self.model = api.llama_model_load_from_file(str(path).encode(), model_params)
        if not self.model:
            sys.exit(f"ik_llama.cpp cannot load {path}")
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context, 2048, 512
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn = flash
        self.context = api.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit("ik_llama.cpp cannot create a context")
        self.vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))
        self.vocab = self.model  # what its llama_tokenize takes

    def decode(self, ids):
        tokens = (self.api.llama_token * len(ids))(*ids)
        self.check(self.api.llama_decode(self.context, self.api.llama_batch_get_one(
            tokens, len(ids), self.length, 0)), len(ids))
        self.length += len(ids)

    def keep(self, count):
        self.api.llama_kv_cache_seq_rm(self.context, 0, count, -1)
        self.length = count


class Repacked(IkLlama):
    """Weights in the interleaved forms of ik_llama.cpp, where their type has one."""

    REPACK = True


ENGINES = {"": IkLlama, "repacked": Repacked}


def run_child(args):
    """A child's name is that of llama_cpp.py's child, behind the engine where it is not the
    first."""
    # The library prints some of its remarks to stdout, where only the figures are to be.
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kind, _, args.child = args.child.rpartition(" ")
    single.run_child(args, ENGINES[kind])


def check(args):
    """Of both forms of the weights, as different kernels compute them."""
    said = []
    for kind in ENGINES:
        what = "logits" if args.check == "logits" else "greedy"
        command = common.child_command(args, __file__, f"{kind} {what}".strip())
        said.append(common.check_logits(args, command) if what == "logits" else
                    common.check_tokens(args, common.run_json(command)))
    return "; repacked: ".join(said)


def rivals(args):
    side = common.Kept if args.depth else common.Fresh
    return {**single.rivals(args, __file__, "ik_llama", side),
            "ik_llama fa=1 repacked": side(
                common.child_command(args, __file__, "repacked flash"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common.add_race_options(parser)
    args = parser.parse_args()
    if args.child:
        run_child(args)
        return
    checked = check(args)
    print(checked, file=sys.stderr)
    common.finish(args, [common.race_model(args, rivals(args))], checked)


if __name__ == "__main__":
    main()
