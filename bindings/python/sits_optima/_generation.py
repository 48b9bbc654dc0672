"""The arguments of transformers' generate(), as requests; what has no counterpart is declined by
its name. Needs of the tensor of ids: tolist, new_tensor, and for a seed new_empty."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sits_optima import errors

DEFAULTS = {"max_length": 20, "do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0,
            "min_p": 0.0, "typical_p": 1.0, "repetition_penalty": 1.0, "num_return_sequences": 1,
            "max_new_tokens": None, "eos_token_id": None, "pad_token_id": None}
# Have no part in greedy choice and sampling, which is all that is done here.
_WITHOUT_EFFECT = {
    "assistant_confidence_threshold", "assistant_lookbehind", "bos_token_id",
    "cache_implementation", "compile_config", "decoder_start_token_id", "disable_compile",
    "early_stopping", "is_assistant", "length_penalty", "low_memory", "num_assistant_tokens",
    "num_assistant_tokens_schedule", "prefill_chunk_size", "renormalize_logits",
    "remove_invalid_values", "target_lookbehind", "transformers_version", "use_cache"}
# What says "off" beside None, False, 0 and what is empty.
_OFF = {"num_beams": 1, "num_beam_groups": 1, "encoder_repetition_penalty": 1.0}


class Settings(NamedTuple):
    options: dict[str, Any]  # of a request, but for max_tokens, stop_tokens and seed
    max_new_tokens: int | None
    max_length: int  # with the prompt, where max_new_tokens is None
    sequences: int  # of each row
    eos: list[int]
    pad: int | None


def settings_of(*layers: Mapping[str, Any]) -> Settings:
    """Of generation_config dictionaries and keyword arguments, the later ones first in effect."""
    values = dict(DEFAULTS)
    for layer in layers:
        values.update({key: value for key, value in layer.items() if value is not None})
    declined = declined_in(values)
    if declined:
        raise errors.Unsupported(
            f"generate with use_sits_kernel=True declines {', '.join(declined)}; "
            "without it transformers does it")
    eos = values["eos_token_id"]
    eos = [] if eos is None else list(eos) if isinstance(eos, (list, tuple)) else [int(eos)]
    pad = values["pad_token_id"]
    pad = pad if pad is not None else eos[0] if eos else None
    options = _sampling(values) if values["do_sample"] else {}
    if values["repetition_penalty"] != 1.0:
        options["repetition_penalty"] = values["repetition_penalty"]
    if not values["do_sample"] and values["num_return_sequences"] != 1:
        raise errors.ArgumentError("num_return_sequences is "
                                   f"{values['num_return_sequences']}: it needs do_sample=True")
    return Settings(options | {"ignore_eos": True}, values["max_new_tokens"],
                    values["max_length"], values["num_return_sequences"], eos, pad)


def declined_in(values: Mapping[str, Any]) -> list[str]:
    """What cannot be honoured, as name=value."""
    out = []
    for key, value in values.items():
        if key in DEFAULTS or key in _WITHOUT_EFFECT or key.startswith("_"):
            continue
        if value is not None and value != _OFF.get(key) and _says_something(value):
            out.append(f"{key}={value!r}" if isinstance(value, (int, float, str)) else key)
    merged = DEFAULTS | {key: value for key, value in values.items() if value is not None}
    truncated = merged["top_p"] < 1.0 or merged["min_p"] > 0.0
    if merged["do_sample"] and merged["typical_p"] < 1.0 and truncated:
        out.append("typical_p beside top_p or min_p")
    return out


def _says_something(value: Any) -> bool:
    if isinstance(value, (bool, int, float, str, list, tuple, dict, set)):
        return bool(value)
    return True  # an object, such as a tensor of embeddings or a model


def _sampling(values: Mapping[str, Any]) -> dict[str, Any]:
    options = {"temperature": values["temperature"], "top_k": values["top_k"],
               "top_p": values["top_p"], "min_p": values["min_p"],
               "typical_p": values["typical_p"]}
    by_mass = values["top_p"] < 1.0 or values["min_p"] > 0.0 or values["typical_p"] < 1.0
    temperature = values["temperature"]
    if temperature != 1.0 and by_mass:
        # transformers scales before it drops by probability, the engine after it.
        def scale(logits: Any, _tokens: Any) -> None:
            logits /= temperature

        options |= {"temperature": 1.0, "on_logits": scale}
    return options


def rows_of(ids: list[list[int]], mask: list[list[int]] | None, pad: int | None,
            eos: list[int]) -> list[list[int]]:
    """Each row without its padding, which must be on the left."""
    if mask is None and pad is not None and pad not in eos and any(pad in row for row in ids):
        mask = [[int(token != pad) for token in row] for row in ids]
    if mask is None:
        return ids
    out = []
    for row, seen in zip(ids, mask):
        if len(seen) != len(row):
            raise errors.ArgumentError(f"attention_mask has {len(seen)} columns, "
                                       f"input_ids have {len(row)}")
        first = next((i for i, one in enumerate(seen) if one), len(seen))
        if not all(seen[first:]):
            raise errors.Unsupported("generate with use_sits_kernel=True declines an "
                                     "attention_mask with gaps: padding must be on the left")
        out.append(row[first:])
    return out
