#!/usr/bin/env python3
"""Writes tests/goldens/embeddings: what transformers computes as embeddings, and a small BERT.

Made with transformers 5.24.0, torch 2.15.0, gguf 0.19.0, safetensors 0.8.0, tokenizers 0.23.3
(CPU, fp32, one thread):  OMP_NUM_THREADS=1 python tests/goldens/make_embeddings.py

An embedding is last_hidden_state (after the last norm), pooled (mean of all rows, the first row,
the last row) and, as a second form, divided by its length. `decoders.json` has those of checkpoints
of tests/goldens/arch; `bert` and `bert_mlm` are checkpoints of their own, as save_pretrained and
sentence-transformers write them, with the GGUF file that hf_to_gguf.py makes. A checkpoint is only
accepted when every option of its config.json, and every bias, moves the embeddings well beyond the
tolerance.
"""

import json
import pathlib
import random
import tempfile

import safetensors.torch
import torch
import transformers
from transformers import AutoModel, BertConfig, BertForMaskedLM, BertModel

import hf_to_gguf
import make_arch_model as arch
import make_embeddings_tokenizer as words
from make_arch import squeeze

HERE = pathlib.Path(__file__).parent
OUT = HERE / "embeddings"
DECODERS = ("llama_llama3", "gemma3", "qwen3", "gpt2")
TOLERANCE = 1e-3  # of the largest value of an embedding
MOVES = 10 * TOLERANCE
FOLDER_LIMIT = 400_000


def pooled(rows):
    return {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}


@torch.no_grad()
def embeddings(model, sequences):
    """[{pooling: {"plain": [...], "l2": [...]}}] for each sequence."""
    out = []
    for ids in sequences:
        rows = model(torch.tensor([ids])).last_hidden_state[0]
        out.append({name: {"plain": vector, "l2": torch.nn.functional.normalize(vector, dim=0)}
                    for name, vector in pooled(rows).items()})
    return out


def rounded(vectors):
    return [{name: {form: numbers(vector) for form, vector in forms.items()}
             for name, forms in one.items()} for one in vectors]


def numbers(vector):
    return [float(f"{x:.7g}") for x in vector]


def load_decoder(folder):
    return arch.load(folder).base_model.eval()


def decoders():
    out = {}
    for name in DECODERS:
        folder = HERE / "arch" / name
        sequences = json.loads((folder / "golden.json").read_text())["sequences"]
        out[name] = {"sequences": sequences,
                     "embeddings": rounded(embeddings(load_decoder(folder), sequences))}
    write(OUT / "decoders.json", {"tolerance": TOLERANCE, "models": out})


def write(path, value):
    path.write_text(squeeze(json.dumps(value, indent=1)) + "\n")


# --- BERT -----------------------------------------------------------------------------------

CONFIG = dict(hidden_size=40, num_attention_heads=5, intermediate_size=52, num_hidden_layers=3,
              max_position_embeddings=40, type_vocab_size=2, layer_norm_eps=0.03,
              hidden_act="gelu")
LAYER = "encoder.layer.0"
# Not the keys': it adds the same to all scores of a query.
BIASES = [f"{LAYER}.attention.self.{n}.bias" for n in ("query", "value")] + [
    f"{LAYER}.attention.output.dense.bias", f"{LAYER}.attention.output.LayerNorm.bias",
    f"{LAYER}.intermediate.dense.bias", f"{LAYER}.output.dense.bias",
    f"{LAYER}.output.LayerNorm.bias", "embeddings.LayerNorm.bias"]
CHANGES = [{"layer_norm_eps": 1e-12}, {"hidden_act": "relu"}, {"hidden_act": "silu"},
           {"hidden_act": "gelu"}, {"num_attention_heads": 1}]
TENSORS = ["embeddings.token_type_embeddings.weight", "embeddings.position_embeddings.weight"]
# Beside the prefix of its names and 16-bit weights.
MLM = dict(num_hidden_layers=2, type_vocab_size=1)


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if name.endswith("bias"):
                weight.copy_(0.4 * noise)
            elif "LayerNorm" in name:
                weight.copy_(1 + 0.25 * noise)
            elif "embeddings" in name:
                weight.copy_(0.2 * noise)  # small before a norm whose epsilon shows
            else:
                gain = 3.0 if "query" in name or "key" in name else 1.3
                weight.copy_(gain * noise / weight.shape[-1]**0.5)


