#!/usr/bin/env python3
"""Converts a Hugging Face folder (config.json, *.safetensors, tokenizer.json) to a GGUF file.

Made with gguf 0.19.0, torch 2.15.0, safetensors 0.8.0:  python hf_to_gguf.py FOLDER OUT.gguf

Values stay as they are: bf16, f16 and f32 matrices keep their type, vectors become f32, MXFP4
experts are re-packed bit by bit. Tensor names come from the gguf package's map; the metadata keys
and the changes of layout follow what readers of the format expect of each architecture. What GGUF
cannot say (a rope scaling type without a name, a dense layer among experts, …) is an error.
"""

import json
import pathlib
import sys

import gguf
import torch
from safetensors import safe_open

import hf_to_gguf_tensors as layout
import hf_to_gguf_tokenizer as tokenizer

# Hugging Face model_type -> GGUF architecture.
ARCHITECTURES = {
    "llama": "llama", "mistral": "llama", "mixtral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe", "gemma2": "gemma2", "gemma3_text": "gemma3",
    "gemma4_text": "gemma4", "phi3": "phi3", "smollm3": "smollm3", "olmo2": "olmo2",
    "gpt2": "gpt2", "gpt_neox": "gptneox", "gpt_oss": "gpt-oss", "bert": "bert",
}
# Tied where the config says nothing.
TIED = ("gemma2", "gemma3_text", "gemma4_text", "gpt2", "smollm3", "bert")
# Where the config has none.
ROPE_THETA = {"mixtral": 1e6, "gpt_oss": 150000.0, "smollm3": 2e6, "gemma3_text": 1e6}


class Refused(Exception):
    """What the folder says has no form in GGUF."""


