"""Mixtures of experts and Gemma 4 for make_arch.py, with the MXFP4 form of gpt-oss."""

import json

import safetensors.torch
import torch
from transformers import Gemma4TextConfig, GptOssConfig, MixtralConfig, Qwen3MoeConfig

from make_arch_model import VOCABULARY, Spec

ROPE = {"rope_type": "default", "rope_theta": 10000.0}
TOKENS = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=2)
SHARED = dict(**TOKENS, max_position_embeddings=256, rms_norm_eps=0.01)
SLIDING, FULL = "sliding_attention", "full_attention"
THETA = {"rope_parameters.rope_theta": 500.0}
EPS = {"rms_norm_eps": 1e-6}
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def mixtral_specs():
    yield Spec(
        "mixtral", MixtralConfig(
            **SHARED, hidden_size=36, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
            intermediate_size=28, num_hidden_layers=2, rope_parameters=ROPE,
            num_local_experts=4, num_experts_per_tok=2),
        seed=71,
        mutations=[THETA, EPS, {"num_experts_per_tok": 1}, {"num_experts_per_tok": 3},
                   {"sliding_window": 9}, {"hidden_act": "gelu"}, {"tie_word_embeddings": True}])


def qwen3_moe_specs():
    style = dict(centers={"q_norm": 1.8, "k_norm": 1.8})
    shared = dict(**SHARED, hidden_size=36, num_attention_heads=3, num_key_value_heads=1,
                  head_dim=16, intermediate_size=44, moe_intermediate_size=20,
                  num_hidden_layers=2, rope_parameters=ROPE, num_experts=6,
                  num_experts_per_tok=3)
    common = [THETA, EPS, {"num_experts_per_tok": 2}, {"num_experts_per_tok": 4},
              {"hidden_act": "gelu"}, {"tie_word_embeddings": True}]
    yield Spec(
        "qwen3_moe", Qwen3MoeConfig(**shared, norm_topk_prob=True), seed=72, **style,
        mutations=[*common, {"norm_topk_prob": False}, "model.layers.1.self_attn.q_norm.weight",
                   "model.layers.1.self_attn.k_norm.weight"])
    yield Spec(
        "qwen3_moe_dense", seed=73, **style, gguf="GGUF has no form for qwen3moe with dense "
        "layers or with router weights as they are",
        legacy={"num_local_experts": None, "num_experts": 6, "rope_parameters": None,
                "rope_theta": 10000.0},
        config=Qwen3MoeConfig(**shared, norm_topk_prob=False, mlp_only_layers=[0]),
        mutations=[{"rope_theta": 500.0}, *common[1:], {"norm_topk_prob": True}])


def gpt_oss_mutations():
    layer = "model.layers.1"
    attention, mlp = f"{layer}.self_attn", f"{layer}.mlp"
    return [
        THETA, EPS, {"rope_parameters": ROPE}, {"rope_parameters.factor": 2.0},
        {"rope_parameters.beta_fast": None}, {"rope_parameters.beta_slow": None},
        {"rope_parameters.original_max_position_embeddings": 96},
        {"sliding_window": 11}, {"layer_types": [FULL, FULL]},
        {"layer_types": [SLIDING, SLIDING]}, {"num_experts_per_tok": 1},
        {"num_experts_per_tok": 3}, {"swiglu_limit": 3.0}, {"swiglu_limit": 50.0},
        {"swiglu_alpha": 1.0}, f"{attention}.sinks", f"{mlp}.router.bias",
        f"{mlp}.experts.gate_up_proj_bias", f"{mlp}.experts.down_proj_bias",
        *[f"{attention}.{n}_proj.bias" for n in "qkvo"]]


def gpt_oss_specs():
    rope = ROPE | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24,
                   "rope_theta": 1000.0, "beta_fast": 0.5, "beta_slow": 0.1, "truncate": False}
    shared = dict(num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                  num_hidden_layers=2, sliding_window=10, num_local_experts=4,
                  num_experts_per_tok=2, layer_types=[SLIDING, FULL])
    yield Spec(
        "gpt_oss", GptOssConfig(**SHARED, **shared, hidden_size=40, intermediate_size=24,
                                rope_parameters=rope, tie_word_embeddings=False),
        seed=81, mlp_gain=4.0,
        notes={"libllama_mutation": {"rope_parameters.truncate": True},
               "libllama_why": "it rounds yarn's range, so the logits kept for this mutation "
                               "are its logits"},
        mutations=[*gpt_oss_mutations(), {"tie_word_embeddings": True},
                   {"rope_parameters.truncate": True}])
    clamped = rope | {"rope_theta": 20.0, "beta_fast": 40.0, "beta_slow": 0.01}
    yield Spec(
        "gpt_oss_mxfp4", GptOssConfig(
            **SHARED, **(shared | dict(num_attention_heads=3, num_key_value_heads=1)),
            hidden_size=64, intermediate_size=32, rope_parameters=clamped,
            tie_word_embeddings=False),
        seed=82, mlp_gain=4.0, mutations=[
            {"rope_parameters": ROPE}, {"rope_parameters.factor": 2.0}, {"sliding_window": 11},
            {"swiglu_limit": 3.0}, {"num_experts_per_tok": 1}, "model.layers.1.self_attn.sinks"])


