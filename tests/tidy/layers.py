"""Which folder may include what: docs/ARCHITECTURE.md's layers as a table."""

import re

# A kernel's contract, as opposed to its insides: kernels/isa.h, kernels/<op>/<op>.h, the weight
# types and their quantiser.
CONTRACT = re.compile(r"kernels/(?:isa|(\w+)/\1|quant/(?:weight_type|quantise))\.h")
BACKEND_INTERFACE = re.compile(r"backend/backend\.h")
MODEL_CONFIG = re.compile(r"model/config\.h")


def folder(*names):
    return re.compile(r"(?:%s)/.*" % "|".join(names))


BELOW_ENGINE = [folder("base", "scheduler", "kv", "planner", "model", "graph", "tokenizer",
                       "sampling", "comm", "diagnose"), BACKEND_INTERFACE, CONTRACT]
# Beside its own folder, each layer may include what matches one of these.
ARROWS = {
    "base": [],
    "kv": [folder("base")],
    "tokenizer": [folder("base")],
    "sampling": [folder("base")],
    "comm": [folder("base")],
    "scheduler": [folder("base", "kv")],
    "graph": [folder("base"), BACKEND_INTERFACE, CONTRACT],
    "model": [folder("base", "graph"), BACKEND_INTERFACE, CONTRACT],
    "planner": [folder("base"), MODEL_CONFIG, BACKEND_INTERFACE],
    "diagnose": [folder("base", "model", "graph", "kv")],
    # The interface names the graph's flat program, which the back ends run.
    "backend": [folder("base", "graph"), CONTRACT],
    "engine": BELOW_ENGINE,
    "abi": BELOW_ENGINE + [folder("engine", "optima")],
}
# One file each that knows more than its layer, and why.
SINGLE_FILES = {
    ("src/engine/model_runner.cc", "backend/cpu/cpu_runner.h"):
        "the one place where a back end is chosen",
    ("src/abi/c_probe.cc", "backend/cpu/probe.h"):
        "the machine is measured without an engine",
}
KERNEL_SYSTEM = {"stdint.h", "stddef.h", "string.h", "math.h", "float.h", "immintrin.h",
                 "arm_neon.h", "cpuid.h"}
LIBRARY_NEVER = {"iostream", "cassert", "assert.h"}  # static constructors; aborts
# What declares calls of the operating system: src/base alone makes them.
SYSTEM_CALLS = re.compile(r"(?:sys|linux|asm|net|netinet|arpa)/.*|(?:unistd|fcntl|poll|pthread|sched|"
                          r"signal|dlfcn|dirent|spawn|semaphore|windows)\.h|csignal")
# The shim that executes CUDA kernels on the CPU is no part of the library: it may use what it likes
# of the host, and of the project the kernels' contracts. nvcc's half of the words names CUDA.
CUDA_HOST = "kernels/cuda_host/"
CUDA_NVCC = ("kernels/cuda/ce_nvcc.h", re.compile(r"cuda_(?:runtime|fp16|bf16|fp8)\.h"))
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check_include(path, quote, name):
    """Why `path` may not include `name`; None when it may."""
    parts = path.split("/")
    if parts[0] == "kernels":
        if quote == "<":
            known = name in KERNEL_SYSTEM or path.startswith(CUDA_HOST) or (
                path == CUDA_NVCC[0] and CUDA_NVCC[1].fullmatch(name))
            return None if known else f"a kernel may not include <{name}>"
        if name.startswith(CUDA_HOST) and not path.startswith((CUDA_HOST, "kernels/cuda/ce.h")):
            return f"{name} is the host's half of kernels/cuda/ce.h"
        return None if name.startswith("kernels/") else f"a kernel may not include {name}"
    if parts[0] == "src":
        if name in LIBRARY_NEVER:
            return f"the library may not include <{name}>"
        if quote == "<" and parts[1] != "base" and SYSTEM_CALLS.fullmatch(name):
            return f"<{name}> declares calls of the operating system, which src/base alone makes"
        if quote == "<" or (path, name) in SINGLE_FILES:
            return None
        if "/" not in name or name.startswith("."):
            return f"{name} is not named from the root of src"
        layer = parts[1]
        if layer not in ARROWS:
            return f"folder {layer} is in no layer"
        if name.startswith(layer + "/") or any(a.fullmatch(name) for a in ARROWS[layer]):
            return None
        return f"{layer} may not include {name}"
    if parts[0] == "examples" and not name.startswith("optima/"):
        if name.split("/")[0] in set(ARROWS) | {"kernels", "src"} or name.startswith(".."):
            return f"examples see the public header alone, not {name}"
    return None
