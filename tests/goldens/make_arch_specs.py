"""The architectures of make_arch.py: sizes, options and the mutations that must be seen."""

import torch
from transformers import (LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config)

import make_arch_coded
import make_arch_specs_coded
import make_arch_specs_dense
import make_arch_specs_images
import make_arch_specs_moe
from make_arch_model import VOCABULARY, Spec

ROPE = {"rope_type": "default", "rope_theta": 10000.0}
TOKENS = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=2)
ATTENTION = "model.layers.1.self_attn"


def llama_config(rope, **changes):
    values = dict(hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16,
                  intermediate_size=56, num_hidden_layers=2, max_position_embeddings=256,
                  rms_norm_eps=0.01, rope_parameters=rope, tie_word_embeddings=True)
    return LlamaConfig(**(TOKENS | values | changes))


def llama_specs():
    own_head = dict(hidden_size=24, num_attention_heads=3, intermediate_size=36,
                    attention_bias=True, mlp_bias=True, tie_word_embeddings=False)
    yield Spec(
        "llama", llama_config(ROPE, **own_head), dtype=torch.float32, template="config",
        mutations=[
            {"rope_parameters.rope_theta": 500.0}, {"rms_norm_eps": 1e-6},
            {"hidden_act": "gelu"}, {"tie_word_embeddings": True},
            {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}},
            *[f"{ATTENTION}.{n}_proj.bias" for n in "qkvo"],
            *[f"model.layers.1.mlp.{n}_proj.bias" for n in ("gate", "up", "down")]])
    yield Spec(
        "llama_linear", llama_config(ROPE | {"rope_type": "linear", "factor": 2.5}), seed=2,
        legacy={"rope_parameters": None, "rope_theta": 10000.0, "dtype": None,
                "torch_dtype": "bfloat16", "rope_scaling": {"type": "linear", "factor": 2.5}},
        mutations=[{"rope_scaling.factor": 1.0}, {"rope_scaling": None}, {"rope_theta": 500.0},
                   {"rms_norm_eps": 1e-6}])
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 24}
    yield Spec(
        # Rows of whole blocks of 32, so that its weights can be quantised.
        "llama_llama3", llama_config(ROPE | llama3, eos_token_id=[2, 0], hidden_size=64,
                                     num_attention_heads=4, num_key_value_heads=2,
                                     intermediate_size=64), dtype=torch.float16,
        shard="40KB", seed=3, tokenizer="llama3",
        legacy={"rope_parameters": None, "rope_theta": 10000.0, "rope_scaling": llama3,
                "dtype": None, "torch_dtype": "float16"},
        mutations=[{"rope_scaling": None}, {"rope_theta": 500.0}, {"rope_scaling.factor": 2.0},
                   {"rope_scaling.low_freq_factor": 0.5}, {"rope_scaling.high_freq_factor": 8.0},
                   {"rope_scaling.original_max_position_embeddings": 48}])
    yarn = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "beta_fast": 0.5,
            "beta_slow": 0.1, "original_max_position_embeddings": 24}
    yarn_mutations = [{"rope_parameters": ROPE | {"rope_theta": 1000.0}},
                      {"rope_parameters.rope_theta": 500.0}, {"rope_parameters.factor": 2.0},
                      {"rope_parameters.beta_fast": None}, {"rope_parameters.beta_slow": None},
                      {"rope_parameters.beta_slow": 0.01},
                      {"rope_parameters.original_max_position_embeddings": 96}]
    yield Spec("llama_yarn", llama_config(yarn), seed=4, mutations=[
        *yarn_mutations, {"rope_parameters.attention_factor": 1.0},
        {"rope_parameters.truncate": False}])
    yield Spec(
        "llama_yarn_mscale", seed=5, gguf="GGUF has no key for truncate or mscale",
        config=llama_config(yarn | {"truncate": False, "mscale": 1.5, "mscale_all_dim": 0.5}),
        mutations=[*yarn_mutations[1:], {"rope_parameters.truncate": True},
                   {"rope_parameters.mscale": 1.0}, {"rope_parameters.mscale_all_dim": 1.0},
                   {"rope_parameters.mscale": None}])
    yield Spec(
        "llama_dynamic", seed=6, gguf="GGUF has no name for dynamic scaling",
        config=llama_config(ROPE | {"rope_type": "dynamic", "factor": 3.0},
                            max_position_embeddings=20),
        notes={"dynamic": "factors of one prefill of the whole sequence, for every position"},
        mutations=[{"rope_parameters": ROPE}, {"rope_parameters.factor": 1.5},
                   {"rope_parameters.rope_theta": 500.0}, {"max_position_embeddings": 30}])
    factors = {"short_factor": [1.0, 1.1, 1.25, 1.5, 1.7, 1.9, 2.2, 2.5],
               "long_factor": [1.3, 1.9, 2.6, 3.5, 4.7, 6.0, 8.0, 9.5]}
    yield Spec(
        "llama_longrope", seed=7, notes={"longrope": ["short", "short", "long"]},
        config=llama_config(ROPE | factors | {"rope_type": "longrope", "factor": 4.0,
                                              "original_max_position_embeddings": 20},
                            max_position_embeddings=80),
        mutations=[{"rope_parameters": ROPE}, {"rope_parameters.factor": 2.0},
                   {"rope_parameters.rope_theta": 500.0},
                   {"rope_parameters.attention_factor": 1.0},
                   {"rope_parameters.original_max_position_embeddings": 64},
                   {"rope_parameters.short_factor": factors["long_factor"]},
                   {"rope_parameters.long_factor": factors["short_factor"]}])


