"""The further dense architectures of make_arch.py: Gemma, Phi, SmolLM3, OLMo 2, GPT."""

import torch
from transformers import (Gemma2Config, Gemma3TextConfig, GPT2Config, GPTNeoXConfig, Olmo2Config,
                          Phi3Config, SmolLM3Config)

from make_arch_model import VOCABULARY, Spec

ROPE = {"rope_type": "default", "rope_theta": 10000.0}
TOKENS = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=2)
SHARED = dict(**TOKENS, max_position_embeddings=256, rms_norm_eps=0.01)
SLIDING, FULL = "sliding_attention", "full_attention"
THETA = {"rope_parameters.rope_theta": 500.0}
EPS = {"rms_norm_eps": 1e-6}


def gemma2_specs():
    yield Spec(
        "gemma2", Gemma2Config(
            **SHARED, hidden_size=36, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
            intermediate_size=56, num_hidden_layers=4, rope_parameters=ROPE, sliding_window=10,
            query_pre_attn_scalar=16, attn_logit_softcapping=8.0, final_logit_softcapping=9.0,
            layer_types=[SLIDING, FULL] * 2),
        seed=31, embed_std=0.1, norm_offset=1.0, attention_gain=2.4,
        mutations=[THETA, EPS, {"sliding_window": 11}, {"layer_types": [FULL] * 4},
                   {"layer_types": [FULL, SLIDING] * 2}, {"attn_logit_softcapping": 16.0},
                   {"final_logit_softcapping": 18.0}, {"query_pre_attn_scalar": 24},
                   {"hidden_activation": "silu"}])


GEMMA3_ROPE = {FULL: {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0},
               SLIDING: ROPE}


def gemma3_config(**changes):
    values = dict(hidden_size=40, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                  intermediate_size=52, num_hidden_layers=3, sliding_window=8,
                  query_pre_attn_scalar=16, rope_parameters=GEMMA3_ROPE,
                  layer_types=[SLIDING, SLIDING, FULL])
    return Gemma3TextConfig(**SHARED, **(values | changes))


def gemma3_specs():
    style = dict(embed_std=0.1, norm_offset=1.0, centers={"q_norm": 1.7, "k_norm": 1.7})
    full, sliding = f"rope_parameters.{FULL}", f"rope_parameters.{SLIDING}"
    last = "model.layers.2"
    yield Spec(
        "gemma3", gemma3_config(), seed=32, **style,
        mutations=[EPS, {f"{full}.rope_theta": 500.0}, {f"{sliding}.rope_theta": 500.0},
                   {f"{full}.factor": 2.0}, {full: ROPE | {"rope_theta": 1000000.0}},
                   {"sliding_window": 9}, {"layer_types": [SLIDING, FULL, FULL]},
                   {"query_pre_attn_scalar": 24},
                   {"final_logit_softcapping": 9.0}, {"hidden_activation": "silu"},
                   f"{last}.self_attn.q_norm.weight", f"{last}.self_attn.k_norm.weight",
                   f"{last}.post_attention_layernorm.weight",
                   f"{last}.pre_feedforward_layernorm.weight",
                   f"{last}.post_feedforward_layernorm.weight"])
    yield Spec(
        "gemma3_legacy", gemma3_config(num_hidden_layers=3, layer_types=[SLIDING, SLIDING, FULL]),
        seed=33, dtype=torch.float16, **style,
        legacy={"rope_parameters": None, "layer_types": None, "_sliding_window_pattern": None,
                "sliding_window_pattern": 3, "rope_theta": 1000000.0, "dtype": None,
                "rope_local_base_freq": 10000.0, "torch_dtype": "float16",
                "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        mutations=[{"rope_theta": 500.0}, {"rope_local_base_freq": 500.0},
                   {"rope_scaling.factor": 2.0}, {"rope_scaling": None},
                   {"sliding_window_pattern": 2}, {"sliding_window": 9}])


def phi_specs():
    short = [1.0, 1.1, 1.25, 1.5, 1.7, 1.9]
    long = [1.3, 1.9, 2.6, 3.5, 4.7, 6.0]
    shared = dict(hidden_size=48, num_attention_heads=3, num_key_value_heads=1,
                  intermediate_size=56, num_hidden_layers=2)
    rope = ROPE | {"rope_type": "longrope", "short_factor": short, "long_factor": long,
                   "partial_rotary_factor": 0.75, "original_max_position_embeddings": 20}
    scaling = {"type": "longrope", "short_factor": short, "long_factor": long}
    qkv = "model.layers.1.self_attn.qkv_proj.weight"
    yield Spec(
        "phi3", seed=41, notes={"longrope": ["short", "short", "long"]},
        config=Phi3Config(**(SHARED | {"max_position_embeddings": 80}), **shared,
                          rope_parameters=rope, original_max_position_embeddings=20,
                          tie_word_embeddings=True),
        legacy={"rope_parameters": None, "rope_theta": 10000.0, "rope_scaling": scaling,
                "partial_rotary_factor": 0.75, "original_max_position_embeddings": 20},
        mutations=[{"rope_theta": 500.0}, EPS, {"rope_scaling": None},
                   {"rope_scaling.short_factor": long}, {"rope_scaling.long_factor": short},
                   {"original_max_position_embeddings": 60}, {"max_position_embeddings": 320},
                   {"partial_rotary_factor": 0.5, "rope_scaling": None},
                   {"hidden_act": "gelu"}, qkv])
    yield Spec(
        "phi3_window", seed=42, dtype=torch.float16,
        notes={"libllama_rows": 9, "libllama_why": "its phi3 architecture has no window"},
        config=Phi3Config(**SHARED, **(shared | {"hidden_size": 40, "num_attention_heads": 5}),
                          rope_parameters=ROPE | {"partial_rotary_factor": 1.0},
                          sliding_window=9),
        mutations=[THETA, EPS, {"sliding_window": 10}, {"sliding_window": None},
                   {"tie_word_embeddings": True}, {"rope_parameters.partial_rotary_factor": 0.5}])


