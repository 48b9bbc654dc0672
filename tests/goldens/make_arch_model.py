"""Random checkpoints for make_arch.py: weights with a trained model's spread, and measures."""

import contextlib
import dataclasses
import json
import pathlib
import random
import tempfile

import safetensors.torch
import tokenizers
import torch
import transformers
from transformers import (AutoModelForCausalLM, AutoModelForImageTextToText,
                          PreTrainedTokenizerFast)

import make_arch_coded
import tiny_vocabulary

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = 38
VOCABULARY = len(SPECIALS) + 256 + MERGES
LLAMA3_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LOGIT_STD = 4.0
CONTINUATION = 12
DISTINCT = 3
MARGIN = 0.02  # of the logits' standard deviation
KEPT = 8  # logits of a mutated model that are kept


@dataclasses.dataclass
class Spec:
    name: str
    config: transformers.PreTrainedConfig
    mutations: list  # each a dict of config changes, or the name of a tensor to be zeroed
    dtype: torch.dtype = torch.bfloat16
    lengths: tuple = (5, 14, 47)
    seed: int = 1
    embed_std: float = 0.6
    attention_gain: float = 1.8
    mlp_gain: float = 1.5
    router_gain: float = 2.0
    bias_std: float = 0.3
    centers: dict = dataclasses.field(default_factory=dict)  # part of a name -> centre of a norm
    norm_offset: float = 0.0  # 1 where the model adds 1 to its norms
    legacy: dict | None = None  # changes that give config.json the form of older releases
    shard: str | None = None
    template: str = "file"  # "file", "config" or "none"
    tokenizer: str = "smollm"  # or "llama3"
    generation: dict = dataclasses.field(default_factory=dict)  # into generation_config.json
    notes: dict = dataclasses.field(default_factory=dict)  # into golden.json
    gguf: str = ""  # why there is no model.gguf; empty: there is one


# --- weights --------------------------------------------------------------------------------

def is_norm(name):
    return any(part in name for part in ("norm", "ln_1", "ln_2", "ln_f"))


def center_of(spec, name):
    for part, center in spec.centers.items():
        if part in name:
            return center
    return 1.0


def values_for(spec, name, weight, noise):
    if name.endswith("bias"):
        return spec.bias_std * noise
    if is_norm(name) and weight.ndim == 1:
        center = center_of(spec, name)
        return center * (1 + 0.25 * noise) - spec.norm_offset
    if any(part in name for part in ("embed", "wte", "wpe")) and weight.ndim == 2 and (
            "proj" not in name):
        return spec.embed_std * noise
    if "sinks" in name:
        return 0.7 * noise + 1.0
    if weight.ndim == 1 or "scalar" in name or "per_expert_scale" in name:
        return 1.0 + 0.3 * noise
    fan_in = weight.shape[-1]
    if "gpt_oss" == spec.config.model_type and weight.ndim == 3:
        fan_in = weight.shape[1]
    if "gpt2" == spec.config.model_type:
        fan_in = weight.shape[0]
    gain = 1.0
    if any(part in name for part in ("q_proj", "k_proj", "query_key_value", "qkv", "c_attn")):
        gain = spec.attention_gain
    elif any(part in name for part in ("router", "mlp.gate.", "gate.weight")):
        gain = spec.router_gain
    elif any(part in name for part in ("gate", "up_proj", "c_fc", "dense_h_to_4h")):
        gain = spec.mlp_gain
    return gain * noise / fan_in**0.5