def qwen_specs():
    shared = dict(**TOKENS, hidden_size=48, num_attention_heads=6, num_key_value_heads=2,
                  intermediate_size=56, max_position_embeddings=256, rms_norm_eps=0.01,
                  rope_parameters=ROPE, tie_word_embeddings=True, num_hidden_layers=2)
    common = [{"rope_parameters.rope_theta": 500.0}, {"rms_norm_eps": 1e-6},
              {"hidden_act": "gelu"}]
    biases = [f"{ATTENTION}.{n}_proj.bias" for n in "qkv"]
    sampling = dict(do_sample=True, temperature=0.7, top_p=0.8, top_k=20, repetition_penalty=1.05)
    yield Spec("qwen2", Qwen2Config(**shared), seed=11, generation=sampling,
               mutations=common + biases)
    window = dict(use_sliding_window=True, sliding_window=9, max_window_layers=1)
    yield Spec("qwen2_window", Qwen2Config(**shared, **window), seed=12,
               gguf="GGUF has no form for qwen2 with a window",
               mutations=common + biases + [
                   {"sliding_window": 10},
                   {"use_sliding_window": False,
                    "layer_types": ["full_attention", "full_attention"]},
                   {"layer_types": ["sliding_attention", "sliding_attention"]}])
    yield Spec("qwen3", Qwen3Config(**(shared | dict(
        hidden_size=40, num_attention_heads=3, num_key_value_heads=1, head_dim=24,
        attention_bias=False))), seed=13, centers={"q_norm": 2.2, "k_norm": 2.2},
        mutations=common + [
            f"{ATTENTION}.q_norm.weight", f"{ATTENTION}.k_norm.weight",
            {"rope_parameters": ROPE | {"rope_type": "yarn", "factor": 4.0,
                                        "original_max_position_embeddings": 24}}])


def mistral_specs():
    yield Spec("mistral", MistralConfig(
        **TOKENS, hidden_size=40, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        intermediate_size=72, num_hidden_layers=2, max_position_embeddings=256,
        rms_norm_eps=0.01, rope_parameters=ROPE, sliding_window=11), seed=21,
        notes={"libllama_rows": 11,
               "libllama_why": "its llama architecture reads no attention.sliding_window"},
        legacy={"rope_parameters": None, "rope_theta": 10000.0},
        mutations=[{"rope_theta": 500.0}, {"rms_norm_eps": 1e-6}, {"sliding_window": None},
                   {"sliding_window": 12}, {"hidden_act": "gelu"}, {"tie_word_embeddings": True}])


def all_specs():
    yield from llama_specs()
    yield from qwen_specs()
    yield from mistral_specs()
    yield from make_arch_specs_dense.specs()
    yield from make_arch_specs_moe.specs()
    yield from make_arch_specs_coded.specs()
    yield from make_arch_specs_images.specs()



def after_save(spec, folder):
    """Changes to the saved files that only one architecture needs."""
    if spec.name == "gpt_oss_mxfp4":
        make_arch_specs_moe.write_mxfp4(folder)
    if spec.name in make_arch_coded.FORMS:
        make_arch_coded.write_coded(spec.name, folder)