def smollm3_specs():
    yield Spec(
        "smollm3", SmolLM3Config(
            **SHARED, hidden_size=48, num_attention_heads=3, num_key_value_heads=1,
            intermediate_size=40, num_hidden_layers=4, rope_parameters=ROPE,
            tie_word_embeddings=True),
        seed=51, attention_gain=1.9,
        legacy={"rope_parameters": None, "rope_theta": 10000.0},
        mutations=[{"rope_theta": 500.0}, EPS, {"no_rope_layers": [1, 1, 1, 1]},
                   {"no_rope_layers": [1, 1, 0, 1]}, {"hidden_act": "gelu"},
                   {"no_rope_layers": None, "no_rope_layer_interval": 2},
                   {"use_sliding_window": True, "sliding_window": 9,
                    "layer_types": [FULL, FULL, FULL, SLIDING]}])


def olmo2_specs():
    layer = "model.layers.1"
    yield Spec(
        "olmo2", Olmo2Config(
            **SHARED, hidden_size=48, num_attention_heads=3, num_key_value_heads=1,
            intermediate_size=56, num_hidden_layers=2, rope_parameters=ROPE,
            tie_word_embeddings=False),
        seed=52, centers={"q_norm": 1.8, "k_norm": 1.8},
        mutations=[THETA, EPS, {"tie_word_embeddings": True}, {"hidden_act": "gelu"},
                   f"{layer}.self_attn.q_norm.weight", f"{layer}.self_attn.k_norm.weight",
                   f"{layer}.post_attention_layernorm.weight",
                   f"{layer}.post_feedforward_layernorm.weight",
                   {"rope_parameters": ROPE | {"rope_type": "linear", "factor": 3.0}}])


def gpt_specs():
    block = "transformer.h.1"
    yield Spec(
        "gpt2", GPT2Config(
            **TOKENS, n_positions=64, n_embd=40, n_layer=2, n_head=5, n_inner=72,
            layer_norm_epsilon=0.01),
        seed=61, attention_gain=2.0,
        mutations=[{"layer_norm_epsilon": 1e-6}, {"activation_function": "relu"},
                   {"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True},
                   "transformer.wpe.weight", "transformer.ln_f.bias", f"{block}.ln_1.bias",
                   f"{block}.ln_2.bias", f"{block}.attn.c_attn.bias", f"{block}.attn.c_proj.bias",
                   f"{block}.mlp.c_fc.bias", f"{block}.mlp.c_proj.bias"])
    layer = "gpt_neox.layers.1"
    neox = dict(**TOKENS, max_position_embeddings=256, hidden_size=48, num_attention_heads=2,
                intermediate_size=60, num_hidden_layers=2, layer_norm_eps=0.01)
    rope = ROPE | {"partial_rotary_factor": 0.25}
    yield Spec(
        "gpt_neox", GPTNeoXConfig(**neox, rope_parameters=rope), seed=62,
        legacy={"rope_parameters": None, "rotary_emb_base": 10000, "rotary_pct": 0.25},
        mutations=[{"rotary_emb_base": 20}, {"rotary_pct": 0.5}, {"layer_norm_eps": 1e-6},
                   {"use_parallel_residual": False}, {"hidden_act": "relu"},
                   {"tie_word_embeddings": True}, "gpt_neox.final_layer_norm.bias",
                   f"{layer}.input_layernorm.bias", f"{layer}.post_attention_layernorm.bias",
                   f"{layer}.attention.query_key_value.bias", f"{layer}.attention.dense.bias",
                   f"{layer}.mlp.dense_h_to_4h.bias", f"{layer}.mlp.dense_4h_to_h.bias"])
    yield Spec(
        "gpt_neox_serial", seed=63, dtype=torch.float16, template="none",
        config=GPTNeoXConfig(**neox, use_parallel_residual=False,
                             rope_parameters=ROPE | {"partial_rotary_factor": 1.0}),
        mutations=[THETA, {"use_parallel_residual": True},
                   {"rope_parameters.partial_rotary_factor": 0.5}])


def specs():
    yield from gemma2_specs()
    yield from gemma3_specs()
    yield from phi_specs()
    yield from smollm3_specs()
    yield from olmo2_specs()
    yield from gpt_specs()