def sentence_transformers(folder, pooling, normalises):
    """The files beside config.json that say how to pool."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if normalises:
        modules.append(("2_Normalize", "Normalize"))
    (folder / "modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)], indent=2) + "\n")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens",
             "weightedmean_tokens", "lasttoken")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": CONFIG["hidden_size"],
         **{f"pooling_mode_{mode}": mode == pooling for mode in modes},
         "include_prompt": True}, indent=2) + "\n")


def load_bert(folder, changes=None, zeroed=None):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        config = arch.change(json.loads((folder / "config.json").read_text()), changes or {})
        (scratch / "config.json").write_text(json.dumps(config))
        tensors = safetensors.torch.load_file(folder / "model.safetensors")
        if zeroed is not None:
            tensors[zeroed] = torch.zeros_like(tensors[zeroed])
        safetensors.torch.save_file(tensors, scratch / "model.safetensors", {"format": "pt"})
        return AutoModel.from_pretrained(scratch, dtype=torch.float32,
                                         attn_implementation="eager").eval()


def sequences_for(tokenizer):
    rng = random.Random(5)
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    ordinary = range(last + 2, tokenizer.get_vocab_size())
    return [[first, *rng.choices(ordinary, k=length), last] for length in (1, 9, 38)]


def mutations_of(folder, config, sequences, truth):
    names = safetensors.torch.load_file(folder / "model.safetensors").keys()
    out = []
    for change in CHANGES:
        if all(config.to_dict()[key] == value for key, value in change.items()):
            continue
        out.append(({"config": change}, load_bert(folder, changes=change)))
    for tail in BIASES + TENSORS:
        name = next(name for name in names if name.endswith(tail))
        out.append(({"tensor": name, "scale": 0}, load_bert(folder, zeroed=name)))
    entries = []
    for entry, model in out:
        before = truth[-1]["mean"]["plain"]
        changed = embeddings(model, sequences[-1:])[0]["mean"]["plain"]
        entry["moves"] = round(float((before - changed).abs().max() / before.abs().max()), 4)
        assert entry["moves"] >= MOVES, entry
        entry["mean"] = numbers(changed)  # of the last sequence
        entries.append(entry)
    return entries


def age(folder):
    """What old checkpoints have: positions as a tensor, and TensorFlow's names of norms (in part
    of the layers)."""
    file = folder / "model.safetensors"
    tensors = {}
    for name, tensor in safetensors.torch.load_file(file).items():
        if "layer.1." in name:
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            name = name.replace("LayerNorm.bias", "LayerNorm.beta")
        tensors[name] = tensor
    tensors["bert.embeddings.position_ids"] = torch.arange(CONFIG["max_position_embeddings"])[None]
    safetensors.torch.save_file(tensors, file, {"format": "pt"})


def bert(name, model, dtype, pooling, normalises):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = words.save(folder, model.config.max_position_embeddings)
    model.to(dtype).save_pretrained(folder)
    if name == "bert_mlm":
        age(folder)
    sentence_transformers(folder, pooling, normalises)
    sequences = sequences_for(tokenizer)
    truth = embeddings(load_bert(folder), sequences)
    mutations = mutations_of(folder, model.config, sequences, truth)
    texts = ["The old market sells bread.", "a ship", "Naïve café — déjà vu?"]
    write(folder / "golden.json", {
        "tolerance": TOLERANCE, "sequences": sequences, "embeddings": rounded(truth),
        "pooling": {"mean_tokens": "mean", "cls_token": "cls"}[pooling],
        "normalised": normalises, "texts": texts,
        "text_ids": [tokenizer.encode(text).ids for text in texts],
        "text_embeddings": rounded(embeddings(
            load_bert(folder), [tokenizer.encode(text).ids for text in texts])),
        "mutations": mutations})
    hf_to_gguf.convert(folder, folder / "model.gguf")
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    least = min(mutations, key=lambda entry: entry["moves"])
    print(name, size, "bytes,", len(mutations), "mutations, least", least["moves"],
          least.get("config", least.get("tensor")), flush=True)
    assert size <= FOLDER_LIMIT, (name, size)


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    OUT.mkdir(exist_ok=True)
    decoders()
    model = BertModel(BertConfig(vocab_size=words.SIZE, **CONFIG)).eval()
    randomise(model, 71)
    bert("bert", model, torch.float32, "mean_tokens", True)
    model = BertForMaskedLM(BertConfig(vocab_size=words.SIZE, **(CONFIG | MLM))).eval()
    randomise(model, 72)
    bert("bert_mlm", model, torch.float16, "cls_token", False)


if __name__ == "__main__":
    main()
