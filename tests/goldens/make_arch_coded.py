"""Weights as codes of 8 or 4 bits with scales beside them, for some checkpoints of make_arch.py.

write_coded() turns a saved folder into the form in which such models are released; decoded() turns
its tensors back by the functions of the projects that define the forms, in fp32: transformers
5.24.0 for quant_method fp8, compressed-tensors 0.20.1 for its own. Weights run in F16, whole
numbers with scales in F16 where rows are whole blocks of 32: this rounding is part of the truth,
and how far it moves the logits is noted in golden.json.
"""

import json

import safetensors.torch
import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

F8 = torch.float8_e4m3fn


def group(bits, kind, strategy, **more):
    weights = {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": True,
               "dynamic": False, "observer": "minmax"}
    return {"targets": ["Linear"], "weights": weights | more, "output_activations": None,
            "input_activations": {"num_bits": 8, "type": kind, "strategy": "token",
                                  "symmetric": True, "dynamic": True}}


def compressed(form, *groups):
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
            "quantization_status": "compressed", "kv_cache_scheme": None,
            "config_groups": {f"group_{i}": g for i, g in enumerate(groups)}}


FORMS = {
    "llama_fp8": compressed("float-quantized", group(8, "float", "channel"),
                            group(8, "float", "block", block_structure=[16, 24])),
    "llama_int8": compressed("int-quantized", group(8, "int", "channel")),
    "llama_int4": compressed("pack-quantized", group(4, "int", "group", group_size=32)),
    "qwen3_fp8": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                  "weight_block_size": [20, 8]},
    "mistral_fp8": {"quant_method": "fp8", "activation_scheme": "static",
                    "weight_block_size": None, "modules_to_not_convert": ["lm_head"]},
}


def is_coded(name):
    return name.endswith("_proj.weight")


def arguments_of(form, name):
    """The settings of a weight: the second group is of the feed-forward."""
    groups = list(form["config_groups"].values())
    weights = groups[-1 if ".mlp." in name else 0]["weights"]
    return QuantizationArgs(**weights)


def block_of(form, name, shape):
    """Rows and columns that share a scale."""
    if form["quant_method"] == "fp8":
        return form["weight_block_size"] or list(shape)
    arguments = arguments_of(form, name)
    return {"channel": [1, shape[1]], "group": [1, arguments.group_size],
            "block": arguments.block_structure}[arguments.strategy]


def by_block(values, block, function):
    return torch.stack([torch.stack([function(part) for part in band.split(block[1], 1)])
                        for band in values.split(block[0], 0)])


def encode(weight, block, largest):
    """(the weights over their scales, scales by block)"""
    scales = by_block(weight, block, lambda part: part.abs().max() / largest)
    spread = scales.repeat_interleave(block[0], 0)[:weight.shape[0]]
    spread = spread.repeat_interleave(block[1], 1)[:, :weight.shape[1]]
    return weight / spread, scales


def write_coded(name, folder):
    form = FORMS[name]
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    for key in [k for k in tensors if is_coded(k)]:
        weight = tensors.pop(key).float()
        module = key.removesuffix(".weight")
        block = block_of(form, key, weight.shape)
        if form.get("format") == "pack-quantized":
            codes, scales = encode(weight, block, 7.5)
            codes = codes.round().clamp(-8, 7).to(torch.int8)
            tensors[f"{module}.weight_packed"] = pack_to_int32(codes, 4)
            tensors[f"{module}.weight_shape"] = torch.tensor(weight.shape)
            tensors[f"{module}.weight_scale"] = scales.bfloat16()
        elif form.get("format") == "int-quantized":
            codes, scales = encode(weight, block, 127)
            tensors[key] = codes.round().clamp(-128, 127).to(torch.int8)
            tensors[f"{module}.weight_scale"] = scales
        elif form["quant_method"] == "fp8":
            codes, scales = encode(weight, block, 448)
            tensors[key] = codes.to(F8)
            if form["weight_block_size"] is None:
                scales = scales.reshape(())
                tensors[f"{module}.activation_scale"] = torch.tensor(0.25)
            tensors[f"{module}.weight_scale_inv"] = scales
        else:
            codes, scales = encode(weight, block, 448)
            tensors[key] = codes.to(F8)
            tensors[f"{module}.weight_scale"] = scales.bfloat16()
    safetensors.torch.save_file(tensors, path, {"format": "pt"})
    path = folder / "config.json"
    config = json.loads(path.read_text()) | {"quantization_config": form}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def in_half(values):
    return values.half().float()


def is_blocks(codes):
    """Whole numbers in rows of whole blocks of 32."""
    return codes.dtype == torch.int8 and codes.shape[1] % 32 == 0


def decode(form, key, codes, scale, rounded):
    """A weight in fp32, by the project that defines the form."""
    scale = scale.float()
    if rounded and is_blocks(codes):
        scale = in_half(scale)
    if form["quant_method"] == "fp8":
        weight = Fp8Dequantize(None)._dequantize_one(codes, scale, torch.float32)
    else:
        weight = dequantize(codes.float(), scale, args=arguments_of(form, key),
                            dtype=torch.float32)
    return in_half(weight) if rounded and not is_blocks(codes) else weight


def decoded(form, tensors, rounded=True):
    """Plain tensors."""
    out = {}
    for key, value in tensors.items():
        module, _, part = key.rpartition(".")
        if part not in ("weight", "weight_packed", "bias"):
            continue
        scale = tensors.get(f"{module}.weight_scale", tensors.get(f"{module}.weight_scale_inv"))
        if part == "weight_packed":
            bits = arguments_of(form, key).num_bits
            value = unpack_from_int32(value, bits, tensors[f"{module}.weight_shape"])
            key = f"{module}.weight"
        if scale is not None and part != "bias":
            value = decode(form, key, value, scale, rounded)
        out[key] = value.contiguous()
    return out