def randomise(spec, model):
    generator = torch.Generator().manual_seed(spec.seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(values_for(spec, name, weight, noise))
        for name, buffer in model.named_buffers():  # scalars that are part of a checkpoint
            if name.endswith("layer_scalar"):
                buffer.copy_(1.0 + 0.3 * torch.randn(buffer.shape, generator=generator))


def final_norm(model):
    return [p for n, p in model.named_parameters()
            if n in ("model.norm.weight", "model.language_model.norm.weight", "transformer.ln_f.weight",
                     "gpt_neox.final_layer_norm.weight")][0]


def scale_logits(spec, model, ids):
    """Scales the last norm so that the logits before a cap have the wanted spread."""
    config = model.config.get_text_config()
    cap = getattr(config, "final_logit_softcapping", None)
    with torch.no_grad():
        if cap is not None:
            config.final_logit_softcapping = None
        now = torch.cat([model(torch.tensor([s]), use_cache=False).logits[0] for s in ids]).std()
        if cap is not None:
            config.final_logit_softcapping = cap
        norm = final_norm(model)
        norm.copy_((norm + spec.norm_offset) * LOGIT_STD / now - spec.norm_offset)


# --- tokenizer ------------------------------------------------------------------------------

def pre_tokenizer(style):
    if style == "llama3":
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(LLAMA3_SPLIT), "isolated")
        rest = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return tokenizers.pre_tokenizers.Sequence([split, rest])
    return tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])


def make_tokenizer(style):
    """256 bytes, some merges and three special tokens; the llama3 style begins with BOS."""
    model = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=style == "llama3"))
    model.pre_tokenizer = pre_tokenizer(style)
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIALS, show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    model.train_from_iterator(tiny_vocabulary.corpus(), trainer)
    assert model.get_vocab_size() == VOCABULARY
    if style == "llama3":
        model.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{SPECIALS[1]} $A", pair=f"{SPECIALS[1]} $A {SPECIALS[1]}:1 $B:1",
            special_tokens=[(SPECIALS[1], 1)])
    return model


def save_tokenizer(spec, folder):
    tokenizer = make_tokenizer(spec.tokenizer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=SPECIALS[1], eos_token=SPECIALS[2],
        unk_token=SPECIALS[0], pad_token=SPECIALS[2], clean_up_tokenization_spaces=False,
        model_max_length=spec.config.get_text_config().max_position_embeddings)
    fast.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    if spec.template == "file":
        (folder / "chat_template.jinja").write_text(tiny_vocabulary.CHATML)
    elif spec.template == "config":
        path = folder / "tokenizer_config.json"
        settings = json.loads(path.read_text()) | {"chat_template": tiny_vocabulary.CHATML}
        path.write_text(json.dumps(settings, indent=2) + "\n")


# --- saved folders --------------------------------------------------------------------------

def change(config, changes):
    """config with values set at dotted paths; None removes the key."""
    config = json.loads(json.dumps(config))
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = config
        for parent in parents:
            place = place[parent]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return config


def weight_files(folder):
    return sorted(folder.glob("model*.safetensors"))


def coded_form(config):
    """How weights are stored as codes; taken out of config, so that the model is a plain one."""
    if config.get("quantization_config", {}).get("quant_method") in (None, "mxfp4"):
        return None
    return config.pop("quantization_config")


def auto_class(has_images):
    return AutoModelForImageTextToText if has_images else AutoModelForCausalLM


