"""The checkpoints of make_arch.py whose weights are codes with scales (make_arch_coded.py)."""

from transformers import LlamaConfig, MistralConfig, Qwen3Config

from make_arch_model import VOCABULARY, Spec

ROPE = {"rope_type": "default", "rope_theta": 10000.0}
SHARED = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=2,
              num_hidden_layers=2, max_position_embeddings=256, rms_norm_eps=0.01,
              rope_parameters=ROPE, tie_word_embeddings=False)
FOLDER_ALONE = "codes with scales of a row or block have no form in GGUF"


def specs():
    rest = [{"rope_parameters.rope_theta": 500.0}, {"rms_norm_eps": 1e-6}]
    layer = "model.layers.1"
    weights = [f"{layer}.self_attn.v_proj.weight", f"{layer}.mlp.down_proj.weight"]
    own_head = dict(num_attention_heads=5, num_key_value_heads=1, head_dim=16)
    # Neither heads nor feed-forward are whole blocks.
    yield Spec("llama_fp8", LlamaConfig(**SHARED, **own_head, hidden_size=40,
                                        intermediate_size=56),
               seed=31, gguf=FOLDER_ALONE, mutations=rest + weights)
    # Rows of 64 fill blocks of 32, those of 56 do not.
    whole = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
    yield Spec("llama_int8", LlamaConfig(**SHARED, **whole, intermediate_size=56),
               seed=32, gguf=FOLDER_ALONE, mutations=rest + weights)
    yield Spec("llama_int4", LlamaConfig(**SHARED, **whole, intermediate_size=96),
               seed=33, gguf=FOLDER_ALONE, mutations=rest)
    yield Spec("qwen3_fp8", Qwen3Config(**(SHARED | dict(
        hidden_size=40, num_attention_heads=5, num_key_value_heads=5, head_dim=8,
        intermediate_size=80))), seed=34, centers={"q_norm": 2.2, "k_norm": 2.2},
        gguf=FOLDER_ALONE, mutations=rest + weights)
    yield Spec("mistral_fp8", MistralConfig(**SHARED, **own_head, hidden_size=40,
                                            intermediate_size=72, sliding_window=11),
               seed=35, gguf=FOLDER_ALONE, mutations=rest + weights + [{"sliding_window": None}])
