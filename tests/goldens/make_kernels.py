#!/usr/bin/env python3
"""Expected values of the kernel references, computed by numpy and torch in float64.

Made with numpy 2.4.6 and torch 2.15.0 (any version gives the same to the digits kept, except for
the random inputs, which numpy pins per bit generator: append new arrays, or the old ones change).
Output: tests/goldens/kernels.txt, one array a line:

    name count value...

Run from the repository root: python tests/goldens/make_kernels.py
"""
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

random = np.random.Generator(np.random.PCG64(20240607))
lines = []


def put(name, array):
    array = np.asarray(array).ravel()
    if array.dtype.kind in "iu":
        text = " ".join(str(int(v)) for v in array)
    else:
        text = " ".join(f"{float(v):.9g}" for v in array)
    lines.append(f"{name} {array.size} {text}")


def floats(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def halves(*shape, scale=1.0):
    return floats(*shape, scale=scale).astype(np.float16).astype(np.float32)


def rms_norm():
    x, weight, epsilon = floats(3, 11, scale=3), floats(11), 1e-5
    wide = x.astype(np.float64)
    norm = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + np.float32(epsilon))
    put("rms_norm.x", x)
    put("rms_norm.weight", weight)
    put("rms_norm.out", norm * weight)
    put("rms_norm.unit", norm)


def rope():
    # 2 tokens, 2 heads of 10 values, the first 8 rotated.
    positions, frequency = np.array([3, 1000]), 10000.0 ** (-np.arange(0, 8, 2) / 8)
    x = floats(2, 2, 10)
    angles = positions[:, None] * frequency[None, :]
    put("rope.x", x)
    put("rope.positions", positions)
    put("rope.inverse_frequency", frequency)
    put("rope.cos", np.cos(angles))
    put("rope.sin", np.sin(angles))
    rotation = np.exp(1j * angles)[:, None, :]  # a pair is a complex number
    wide = x.astype(np.float64)
    adjacent, split = wide.copy(), wide.copy()
    turned = (wide[..., 0:8:2] + 1j * wide[..., 1:8:2]) * rotation
    adjacent[..., 0:8:2], adjacent[..., 1:8:2] = turned.real, turned.imag
    turned = (wide[..., 0:4] + 1j * wide[..., 4:8]) * rotation
    split[..., 0:4], split[..., 4:8] = turned.real, turned.imag
    put("rope.adjacent", adjacent)
    put("rope.halves", split)


def gates():
    gate = np.concatenate([floats(20, scale=3), np.float32([0, -0.0, 1e-6, -8, 12, -40, 60, -100])])
    up = floats(gate.size)
    g = gate.astype(np.float64)
    put("gate.gate", gate)
    put("gate.up", up)
    put("gate.silu", g / (1 + np.exp(-g)) * up)
    tanh = np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3))
    put("gate.gelu_tanh", 0.5 * g * (1 + tanh) * up)


def f16():
    values = np.float32([0, -0.0, 1, -2, 65504, 65519.996, 65520, 1e6, -7e4, np.inf, -np.inf,
                         2**-14, 2**-24, 2**-25, 2**-25 * 1.0001, 3 * 2**-25, 2049, 2051, 1e-9])
    values = np.concatenate([values, floats(30, scale=100), floats(15, scale=1e-5)])
    with np.errstate(over="ignore"):
        bits = np.clip(values, -65504, 65504).astype(np.float16).view(np.uint16)
    put("f16.values", [v for v in values if np.isfinite(v)])
    put("f16.bits", [b for v, b in zip(values, bits) if np.isfinite(v)])


def attention(name, tokens, first, heads, kv_heads, dim, window=0, softcap=0.0, sinks=False,
              causal=True):
    length = first + tokens
    q = floats(tokens, heads, dim)
    k, v = halves(length, kv_heads, dim), halves(length, kv_heads, dim)
    scale = np.float64(np.float32(1 / np.sqrt(np.float32(dim))))
    sink = floats(heads, scale=2).astype(np.float64) if sinks else np.full(heads, -np.inf)
    out = np.zeros((tokens, heads, dim))
    for head in range(heads):
        kv = head // (heads // kv_heads)
        logits = q[:, head].astype(np.float64) @ k[:, kv].astype(np.float64).T * scale
        if softcap:
            logits = softcap * np.tanh(logits / softcap)
        query = first + np.arange(tokens)[:, None]
        key = np.arange(length)[None, :]
        seen = (key <= query) & ((key > query - window) | (window == 0))
        logits = np.where(seen | (not causal), logits, -np.inf)
        # The sink is one more column of the softmax, dropped before the values are summed.
        logits = np.concatenate([logits, np.full((tokens, 1), sink[head])], axis=1)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        out[:, head] = weights[:, :-1] @ v[:, kv].astype(np.float64)
    put(f"{name}.shape", [tokens, first, heads, kv_heads, dim, window])
    put(f"{name}.softcap", [softcap])
    if sinks:
        put(f"{name}.sinks", sink)
    if not causal:
        put(f"{name}.mask", [1])
    for part, array in (("q", q), ("k", k), ("v", v), ("out", out)):
        put(f"{name}.{part}", array)



