"""Changes to config.json that change nothing: defaults left out, and the other form of rope keys.

For make_arch.py: {checkpoint: [{path: value, ...}, ...]}. They go to `same` in golden.json.
"""

PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
OLD_PLAIN = {"rope_parameters": None, "rope_theta": 10000.0}
NEW_PLAIN = {"rope_theta": None, "rope_parameters": PLAIN}
LINEAR = {"factor": 2.5}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 24}
YARN = {"factor": 4.0, "beta_fast": 0.5, "beta_slow": 0.1,
        "original_max_position_embeddings": 24}
LONGROPE = {"short_factor": [1.0, 1.1, 1.25, 1.5, 1.7, 1.9],
            "long_factor": [1.3, 1.9, 2.6, 3.5, 4.7, 6.0]}
FULL, SLIDING = "full_attention", "sliding_attention"
GEMMA3 = {FULL: {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}, SLIDING: PLAIN}
GEMMA3_OLD = {"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
              "rope_scaling": {"rope_type": "linear", "factor": 8.0}}

SAME = {
    "llama": [OLD_PLAIN, {"rope_parameters": None}, {"rope_parameters.rope_theta": None}],
    "llama_linear": [
        {"rope_theta": None},
        {"rope_scaling": LINEAR | {"rope_type": "linear"}},
        {"rope_scaling": None, "rope_theta": None, "rope_parameters": LINEAR | {
            "rope_type": "linear", "rope_theta": 10000.0}}],
    "llama_llama3": [{"rope_scaling": None, "rope_theta": None, "rope_parameters": LLAMA3 | {
        "rope_type": "llama3", "rope_theta": 10000.0}}],
    "llama_yarn": [
        {"rope_parameters.truncate": True},
        {"rope_parameters": None, "rope_theta": 1000.0, "rope_scaling": YARN | {"type": "yarn"}}],
    "mistral": [NEW_PLAIN],
    "qwen2": [OLD_PLAIN, {"layer_types": None}],
    "qwen2_window": [OLD_PLAIN, {"layer_types": None}],
    "qwen3": [OLD_PLAIN, {"layer_types": None}],
    "gemma2": [OLD_PLAIN, {"layer_types": None}, {"tie_word_embeddings": None}],
    "gemma3": [GEMMA3_OLD | {"rope_parameters": None}, {"tie_word_embeddings": None},
               {"layer_types": None, "sliding_window_pattern": 3}],
    "gemma3_legacy": [{"rope_theta": None}, {"rope_local_base_freq": None},
                      dict.fromkeys(GEMMA3_OLD) | {"rope_parameters": GEMMA3}],
    "phi3": [
        {"rope_scaling": None, "rope_theta": None, "partial_rotary_factor": None,
         "rope_parameters": LONGROPE | {
             "rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
             "original_max_position_embeddings": 20}}],
    "phi3_window": [OLD_PLAIN],
    "smollm3": [NEW_PLAIN, {"no_rope_layers": None}, {"layer_types": None}],
    "olmo2": [OLD_PLAIN],
    "gpt2": [{"tie_word_embeddings": None}, {"scale_attn_weights": None}],
    "gpt_neox": [{"rotary_pct": None}, {"rotary_emb_base": None}, {"use_parallel_residual": None},
                 {"rotary_pct": None, "rotary_emb_base": None, "rope_parameters": PLAIN | {
                     "partial_rotary_factor": 0.25}}],
    "mixtral": [OLD_PLAIN],
    "qwen3_moe": [OLD_PLAIN, {"num_local_experts": None, "num_experts": 6},
                  {"mlp_only_layers": None, "decoder_sparse_step": None}],
    "gpt_oss": [{"layer_types": None}, {"swiglu_limit": None, "swiglu_alpha": None}],
    "gemma4": [{"tie_word_embeddings": None},
               {"global_head_dim": None, "per_layer_config": {
                   "2": {"head_dim": 24}, "4": {"head_dim": 24}}}],
    "gemma4_moe": [{"per_layer_config": None, "global_head_dim": 24,
                    "num_global_key_value_heads": 1}],
}
