#!/usr/bin/env python3
"""Writes the tiny models of tests/goldens/tiny and what transformers computes with them.

Made with transformers 5.24.0, torch 2.15.0, gguf 0.19.0, tokenizers 0.23.3, sentencepiece 0.2.3,
numpy 2.4.6 (CPU, fp32, one thread):  python tests/goldens/make_tiny_model.py [name ...]

Random LlamaForCausalLM and Gemma3ForCausalLM weights go to GGUF files by the conventions of the
format. The goldens do not come from those weights: each file is read back with gguf, dequantised,
and loaded into a fresh transformers model, so that a quantised file has its own truth. Among many
prompts one is taken whose greedy continuation is clear at every step (MARGIN), so that small
rounding cannot change it. tests/goldens/tiny/README.md tells the layout of the files.
"""

import contextlib
import dataclasses
import json
import pathlib
import random
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from transformers import (Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM)

import tiny_vocabulary

OUT = pathlib.Path(__file__).parent / "tiny"
CONTEXT = 256
CONTINUATION = 24
MARGIN = 0.06  # of the logits' standard deviation, between the best and the second-best id
ATTENTION_GAIN = 1.2  # makes attention pick positions rather than average over them
LOGIT_STD = 4.0
SPECIAL_SCALE = 0.4  # of special and byte tokens, so that text wins over them

# GGUF name -> transformers name; {} is the layer.
COMMON = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "blk.{}.attn_norm.weight": "model.layers.{}.input_layernorm.weight",
    "blk.{}.attn_q.weight": "model.layers.{}.self_attn.q_proj.weight",
    "blk.{}.attn_k.weight": "model.layers.{}.self_attn.k_proj.weight",
    "blk.{}.attn_v.weight": "model.layers.{}.self_attn.v_proj.weight",
    "blk.{}.attn_output.weight": "model.layers.{}.self_attn.o_proj.weight",
    "blk.{}.ffn_gate.weight": "model.layers.{}.mlp.gate_proj.weight",
    "blk.{}.ffn_up.weight": "model.layers.{}.mlp.up_proj.weight",
    "blk.{}.ffn_down.weight": "model.layers.{}.mlp.down_proj.weight",
}
LLAMA = COMMON | {
    "output.weight": "lm_head.weight",
    "blk.{}.ffn_norm.weight": "model.layers.{}.post_attention_layernorm.weight",
}
GEMMA3 = COMMON | {
    "output.weight": "lm_head.weight",
    "blk.{}.attn_q_norm.weight": "model.layers.{}.self_attn.q_norm.weight",
    "blk.{}.attn_k_norm.weight": "model.layers.{}.self_attn.k_norm.weight",
    "blk.{}.post_attention_norm.weight": "model.layers.{}.post_attention_layernorm.weight",
    "blk.{}.ffn_norm.weight": "model.layers.{}.pre_feedforward_layernorm.weight",
    "blk.{}.post_ffw_norm.weight": "model.layers.{}.post_feedforward_layernorm.weight",
}


@dataclasses.dataclass
class Spec:
    name: str
    architecture: str
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    layers: int
    tied: bool
    matrix: T  # of all matrices but those in `types`
    types: dict[str, T] = dataclasses.field(default_factory=dict)
    llama3_rope: bool = False
    window: int = 0
    pattern: int = 0  # every pattern-th layer sees all positions
    seed: int = 1

    @property
    def names(self):
        return LLAMA if self.architecture == "llama" else GEMMA3


SPECS = [
    Spec("llama-f32", "llama", 48, 6, 2, 8, 84, 2, False, T.F32),
    Spec("llama-f16", "llama", 44, 4, 1, 16, 76, 3, True, T.F16, llama3_rope=True),
    Spec("llama-q8_0", "llama", 64, 4, 2, 16, 160, 3, True, T.Q8_0),
    Spec("llama-q4_0", "llama", 64, 4, 1, 32, 96, 2, False, T.Q4_0, {"output.weight": T.Q8_0}),
    Spec("gemma3-f32", "gemma3", 36, 3, 1, 16, 52, 4, True, T.F32, window=8, pattern=3),
    Spec("gemma3-f16", "gemma3", 44, 4, 2, 16, 60, 3, False, T.F16, window=11, pattern=2),
    Spec("gemma3-q8_0", "gemma3", 32, 4, 2, 24, 64, 4, True, T.Q8_0, window=16, pattern=3),
    Spec("gemma3-q4_0", "gemma3", 64, 2, 1, 32, 96, 3, True, T.Q4_0,
         {"token_embd.weight": T.Q8_0}, window=5, pattern=2),
]