def rope_parameters(config, layer_type=None):
    """The rope settings of a layer type, from the nested form or from the older flat keys."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    if layer_type is not None and layer_type in rope:
        rope = dict(rope[layer_type])
    elif layer_type == "sliding_attention":
        rope = {"rope_theta": config.get("rope_local_base_freq", 10000.0)}
    rope.setdefault("rope_type", rope.pop("type", "default"))
    if config["model_type"] == "phi3" and rope["rope_type"] in ("su", "yarn"):
        rope["rope_type"] = "longrope"  # its older names
    theta = config.get("rope_theta", config.get("rotary_emb_base"))
    if theta is None:
        theta = ROPE_THETA.get(config["model_type"], 10000.0)
    rope.setdefault("rope_theta", theta)
    partial = config.get("partial_rotary_factor", config.get("rotary_pct", 1.0))
    rope.setdefault("partial_rotary_factor", partial)
    if "original_max_position_embeddings" in config:
        rope["original_max_position_embeddings"] = config["original_max_position_embeddings"]
    rope.setdefault("original_max_position_embeddings", config.get("max_position_embeddings"))
    return rope


def read_tensors(folder):
    """{name: tensor} of all shards; the index names them where there is more than one."""
    index = folder / "model.safetensors.index.json"
    files = ["model.safetensors"]
    if index.exists():
        files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    tensors = {}
    for name in files:
        with safe_open(folder / name, "pt") as file:
            tensors |= {key: file.get_tensor(key) for key in file.keys()}
    return tensors


class Converter:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.config = json.loads((self.folder / "config.json").read_text())
        kind = self.config["model_type"]
        if kind not in ARCHITECTURES:
            raise Refused(f"model_type {kind!r} is not known")
        coded = self.config.get("quantization_config", {}).get("quant_method")
        if coded not in (None, "mxfp4"):
            raise Refused(f"weights quantised by {coded} have no form in GGUF")
        if self.config.get("scale_attn_by_inverse_layer_idx"):
            raise Refused("an attention scale that falls with the layer has no form in GGUF")
        self.kind = kind
        self.arch = ARCHITECTURES[kind]
        self.layers = self.first("num_hidden_layers", "n_layer")
        self.heads = self.first("num_attention_heads", "n_head")
        self.hidden = self.first("hidden_size", "n_embd")
        self.kv_heads = self.config.get("num_key_value_heads") or self.heads
        self.head_dim = self.config.get("head_dim") or self.hidden // self.heads
        self.tied = self.config.get("tie_word_embeddings", kind in TIED)
        self.tensors = read_tensors(self.folder)
        self.rope_factors = {}  # further tensors that the rope scaling needs

    def first(self, *keys, default=None):
        for key in keys:
            if self.config.get(key) is not None:
                return self.config[key]
        if default is None:
            raise Refused(f"config.json has none of {keys}")
        return default

    # --- metadata ---------------------------------------------------------------------------

    def write_metadata(self, writer):
        c = self.config
        writer.add_name(self.folder.name)
        writer.add_context_length(self.first("max_position_embeddings", "n_positions"))
        writer.add_embedding_length(self.hidden)
        writer.add_block_count(self.layers)
        writer.add_head_count(self.heads)
        writer.add_vocab_size(c["vocab_size"])
        if self.arch not in ("gpt2", "gptneox", "bert"):
            self.write_kv_heads(writer)
            writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
        else:
            writer.add_layer_norm_eps(self.first("layer_norm_eps", "layer_norm_epsilon"))
        self.write_ffn(writer)
        if self.arch not in ("gpt2", "gemma4", "bert"):
            self.write_rope(writer, "full_attention" if self.arch == "gemma3" else None)
        extra = getattr(self, f"write_{self.arch.replace('-', '_')}", None)
        if extra is not None:
            extra(writer)

    def write_kv_heads(self, writer):
        if self.arch == "gemma4":
            return
        writer.add_head_count_kv(self.kv_heads)
        if self.config.get("head_dim"):
            writer.add_key_length(self.head_dim)
            writer.add_value_length(self.head_dim)

    def write_ffn(self, writer):
        ffn = self.config.get("intermediate_size") or self.config.get("n_inner") or 4 * self.hidden
        if self.arch != "gemma4":
            writer.add_feed_forward_length(ffn)
        activation = self.first("hidden_act", "hidden_activation", "activation_function")
        wanted = {"gpt2": "gelu_new", "gptneox": "gelu", "bert": "gelu", "gemma2": "gelu_pytorch_tanh",
                  "gemma3": "gelu_pytorch_tanh", "gemma4": "gelu_pytorch_tanh"}
        accepted = {wanted.get(self.arch, "silu")}
        if self.arch == "gpt2":
            accepted |= {"gelu_fast", "gelu_pytorch_tanh"}  # the same function
        if activation not in accepted:
            raise Refused(f"activation {activation!r} has no form for {self.arch}")

    def write_rope(self, writer, layer_type=None):
        rope = rope_parameters(self.config, layer_type)
        dims = int(self.head_dim * rope["partial_rotary_factor"])
        writer.add_rope_dimension_count(dims)
        writer.add_rope_freq_base(float(rope["rope_theta"]))
        kind = rope["rope_type"]
        if kind == "default":
            return
        if kind == "linear":
            writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            writer.add_rope_scaling_factor(float(rope["factor"]))
        elif kind == "llama3":
            self.rope_factors["rope_freqs.weight"] = layout.llama3_factors(rope, dims)
        elif kind == "yarn":
            self.write_yarn(writer, rope)
        elif kind == "longrope":
            self.write_longrope(writer, rope)
        else:
            raise Refused(f"rope type {kind!r} has no form in GGUF")

    def write_yarn(self, writer, rope):
        # No key tells whether the range is rounded: only gpt-oss files mean that it is not.
        rounded = rope.get("truncate", True)
        if rounded == (self.arch == "gpt-oss") and not layout.yarn_range_is_clamped(
                rope, self.head_dim):
            raise Refused(f"{self.arch} with yarn truncate {rounded} has no form in GGUF")
        if any(rope.get(k) for k in ("attention_factor", "mscale", "mscale_all_dim")):
            raise Refused("yarn with its own attention factor has no form in GGUF")
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(float(rope["factor"]))
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if rope.get("beta_fast"):
            writer.add_rope_scaling_yarn_beta_fast(float(rope["beta_fast"]))
        if rope.get("beta_slow"):
            writer.add_rope_scaling_yarn_beta_slow(float(rope["beta_slow"]))

    def write_longrope(self, writer, rope):
        attention = layout.longrope_attention_factor(rope, self.config["max_position_embeddings"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_attn_factors(attention)
        for name in ("long", "short"):
            self.rope_factors[f"rope_factors_{name}.weight"] = torch.tensor(
                rope[f"{name}_factor"], dtype=torch.float32)

    def write_window(self, writer):
        if self.config.get("sliding_window"):
            writer.add_sliding_window(self.config["sliding_window"])

    def write_experts(self, writer, count):
        writer.add_expert_count(count)
        writer.add_expert_used_count(self.config["num_experts_per_tok"])

    def layer_kinds(self):
        """True where a layer has a window."""
        kinds = self.config.get("layer_types")
        if kinds is None:
            step = self.config.get("sliding_window_pattern")
            step = step or {"gemma2": 2, "gpt_oss": 2}.get(self.kind, 6)
            return [(i + 1) % step != 0 for i in range(self.layers)]
        return [kind == "sliding_attention" for kind in kinds]

    def write_llama(self, writer):
        if self.kind == "mixtral":
            self.write_experts(writer, self.config["num_local_experts"])
        self.write_window(writer)

    def refuse_windows(self):
        if self.config.get("use_sliding_window"):
            raise Refused(f"{self.arch} with a window has no form in GGUF")

    def write_qwen2(self, _):
        self.refuse_windows()

    def write_qwen3(self, _):
        self.refuse_windows()

    def write_qwen3moe(self, writer):
        c = self.config
        self.refuse_windows()
        if c.get("mlp_only_layers") or c.get("decoder_sparse_step", 1) != 1:
            raise Refused("qwen3moe with dense layers has no form in GGUF")
        if not c["norm_topk_prob"]:
            raise Refused("qwen3moe without normalised router weights has no form in GGUF")
        self.write_experts(writer, self.first("num_local_experts", "num_experts"))
        writer.add_expert_feed_forward_length(c["moe_intermediate_size"])

    def refuse_scalar(self):
        if self.config["query_pre_attn_scalar"] != self.head_dim:
            raise Refused("query_pre_attn_scalar other than head_dim has no form in GGUF")

    def write_gemma2(self, writer):
        self.refuse_scalar()
        self.write_window(writer)
        writer.add_attn_logit_softcapping(self.config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(self.config["final_logit_softcapping"])
        if self.layer_kinds() != [i % 2 == 0 for i in range(self.layers)]:
            raise Refused("gemma2 with layers that do not alternate has no form in GGUF")

    def write_gemma3(self, writer):
        self.refuse_scalar()
        self.write_window(writer)
        if self.config.get("final_logit_softcapping"):
            writer.add_final_logit_softcapping(self.config["final_logit_softcapping"])
        if self.config.get("attn_logit_softcapping"):
            raise Refused("gemma3 with capped attention has no form in GGUF")
        kinds = self.layer_kinds()
        pattern = next(n for n in range(1, self.layers + 2)
                       if kinds == [(i + 1) % n != 0 for i in range(self.layers)])
        writer.add_sliding_window_pattern(pattern)
        writer.add_rope_freq_base_swa(
            float(rope_parameters(self.config, "sliding_attention")["rope_theta"]))

    def write_phi3(self, writer):
        self.write_window(writer)

    def write_smollm3(self, _):
        if self.config["no_rope_layers"] != [int((i + 1) % 4 != 0) for i in range(self.layers)]:
            raise Refused("smollm3 with another step of layers without rope has no form in GGUF")

    def write_gptneox(self, writer):
        writer.add_parallel_residual(self.config.get("use_parallel_residual", True))

    def write_bert(self, writer):
        writer.add_causal_attention(False)
        writer.add_token_type_count(self.config["type_vocab_size"])
        pooling = self.folder / "1_Pooling" / "config.json"
        modes = json.loads(pooling.read_text()) if pooling.exists() else {}
        for mode, kind in (("mean_tokens", gguf.PoolingType.MEAN),
                           ("cls_token", gguf.PoolingType.CLS),
                           ("lasttoken", gguf.PoolingType.LAST)):
            if modes.get(f"pooling_mode_{mode}"):
                writer.add_pooling_type(kind)

    def write_gpt_oss(self, writer):
        self.write_window(writer)
        self.write_experts(writer, self.config["num_local_experts"])
        writer.add_expert_feed_forward_length(self.config["intermediate_size"])
        if self.layer_kinds() != [i % 2 == 0 for i in range(self.layers)]:
            raise Refused("gpt-oss with layers that do not alternate has no form in GGUF")

    def of_full_layers(self, key, default):
        """A size of the layers without a window, from either form of the config."""
        for layer in (self.config.get("per_layer_config") or {}).values():
            if key in layer:
                return layer[key]
        return default

    def global_head_dim(self):
        return self.config.get("global_head_dim") or self.of_full_layers("head_dim", self.head_dim)

    def global_kv_heads(self):
        own = self.config.get("num_global_key_value_heads")
        if own and self.config.get("attention_k_eq_v"):
            return own
        return self.of_full_layers("num_key_value_heads", self.kv_heads)

    def write_gemma4(self, writer):
        layout.write_gemma4(self, writer, rope_parameters)

    # --- tensors ----------------------------------------------------------------------------

    def gguf_tensors(self):
        """Pairs (GGUF name, tensor) in the layout that readers expect."""
        names = gguf.get_tensor_name_map(
            {v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[self.arch], self.layers)
        for name, tensor in layout.arranged(self):
            found = names.get_name(name, try_suffixes=(".weight", ".bias"))
            if name.startswith("blk."):
                found = name
            if found is None:
                raise Refused(f"tensor {name!r} has no name in GGUF")
            yield found, tensor

    def write(self, path):
        writer = gguf.GGUFWriter(path, self.arch)
        self.write_metadata(writer)
        tokenizer.write(self.folder, self.config, writer)
        for name, factors in self.rope_factors.items():
            writer.add_tensor(name, factors.numpy())
        for name, tensor in self.gguf_tensors():
            layout.add(writer, name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def convert(folder, path):
    Converter(folder).write(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: hf_to_gguf.py FOLDER OUT.gguf")
    try:
        convert(sys.argv[1], sys.argv[2])
    except Refused as error:
        raise SystemExit(f"{sys.argv[1]}: {error}")
