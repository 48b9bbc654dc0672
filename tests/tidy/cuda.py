"""Rules for CUDA kernels (docs/CUDA.md): what a `.cuh` may say, so that it also runs on the CPU."""

import re

import cpp

COMPILED_BY = "tests/cuda/all_kernels.cu"
BANNED = (
    (re.compile(r"\b__\w+"), "a built-in name of CUDA; kernels/cuda/ce.h has the words"),
    (re.compile(r"\b(?:thread|block)Idx\b|\b(?:block|grid)Dim\b|\bwarpSize\b"),
     "a built-in variable of CUDA; kernels/cuda/ce.h has the words"),
    (re.compile(r"\basm\b"), "PTX stands in kernels/cuda/ce_nvcc.h"),
    (re.compile(r"<<<|>>>\s*\("), "launched by ce::launch"),
    (re.compile(r"\bcooperative_groups\b|\bwmma\b|(?<!:)\bcuda::(?:std|barrier|pipeline|atomic)"),
     "the host shim has no such library"),
)
RETURNS = re.compile(r"\breturn\b")


def check_kernel(text, code, add):
    """Findings of a `.cuh` as calls of add(line, why)."""
    for pattern, why in BANNED:
        for match in pattern.finditer(code):
            add(code.count("\n", 0, match.start()) + 1, f"{match.group().strip()}: {why}")
    if "#pragma once" not in text.split("\n"):
        add(1, "no #pragma once")
    lines = code.split("\n")
    for _, first, last in cpp.functions(code):
        body = "\n".join(lines[first - 1:last])
        if "CE_GLOBAL(" in body and RETURNS.search(body):
            add(first, "a kernel returns: guard the work, not the thread")


def check_compiled(root, add):
    """Every `.cuh` is compiled by nvcc, directly or through another one."""
    source = root / COMPILED_BY
    text = source.read_text(encoding="utf-8") if source.exists() else ""
    seen, waiting = set(), re.findall(r'#include "(kernels/[^"]+)"', text)
    while waiting:
        name = waiting.pop()
        if name not in seen and (root / name).exists():
            seen.add(name)
            waiting += re.findall(r'#include "(kernels/[^"]+)"',
                                  (root / name).read_text(encoding="utf-8"))
    for item in sorted((root / "kernels").rglob("*.cuh")):
        path = item.relative_to(root).as_posix()
        if path not in seen:
            add(path, f"{COMPILED_BY} does not include it: nvcc never sees it")
