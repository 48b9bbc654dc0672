"""Layouts: what hf_to_gguf.py does to tensors between Hugging Face's form and GGUF's."""

import math

import gguf
import numpy as np
import torch

Q = gguf.GGMLQuantizationType


def add(writer, name, tensor):
    """Matrices as they are, vectors in f32; (blocks, scales) pairs as MXFP4."""
    if isinstance(tensor, np.ndarray):
        writer.add_tensor(name, tensor, raw_dtype=Q.MXFP4)
    elif tensor.ndim == 1 or name.endswith(("_exps.bias", "ffn_gate_inp.weight",
                                            "token_types.weight")):
        writer.add_tensor(name, tensor.float().contiguous().numpy())
    elif tensor.dtype == torch.bfloat16:
        data = tensor.contiguous().view(torch.uint16).numpy().view(np.uint8)
        writer.add_tensor(name, data, raw_dtype=Q.BF16)
    else:
        writer.add_tensor(name, tensor.contiguous().numpy())


# --- rope -----------------------------------------------------------------------------------

def llama3_factors(rope, dims):
    """What each plain frequency is divided by."""
    theta = float(rope["rope_theta"])
    context = rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for i in range(0, dims, 2):
        wave = 2 * math.pi * theta ** (i / dims)
        if wave < context / high:
            factors.append(1.0)
        elif wave > context / low:
            factors.append(float(rope["factor"]))
        else:
            smooth = (context / wave - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return torch.tensor(factors, dtype=torch.float32)


def yarn_range_is_clamped(rope, dims):
    """Whether both ends of the ramp lie outside, so that rounding them changes nothing."""
    def end(rotations):
        ratio = rope["original_max_position_embeddings"] / (rotations * 2 * math.pi)
        return dims * math.log(ratio) / (2 * math.log(rope["rope_theta"]))

    return end(rope.get("beta_fast") or 32) <= 0 and end(rope.get("beta_slow") or 1) >= dims - 1


def longrope_attention_factor(rope, context):
    original = rope["original_max_position_embeddings"]
    factor = rope.get("factor") or context / original
    if rope.get("attention_factor") is not None:
        return float(rope["attention_factor"])
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0


# --- attention ------------------------------------------------------------------------------

def to_pairs(tensor, heads):
    """Rows of a head from halves (i, i + n/2) to neighbours (2i, 2i + 1)."""
    rest = tensor.shape[1:]
    return tensor.reshape(heads, 2, -1, *rest).transpose(1, 2).reshape(-1, *rest)


def split_by_kind(tensor, heads):
    """GPT-NeoX: rows [head][q, k, v][dim] to [q, k, v][head][dim]."""
    rest = tensor.shape[1:]
    return tensor.reshape(heads, 3, -1, *rest).transpose(0, 1).reshape(-1, *rest)


# --- experts --------------------------------------------------------------------------------

def mxfp4(blocks, scales):
    """[expert, row, block, 16] nibbles of neighbours to blocks of a scale and two halves."""
    low, high = blocks & 15, blocks >> 4
    values = torch.stack((low, high), dim=-1).flatten(-2)  # in order, 32 a block
    packed = values[..., :16] | values[..., 16:] << 4
    whole = torch.cat((scales.unsqueeze(-1), packed), dim=-1)
    return whole.flatten(-2).contiguous().numpy()


def merged_experts(tensors, count):
    """Yields tensors, those of the form ….experts.<number>.<name> stacked into one."""
    stacks = {}
    for name, tensor in tensors:
        parts = name.split(".experts.")
        if len(parts) != 2 or not parts[1].split(".")[0].isdigit():
            yield name, tensor
            continue
        number, rest = parts[1].split(".", 1)
        stack = stacks.setdefault(f"{parts[0]}.experts.{rest}", {})
        stack[int(number)] = tensor
        if len(stack) == count:
            yield f"{parts[0]}.experts.{rest}", torch.stack([stack[i] for i in range(count)])


def gpt_oss(converter):
    """Gate and up rows alternate in the source; bf16 experts are [in, out] there."""
    tensors = dict(converter.tensors)
    for name, tensor in tensors.items():
        if name.endswith("_scales"):
            continue
        base = name.removesuffix("_blocks").removesuffix("_bias")
        if ".experts." not in name:
            yield name + (".weight" if name.endswith(".sinks") else ""), tensor
            continue
        if name.endswith("_blocks"):
            rows = (tensor, tensors[f"{base}_scales"])
            pack, suffix = mxfp4, ".weight"
        elif name.endswith("_bias"):
            rows, pack, suffix = (tensor,), lambda t: t, ".bias"
        else:
            rows, pack, suffix = (tensor.transpose(1, 2),), lambda t: t.contiguous(), ".weight"
        if "gate_up_proj" in name:
            for offset, part in ((0, "gate_proj"), (1, "up_proj")):
                yield (base.replace("gate_up_proj", part) + suffix,
                       pack(*(r[:, offset::2] for r in rows)))
        else:
            yield base + suffix, pack(*rows)


# --- gemma 4 --------------------------------------------------------------------------------

def write_gemma4(converter, writer, rope_parameters):
    """Sizes differ between layers with a window and those without, hence the pairs and lists."""
    c = converter.config
    windows = converter.layer_kinds()
    shared = c.get("num_kv_shared_layers") or 0
    wide = converter.layers - shared if c.get("use_double_wide_mlp") else converter.layers
    ffn = c["intermediate_size"]
    writer.add_feed_forward_length([ffn if i < wide else 2 * ffn
                                    for i in range(converter.layers)])
    own, full = converter.kv_heads, converter.global_kv_heads()
    writer.add_head_count_kv([own if window else full for window in windows])
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(c.get("hidden_size_per_layer_input") or 0)
    writer.add_sliding_window(c["sliding_window"])
    writer.add_sliding_window_pattern(windows)
    head, global_head = converter.head_dim, converter.global_head_dim()
    writer.add_key_length(global_head)
    writer.add_value_length(global_head)
    writer.add_key_length_swa(head)
    writer.add_value_length_swa(head)
    if c.get("final_logit_softcapping"):
        writer.add_final_logit_softcapping(c["final_logit_softcapping"])
    if c.get("enable_moe_block"):
        writer.add_expert_count(c["num_experts"])
        writer.add_expert_used_count(c["top_k_experts"])
        writer.add_expert_feed_forward_length(c["moe_intermediate_size"])
    everywhere = rope_parameters(c, "full_attention")
    local = rope_parameters(c, "sliding_attention")
    writer.add_rope_dimension_count(global_head)
    writer.add_rope_dimension_count_swa(head)
    writer.add_rope_freq_base(float(everywhere["rope_theta"]))
    writer.add_rope_freq_base_swa(float(local["rope_theta"]))
    converter.rope_factors["rope_freqs.weight"] = proportional_factors(
        global_head, everywhere["partial_rotary_factor"])


def proportional_factors(dims, share):
    """Frequencies of the pairs beyond the rotated share are divided until they are nothing."""
    rotated = int(share * dims // 2)
    return torch.tensor([1.0] * rotated + [1e30] * (dims // 2 - rotated), dtype=torch.float32)


def gemma4(name, tensor):
    for suffix, wanted in ((".router.scale", "ffn_gate_inp.scale"),
                           (".router.per_expert_scale", "ffn_down_exps.scale")):
        if name.endswith(suffix):
            layer = name.split(".layers.")[1].split(".")[0]
            return f"blk.{layer}.{wanted}", tensor
    if name.endswith("layer_scalar") or ".experts." in name:
        name += ".weight"
    return name, tensor


# --- all ------------------------------------------------------------------------------------

def is_gemma_norm(name):
    return name.endswith("norm.weight")


def renamed(converter, name, tensor):
    """One source tensor in the GGUF layout, as pairs (source name, tensor)."""
    arch, heads = converter.arch, converter.heads
    if arch in ("llama", "smollm3"):
        if ".q_proj." in name:
            tensor = to_pairs(tensor, heads)
        elif ".k_proj." in name:
            tensor = to_pairs(tensor, converter.kv_heads)
    elif arch in ("gemma2", "gemma3") and is_gemma_norm(name):
        tensor = tensor.float() + 1
    elif arch == "gemma4":
        name, tensor = gemma4(name, tensor)
    elif arch == "bert":
        name = name.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias")
        if name.startswith(("pooler.", "cls.")) or name == "embeddings.position_ids":
            return
    elif arch == "gptneox" and ".query_key_value." in name:
        tensor = split_by_kind(tensor, heads)
    elif arch == "gpt2":
        if name.endswith((".attn.bias", ".attn.masked_bias")):
            return
        if not name.startswith(("transformer.", "lm_head.")):
            name = f"transformer.{name}"  # as in the oldest checkpoints
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.T
    yield name, tensor


def arranged(converter):
    """All tensors as pairs (source name, tensor in the GGUF layout)."""
    c = converter.config
    if converter.arch == "gpt-oss":
        source = gpt_oss(converter)
    else:
        count = c.get("num_local_experts") or c.get("num_experts")
        source = merged_experts(converter.tensors.items(), count)
    for name, tensor in source:
        if name in ("lm_head.weight", "embed_out.weight") and converter.tied:
            continue
        yield from renamed(converter, name, tensor)