def load(folder, changes=None, scales=None, rounded=True):
    """The model of a folder in fp32, with changes to its config or with tensors scaled."""
    folder = pathlib.Path(folder)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        config = change(json.loads((folder / "config.json").read_text()), changes or {})
        coded = coded_form(config)
        (scratch / "config.json").write_text(json.dumps(config))
        for file in [*weight_files(folder), folder / "model.safetensors.index.json"]:
            if not file.exists():
                continue
            if file.suffix == ".safetensors":
                tensors = safetensors.torch.load_file(file)
                if config.get("tie_word_embeddings", False):
                    tensors.pop("lm_head.weight", None)
                    tensors.pop("embed_out.weight", None)
                for name in set(tensors) & set(scales or {}):
                    tensors[name] = (tensors[name].float() * scales[name]).to(tensors[name].dtype)
                if coded:
                    tensors = make_arch_coded.decoded(coded, tensors, rounded)
                safetensors.torch.save_file(tensors, scratch / file.name, {"format": "pt"})
            else:
                (scratch / file.name).write_bytes(file.read_bytes())
        model, report = auto_class("text_config" in config).from_pretrained(
            scratch, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"], report
    if not changes:
        assert not report["unexpected_keys"], report
    return model.float().eval()


def save(spec, model, folder):
    for old in folder.glob("*"):
        old.unlink()
    model.generation_config.update(**spec.generation)
    model.to(spec.dtype).save_pretrained(folder, **({"max_shard_size": spec.shard}
                                                    if spec.shard else {}))
    save_tokenizer(spec, folder)
    if spec.legacy is not None:
        path = folder / "config.json"
        config = change(json.loads(path.read_text()), spec.legacy)
        path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


# --- what is measured -----------------------------------------------------------------------

def logits_of(model, sequences):
    """[sum of lengths, vocabulary]; a fresh prefill for each sequence."""
    with torch.no_grad():
        return torch.cat([model(torch.tensor([ids]), use_cache=False).logits[0].float()
                          for ids in sequences])


def entropy_ratio(model, ids):
    """Mean entropy of attention over that of equal weights on the positions that are seen."""
    with torch.no_grad():
        attentions = model(torch.tensor([ids]), use_cache=False,
                           output_attentions=True).attentions
    ratios = []
    for weights in attentions:
        weights = weights[0].double()
        seen = (weights > 0).sum(-1).double()
        entropy = -(weights * weights.clamp_min(1e-300).log()).sum(-1)
        ratios.append((entropy / seen.log())[seen > 1])
    return float(torch.cat(ratios).mean())


@contextlib.contextmanager
def router_gaps(model):
    """Collects the least distance between a chosen and a rejected router logit."""
    gaps = []

    def look(_, __, output):
        scores = output[0] if isinstance(output, tuple) else output
        count = getattr(model.config, "num_experts_per_tok", None) or model.config.top_k_experts
        scores = scores.float().reshape(-1, scores.shape[-1])
        if scores.min() >= 0 and (scores.sum(-1) - 1).abs().max() < 1e-3:
            scores = scores.log()  # the router returns probabilities
        best = scores.sort(-1, descending=True).values
        gaps.append(float((best[:, count - 1] - best[:, count]).min()))

    hooks = [module.register_forward_hook(look) for module in model.modules()
             if type(module).__name__.endswith("Router")]
    yield gaps
    for hook in hooks:
        hook.remove()


def greedy(model, ids, count):
    """(the next ids, least distance to the second best over the deviation), None if unclear."""
    ids, least = list(ids), float("inf")
    for _ in range(count):
        row = logits_of(model, [ids])[-1]
        best = row.topk(2)
        least = min(least, float((best.values[0] - best.values[1]) / row.std()))
        ids.append(int(best.indices[0]))
        if ids[-1] < len(SPECIALS) or least < MARGIN:
            return None, least
    return ids[-count:], least


def text_golden(folder, model):
    """A text whose ids have a continuation that is clear at every step."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    rng = random.Random(3)
    for _ in range(150):
        text = tiny_vocabulary.sentence(rng)[:24].strip()
        ids = tokenizer.encode(text).ids
        found, margin = greedy(model, ids, CONTINUATION)
        if found is not None and len(set(found)) >= DISTINCT:
            return {"text": text, "text_ids": ids, "continuation_ids": found,
                    "continuation_margin": round(margin, 4)}
    raise AssertionError("no text has a clear continuation")


def mutation_entry(folder, mutation, sequences, logits):
    if isinstance(mutation, str):
        entry = {"tensor": mutation, "scale": 0}
        model = load(folder, scales={mutation: 0.0})
    else:
        entry = {"config": mutation}
        model = load(folder, changes=mutation)
    changed = logits_of(model, sequences)
    difference = (changed - logits).abs()
    row = int(difference.max(-1).values.argmax())
    ids = difference[row].topk(KEPT).indices
    entry["moves"] = round(float(difference.max() / logits.std()), 4)
    entry["row"] = row
    entry["ids"] = ids.tolist()
    entry["logits"] = [round(float(x), 5) for x in changed[row, ids]]
    return entry
