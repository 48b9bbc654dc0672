"""The checkpoints of make_arch.py that hold an image part too: only texts are computed of them."""

from transformers import (CLIPVisionConfig, Gemma3Config, Gemma3TextConfig, Gemma4Config,
                          Gemma4TextConfig, Gemma4VisionConfig, LlamaConfig, LlavaConfig,
                          Mistral3Config, MistralConfig, PixtralVisionConfig, SiglipVisionConfig)

from make_arch_model import VOCABULARY, Spec

FULL, SLIDING = "full_attention", "sliding_attention"
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
TEXT = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=2,
            num_hidden_layers=2, max_position_embeddings=256, rms_norm_eps=0.01)
HEADS = dict(num_attention_heads=4, num_key_value_heads=2, hidden_size=40, intermediate_size=56,
             head_dim=16)
VISION = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2)
PICTURE = VISION | dict(image_size=28, patch_size=14)
TOKENS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=2)
IMAGE = dict(image_token_index=2)  # an id that no text has
FOLDER_ALONE = "a folder with an image part becomes two GGUF files"


def moved(prefix, layer):
    return [{"text_config.rms_norm_eps": 1e-6}, f"{prefix}.layers.{layer}.self_attn.v_proj.weight"]


def specs():
    rope = {FULL: ROPE | {"rope_theta": 1000.0}, SLIDING: ROPE}
    gemma3 = Gemma3TextConfig(**TEXT, **HEADS, sliding_window=10, rope_parameters=rope,
                              layer_types=[SLIDING, FULL], query_pre_attn_scalar=10)
    yield Spec("gemma3_images", Gemma3Config(
        text_config=gemma3, vision_config=SiglipVisionConfig(**PICTURE), mm_tokens_per_image=4,
        boi_token_index=0, eoi_token_index=1, **IMAGE, **TOKENS), seed=101, norm_offset=1.0,
        embed_std=0.1, centers={"q_norm": 1.7, "k_norm": 1.7}, gguf=FOLDER_ALONE,
        mutations=moved("language_model.model", 1) + [
            {"text_config.sliding_window": 11}, {"text_config.query_pre_attn_scalar": 40}])
    yield Spec("mistral3_images", Mistral3Config(
        text_config=MistralConfig(**TEXT, **HEADS, rope_parameters=ROPE, sliding_window=None),
        vision_config=PixtralVisionConfig(**PICTURE, head_dim=4), **IMAGE, **TOKENS,
        tie_word_embeddings=False), seed=102, gguf=FOLDER_ALONE,
        mutations=moved("language_model.model", 1) + [{"text_config.sliding_window": 11}])
    yield Spec("llava_images", LlavaConfig(
        text_config=LlamaConfig(**TEXT, **HEADS, rope_parameters=ROPE),
        vision_config=CLIPVisionConfig(**PICTURE, projection_dim=8), **IMAGE, **TOKENS),
        seed=103, gguf=FOLDER_ALONE,
        mutations=moved("language_model.model", 1) + [
            {"text_config.rope_parameters.rope_theta": 500.0}])
    gemma4 = Gemma4TextConfig(
        **(TEXT | HEADS | dict(num_hidden_layers=3, hidden_size=32, head_dim=16)),
        global_head_dim=24, sliding_window=9, layer_types=[SLIDING, SLIDING, FULL],
        hidden_size_per_layer_input=6, vocab_size_per_layer_input=VOCABULARY,
        final_logit_softcapping=9.0, rope_parameters={
            FULL: {"rope_type": "proportional", "rope_theta": 1000.0,
                   "partial_rotary_factor": 0.5}, SLIDING: ROPE})
    yield Spec("gemma4_images", Gemma4Config(
        text_config=gemma4, vision_config=Gemma4VisionConfig(
            **VISION, num_key_value_heads=2, head_dim=4, patch_size=4,
            position_embedding_size=16), audio_config=None, image_token_id=2, video_token_id=2,
        audio_token_id=2, boi_token_id=0, eoi_token_id=0, boa_token_id=0, **TOKENS),
        seed=104, embed_std=0.3, mlp_gain=1.0, centers={"q_norm": 0.85, "k_norm": 0.85},
        gguf=FOLDER_ALONE, mutations=moved("model.language_model", 2) + [
            {"text_config.sliding_window": 10}, {"text_config.final_logit_softcapping": None}])