def tensor(array):
    return torch.from_numpy(array.astype(np.float64))


def activations():
    x = np.concatenate([floats(20, scale=3), np.float32([0, 1e-6, -1e-6, -5, -9, 12, -30, 60])])
    up = np.concatenate([floats(26, scale=5), np.float32([-7.5, 7.5])])
    t, u = tensor(x), tensor(up)
    put("act.x", x)
    put("act.up", up)
    put("act.silu", F.silu(t))
    put("act.gelu_tanh", F.gelu(t, approximate="tanh"))
    put("act.gelu_erf", F.gelu(t))
    put("act.relu", F.relu(t))
    put("act.relu_squared", F.relu(t).square())
    put("act.gelu_quick", t * torch.sigmoid(float(np.float32(1.702)) * t))
    alpha, limit = float(np.float32(1.702)), 7.0
    gate = t.clamp(max=limit)
    put("act.swiglu_clamped", (u.clamp(-limit, limit) + 1) * gate * torch.sigmoid(alpha * gate))
    put("act.softcap", 5.0 * torch.tanh(t / 5.0))


def layer_norm():
    x, weight, bias = floats(3, 13, scale=3) + np.float32(20), floats(13), floats(13)
    put("layer_norm.x", x)
    put("layer_norm.weight", weight)
    put("layer_norm.bias", bias)
    for name, w, b in (("unit", None, None), ("scaled", weight, None), ("out", weight, bias)):
        w, b = (None if v is None else tensor(v) for v in (w, b))
        out = F.layer_norm(tensor(x), (13,), w, b, eps=float(np.float32(1e-5)))
        put(f"layer_norm.{name}", out)


def moe_route(name, rows, experts, used, scoring, normalised=False, bias=False, scale=1.0):
    logits = floats(rows, experts, scale=2)
    shift = floats(experts, scale=0.3) if bias else np.zeros(experts, np.float32)
    t = tensor(logits)
    scores = {"softmax": F.softmax(t, dim=-1), "sigmoid": torch.sigmoid(t), "logit": t}[scoring]
    ids = torch.topk(scores + tensor(shift), used, dim=-1).indices
    weights = scores.gather(-1, ids)
    if scoring == "logit":
        weights = F.softmax(weights, dim=-1)
    if normalised:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    kinds = {"softmax": 0, "logit": 1, "sigmoid": 2}
    put(f"{name}.shape", [rows, experts, used, kinds[scoring], int(normalised)])
    put(f"{name}.scale", [scale])
    put(f"{name}.logits", logits)
    put(f"{name}.bias", shift)
    put(f"{name}.ids", ids)
    put(f"{name}.weights", weights * scale)


rms_norm()
rope()
gates()
f16()
attention("attention_causal", tokens=4, first=0, heads=2, kv_heads=2, dim=8)
attention("attention_gqa", tokens=3, first=17, heads=6, kv_heads=2, dim=8)
attention("attention_window", tokens=3, first=30, heads=2, kv_heads=1, dim=8, window=5)
attention("attention_softcap", tokens=2, first=14, heads=2, kv_heads=1, dim=16, softcap=1.5)
attention("attention_all", tokens=18, first=16, heads=4, kv_heads=2, dim=8, window=20, softcap=2.0)
attention("attention_decode", tokens=1, first=40, heads=3, kv_heads=1, dim=16)
activations()
layer_norm()
moe_route("moe_qwen3", rows=4, experts=16, used=4, scoring="softmax", normalised=True)
moe_route("moe_olmoe", rows=3, experts=16, used=5, scoring="softmax")
moe_route("moe_gpt_oss", rows=4, experts=32, used=4, scoring="logit")
moe_route("moe_llama4", rows=3, experts=9, used=1, scoring="sigmoid")
moe_route("moe_deepseek", rows=4, experts=24, used=6, scoring="sigmoid", normalised=True, bias=True,
          scale=2.5)
moe_route("moe_softmax_bias", rows=3, experts=12, used=3, scoring="softmax", bias=True)
attention("attention_sinks", tokens=4, first=13, heads=4, kv_heads=2, dim=8, sinks=True)
attention("attention_sinks_window", tokens=3, first=33, heads=2, kv_heads=1, dim=8, window=5,
          softcap=2.0, sinks=True)
attention("attention_sinks_decode", tokens=1, first=36, heads=3, kv_heads=1, dim=8, sinks=True)
attention("attention_encoder", tokens=19, first=0, heads=2, kv_heads=2, dim=8, causal=False)
attention("attention_prefix", tokens=5, first=14, heads=2, kv_heads=1, dim=8, sinks=True,
          causal=False)
path = pathlib.Path("tests/goldens/kernels.txt")
path.write_text("\n".join(lines) + "\n")
print(path, path.stat().st_size, "bytes, numpy", np.__version__, "torch", torch.__version__)