def gemma4_specs():
    style = dict(embed_std=0.3, mlp_gain=1.0, centers={"q_norm": 0.85, "k_norm": 0.85})
    rope = {FULL: {"rope_type": "proportional", "rope_theta": 1000.0,
                   "partial_rotary_factor": 0.5}, SLIDING: ROPE}
    full, sliding = f"rope_parameters.{FULL}", f"rope_parameters.{SLIDING}"
    shared = dict(**SHARED, hidden_size=32, num_attention_heads=2, num_key_value_heads=1,
                  head_dim=16, global_head_dim=24, intermediate_size=28, sliding_window=9,
                  rope_parameters=rope)
    last = "model.layers.4"
    yield Spec(
        "gemma4", Gemma4TextConfig(
            **shared, num_hidden_layers=5, layer_types=[SLIDING, SLIDING, FULL, SLIDING, FULL],
            num_kv_shared_layers=2, use_double_wide_mlp=True, hidden_size_per_layer_input=6,
            vocab_size_per_layer_input=VOCABULARY, final_logit_softcapping=9.0),
        seed=91, **style, legacy={"per_layer_config": None, "global_head_dim": 24},
        mutations=[EPS, {f"{full}.rope_theta": 50.0}, {f"{sliding}.rope_theta": 500.0},
                   {f"{full}.partial_rotary_factor": 1.0}, {"sliding_window": 10},
                   {"final_logit_softcapping": 18.0}, {"final_logit_softcapping": None},
                   {"hidden_activation": "silu"}, f"{last}.layer_scalar",
                   f"{last}.self_attn.q_norm.weight", "model.layers.2.self_attn.k_norm.weight",
                   f"{last}.post_attention_layernorm.weight",
                   f"{last}.pre_feedforward_layernorm.weight",
                   f"{last}.post_feedforward_layernorm.weight",
                   f"{last}.post_per_layer_input_norm.weight",
                   "model.embed_tokens_per_layer.weight",
                   "model.per_layer_model_projection.weight"])
    experts = shared | dict(num_attention_heads=4, num_key_value_heads=2)
    last = "model.layers.2"
    yield Spec(
        "gemma4_moe", Gemma4TextConfig(
            **experts, num_hidden_layers=3, layer_types=[SLIDING, SLIDING, FULL],
            hidden_size_per_layer_input=0, vocab_size_per_layer_input=VOCABULARY,
            attention_k_eq_v=True, num_global_key_value_heads=1, enable_moe_block=True,
            num_experts=4, top_k_experts=2, moe_intermediate_size=20,
            final_logit_softcapping=9.0),
        seed=92, dtype=torch.float16, router_gain=16.0, **style,
        mutations=[EPS, {f"{full}.rope_theta": 50.0}, {"top_k_experts": 1},
                   {"top_k_experts": 3}, {"sliding_window": 10},
                   f"{last}.pre_feedforward_layernorm_2.weight",
                   f"{last}.post_feedforward_layernorm_1.weight",
                   f"{last}.post_feedforward_layernorm_2.weight",
                   f"{last}.router.per_expert_scale"])


def specs():
    yield from mixtral_specs()
    yield from qwen3_moe_specs()
    yield from gpt_oss_specs()
    yield from gemma4_specs()


# --- MXFP4 ----------------------------------------------------------------------------------

def to_mxfp4(weight):
    """[expert, in, out] to blocks of neighbours' nibbles and their scales, rows along `in`."""
    rows = weight.float().transpose(1, 2)
    rows = rows.unflatten(-1, (-1, 32))
    exponent = (rows.abs().amax(-1).clamp_min(2.0**-100).log2().floor() - 2).clamp(-127, 127)
    scaled = rows / exponent.exp2().unsqueeze(-1)
    code = (scaled.abs().unsqueeze(-1) - E2M1).abs().argmin(-1) + 8 * (scaled < 0)
    code = code.to(torch.uint8)
    return code[..., 0::2] | code[..., 1::2] << 4, (exponent + 127).to(torch.uint8)


def write_mxfp4(folder):
    """Turns the experts of a saved gpt-oss into the form in which the real ones are released."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    for name in [n for n in tensors if n.endswith(("gate_up_proj", "down_proj"))]:
        blocks, scales = to_mxfp4(tensors.pop(name))
        tensors |= {f"{name}_blocks": blocks.contiguous(), f"{name}_scales": scales.contiguous()}
    safetensors.torch.save_file(tensors, path, {"format": "pt"})
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"] = {
        "quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
            "lm_head"]}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