def make_model(spec: Spec, vocabulary):
    shared = dict(
        vocab_size=vocabulary.size, hidden_size=spec.hidden, intermediate_size=spec.ffn,
        num_hidden_layers=spec.layers, num_attention_heads=spec.heads,
        num_key_value_heads=spec.kv_heads, head_dim=spec.head_dim, tie_word_embeddings=spec.tied,
        max_position_embeddings=CONTEXT, attn_implementation="eager", rms_norm_eps=1e-5)
    if spec.architecture == "llama":
        rope = {"rope_type": "default", "rope_theta": 10000.0}
        if spec.llama3_rope:
            rope = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0,
                    "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 32}
        model = LlamaForCausalLM(LlamaConfig(**shared, rope_parameters=rope))
    else:
        kinds = ["full_attention" if (i + 1) % spec.pattern == 0 else "sliding_attention"
                 for i in range(spec.layers)]
        assert len(set(kinds)) == 2
        model = Gemma3ForCausalLM(Gemma3TextConfig(
            **shared, layer_types=kinds, sliding_window=spec.window,
            query_pre_attn_scalar=spec.head_dim, rope_parameters={
                "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}))
    return model.to(torch.float32).eval()


def norm_center(spec: Spec, name):
    """The last norm sets the logits' spread; Gemma's post norms keep the blocks above the input."""
    center = 1.0
    if name == "model.norm.weight":
        center = LOGIT_STD
    elif spec.architecture == "gemma3" and "post_" in name:
        center = 2.0
    return center if spec.architecture == "llama" else center - 1.0  # Gemma's distance from one


def randomise(spec: Spec, model, vocabulary):
    """Weights with the spread that a trained model has: norms differ, attention is selective."""
    generator = torch.Generator().manual_seed(spec.seed)
    specials = sorted(vocabulary.specials())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            values = torch.randn(weight.shape, generator=generator)
            if name.endswith("norm.weight"):
                weight.copy_(norm_center(spec, name) + 0.2 * values)
            elif "embed_tokens" in name:
                values[specials] *= SPECIAL_SCALE
                weight.copy_(values / spec.hidden**0.5)
            elif "lm_head" in name:
                values[specials] *= SPECIAL_SCALE
                weight.copy_(values / spec.hidden**0.5)
            else:
                gain = ATTENTION_GAIN if "q_proj" in name or "k_proj" in name else 1.0
                weight.copy_(values * gain / weight.shape[1]**0.5)


def permute(weight, heads):
    """Rows of q and k from halves (transformers) to adjacent pairs (GGUF)."""
    dim = weight.shape[0] // heads
    return weight.reshape(heads, 2, dim // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def unpermute(weight, heads):
    dim = weight.shape[0] // heads
    return weight.reshape(heads, dim // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def convert(spec: Spec, name, weight, change_pairs, norm_offset):
    """Between the two conventions; change_pairs is permute or unpermute."""
    if spec.architecture == "llama":
        if name.endswith("attn_q.weight"):
            return change_pairs(weight, spec.heads)
        if name.endswith("attn_k.weight"):
            return change_pairs(weight, spec.kv_heads)
    elif name.endswith("norm.weight"):
        return weight + np.float32(norm_offset)
    return weight


def tensor_names(spec: Spec):
    """Pairs (GGUF name, transformers name)."""
    for ours, theirs in spec.names.items():
        if ours == "output.weight" and spec.tied:
            continue
        for layer in range(spec.layers) if "{}" in ours else [0]:
            yield ours.format(layer), theirs.format(layer)


def write_metadata(spec: Spec, writer, vocabulary):
    writer.add_name(f"tiny {spec.name}")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(spec.hidden)
    writer.add_block_count(spec.layers)
    writer.add_feed_forward_length(spec.ffn)
    writer.add_head_count(spec.heads)
    writer.add_head_count_kv(spec.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    if spec.hidden != spec.heads * spec.head_dim or spec.architecture == "gemma3":
        writer.add_key_length(spec.head_dim)
        writer.add_value_length(spec.head_dim)
    writer.add_vocab_size(vocabulary.size)
    if spec.architecture == "llama":
        writer.add_rope_dimension_count(spec.head_dim)
        writer.add_rope_freq_base(10000.0)
    else:
        writer.add_rope_freq_base(1000000.0)
        writer.add_rope_freq_base_swa(10000.0)
        writer.add_sliding_window(spec.window)
        writer.add_sliding_window_pattern(spec.pattern)
    vocabulary.write(writer)


def write_file(spec: Spec, model, vocabulary, path):
    writer = gguf.GGUFWriter(path, spec.architecture)
    write_metadata(spec, writer, vocabulary)
    state = model.state_dict()
    for ours, theirs in tensor_names(spec):
        weight = convert(spec, ours, state[theirs].numpy(), permute, 1.0).astype(np.float32)
        kind = T.F32 if weight.ndim == 1 else spec.types.get(ours, spec.matrix)
        if kind == T.F32:
            writer.add_tensor(ours, weight)
        else:
            writer.add_tensor(ours, gguf.quants.quantize(weight, kind), raw_dtype=kind)
    if spec.llama3_rope:
        # What the plain frequencies are divided by, as transformers scales them.
        plain = 10000.0 ** (-torch.arange(0, spec.head_dim, 2, dtype=torch.float64) / spec.head_dim)
        factors = (plain / model.model.rotary_emb.inv_freq.double()).float().numpy()
        assert factors.min() > 0.99 and factors.max() > 7.9
        writer.add_tensor("rope_freqs.weight", factors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def load_file(spec: Spec, path, vocabulary):
    """A fresh transformers model with the weights that the file holds."""
    tensors = {t.name: t for t in gguf.GGUFReader(path).tensors}
    model = make_model(spec, vocabulary)
    state = {}
    for ours, theirs in tensor_names(spec):
        t = tensors[ours]
        weight = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        state[theirs] = torch.from_numpy(convert(spec, ours, weight, unpermute, -1.0).copy())
    if spec.tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0]


def next_rows(model, sequences):
    """The last logits of each sequence. Padding on the right: causal attention never sees it."""
    longest = max(map(len, sequences))
    padded = torch.tensor([ids + [0] * (longest - len(ids)) for ids in sequences])
    last = torch.tensor([len(ids) - 1 for ids in sequences])
    with torch.no_grad():
        return model(padded, use_cache=False).logits[torch.arange(len(sequences)), last]


def clear_continuations(model, prompts, banned):
    """{index of a prompt: (ids, least margin)} where each greedy step is clear and is text."""
    alive = {i: (list(prompt), float("inf")) for i, prompt in enumerate(prompts)}
    for _ in range(CONTINUATION):
        if not alive:
            return {}
        best = (rows := next_rows(model, [ids for ids, _ in alive.values()])).topk(2)
        kept = {}
        for (i, (ids, least)), values, tokens, row in zip(
                alive.items(), best.values, best.indices, rows):
            margin = float(values[0] - values[1])
            if margin >= MARGIN * float(row.std()) and int(tokens[0]) not in banned:
                kept[i] = (ids + [int(tokens[0])], min(least, margin))
        alive = kept
    return {i: (ids[len(prompts[i]):], least) for i, (ids, least) in alive.items()}


@contextlib.contextmanager
def int8_activations(model):
    """Inputs of all matrix products rounded to 8 bits per block of 32, as fast paths do."""
    def rounded(_, args):
        x = args[0]
        blocks = torch.nn.functional.pad(x, (0, -x.shape[-1] % 32)).unflatten(-1, (-1, 32))
        scale = blocks.abs().amax(-1, keepdim=True).clamp_min(1e-30) / 127
        return (((blocks / scale).round() * scale).flatten(-2)[..., :x.shape[-1]],)

    hooks = [module.register_forward_pre_hook(rounded) for module in model.modules()
             if isinstance(module, torch.nn.Linear)]
    yield
    for hook in hooks:
        hook.remove()


def is_robust(model, prompt, continuation):
    """Whether rounded activations choose the same ids."""
    with int8_activations(model):
        logits = logits_of(model, prompt + continuation)
    return logits[len(prompt) - 1:-1].argmax(-1).tolist() == continuation


def choose_prompt(model, vocabulary):
    rng = random.Random(9)
    for batch in range(60):
        texts = [tiny_vocabulary.sentence(rng) for _ in range(400)]
        pairs = [(text, ids) for text in texts if 36 <= len(ids := vocabulary.encode(text)) <= 46]
        found = clear_continuations(model, [ids for _, ids in pairs], vocabulary.specials())
        for i, (ids, margin) in found.items():
            if len(set(ids)) >= 10 and is_robust(model, pairs[i][1], ids):
                return *pairs[i], ids, margin, batch
    raise SystemExit("no prompt has a clear continuation")


def check_sensitivity(spec: Spec, vocabulary, path, ids, logits):
    """What the goldens are there to find must change them: rope, window, attention."""
    def difference(change):
        model = load_file(spec, path, vocabulary)
        change(model)
        return float((logits_of(model, ids) - logits).abs().max() / logits.std())

    def no_rope(model):
        for name, buffer in model.model.rotary_emb.named_buffers():
            if "inv_freq" in name and "original" not in name:
                buffer.mul_(0.5)

    def wide(model):
        model.config.sliding_window = CONTEXT

    result = {"rope": difference(no_rope)}
    if spec.window:
        result["window"] = difference(wide)
    assert min(result.values()) > 0.1, (spec.name, result)
    return result


def make(spec: Spec, vocabulary):
    path = OUT / f"{spec.name}.gguf"
    model = make_model(spec, vocabulary)
    randomise(spec, model, vocabulary)
    write_file(spec, model, vocabulary, path)
    model = load_file(spec, path, vocabulary)
    text, prompt, continuation, margin, batch = choose_prompt(model, vocabulary)
    ids = prompt + continuation
    logits = logits_of(model, ids)
    assert logits.std() >= 2
    assert logits[len(prompt) - 1:-1].argmax(-1).tolist() == continuation
    with int8_activations(model):
        int8_difference = float((logits_of(model, ids) - logits).abs().max())
    logits.numpy().astype("<f4").tofile(OUT / f"{spec.name}.logits")
    golden = {
        "model": path.name, "prompt": text, "prompt_ids": prompt,
        "continuation_ids": continuation, "continuation": vocabulary.decode(continuation),
        "positions": len(ids), "vocabulary": vocabulary.size,
        "logits_std": round(float(logits.std()), 4), "margin_min": round(margin, 4),
        "int8_difference_max": round(int8_difference, 4),
    }
    (OUT / f"{spec.name}.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")
    print(spec.name, path.stat().st_size, "bytes; prompt", len(prompt), "margin", round(margin, 3),
          "std", round(float(logits.std()), 2), "int8", round(int8_difference, 3), "batch", batch,
          "sensitivity", check_sensitivity(spec, vocabulary, path, ids, logits))
    assert path.stat().st_size <= 400_000
    assert (OUT / f"{spec.name}.logits").stat().st_size <= 200_000


def main():
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    vocabularies = {"llama": tiny_vocabulary.byte_level(38),
                    "gemma3": tiny_vocabulary.sentence_piece(371)}
    names = sys.argv[1:] or [spec.name for spec in SPECS]
    for spec in SPECS:
        if spec.name in names:
            make(spec, vocabularies[spec.architecture])


if __name__ == "__main__":
    main()
