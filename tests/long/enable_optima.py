#!/usr/bin/env python3
"""The same greedy tokens from transformers and from enable_optima, on the checkpoints of
tests/goldens/arch: alone, in a padded batch, with a streamer, under the checkpoint's own penalties;
sampled tokens with the shares that transformers gives them; and afterwards the model as it was.

Models compute in fp32: in 16 bits transformers rounds each layer's output, and near ties fall
otherwise. Without phi3, whose rotary frequencies depend on the length in another way (see
docs/ARCHITECTURE.md)."""
import pathlib
import sys

import torch
import transformers

from sits_optima import Unsupported, enable_optima

ARCH = pathlib.Path(__file__).resolve().parents[1] / "goldens/arch"
NAMES = ("llama", "qwen2", "llama_llama3", "gemma3", "gpt2", "smollm3", "olmo2", "mistral",
         "qwen3", "gpt_neox")
TOKENS = 12


def load(name):
    return transformers.AutoModelForCausalLM.from_pretrained(
        ARCH / name, dtype=torch.float32).eval()


class Failures:
    def __init__(self):
        self.count = 0

    def check(self, name, good, what):
        print(f"{name}: {what}: {'equal' if good else 'DIFFERENT'}", flush=True)
        self.count += not good


def without_end(model):
    """Greedy, and nothing of the vocabulary ends it."""
    return {"max_new_tokens": TOKENS, "do_sample": False, "eos_token_id": 10 ** 6,
            "pad_token_id": model.config.pad_token_id or 0}


class Recorder:
    def __init__(self):
        self.tokens = []

    def put(self, ids):
        self.tokens += ids.flatten().tolist()

    def end(self):
        self.tokens.append("end")


def compare(name, failures):
    model = load(name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(ARCH / name)
    ids = tokenizer("a small paper reaches qu", return_tensors="pt").input_ids
    batch = torch.cat([torch.nn.functional.pad(ids[:, :-3], (3, 0)), ids])
    mask = torch.ones_like(batch)
    mask[0, :3] = 0
    options = without_end(model)
    wanted = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    wanted_batch = model.generate(batch, attention_mask=mask, **options)
    for mode in ("latency", "throughput"):
        with enable_optima(model, profile_mode=mode, tokenizer=tokenizer) as enabled:
            ours = model.generate(ids, use_sits_kernel=True, **options)
            failures.check(name, torch.equal(ours, wanted), f"one row, {mode}")
            ours = model.generate(batch, attention_mask=mask, use_sits_kernel=True, **options)
            failures.check(name, torch.equal(ours, wanted_batch), f"padded batch, {mode}")
            again = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
            failures.check(name, torch.equal(again, wanted), "transformers beside it")
            text = "a small paper reaches qu"
            failures.check(name, enabled.engine_model.tokenize(text) == ids[0].tolist(),
                           "token ids of a text")
            if mode == "latency":
                check_streamer(name, failures, model, ids, wanted)
    failures.check(name, "generate" not in vars(model), "generate() is its own again")


def check_streamer(name, failures, model, ids, wanted):
    recorder = Recorder()
    model.generate(ids, streamer=recorder, use_sits_kernel=True, **without_end(model))
    failures.check(name, recorder.tokens == wanted[0].tolist() + ["end"], "streamer")


def check_sampling(failures):
    """Tokens of a distribution that is cut to few: each is one that transformers leaves, and the
    shares are those of its probabilities."""
    model = load("llama")
    ids = torch.tensor([[71, 294, 35, 133, 63]])
    options = {"do_sample": True, "temperature": 1.7, "top_k": 5, "top_p": 0.9,
               "max_new_tokens": 1, "num_return_sequences": 2000, "pad_token_id": 2}
    torch.manual_seed(1)
    with enable_optima(model):
        ours = model.generate(ids, use_sits_kernel=True, **options)[:, -1]
    theirs = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[:, -1]
    size = model.config.vocab_size
    shares = [torch.bincount(tokens, minlength=size) / len(tokens) for tokens in (ours, theirs)]
    distance = (shares[0] - shares[1]).abs().sum().item() / 2
    failures.check("llama", distance < 0.06, f"sampled shares (distance {distance:.3f})")


def check_declined(failures):
    model = load("llama")
    with enable_optima(model):
        try:
            model.generate(torch.tensor([[5]]), num_beams=2, use_sits_kernel=True)
            failures.check("llama", False, "num_beams is declined")
        except Unsupported as error:
            failures.check("llama", "num_beams=2" in str(error), "num_beams is declined")


def main():
    failures = Failures()
    for name in NAMES:
        compare(name, failures)
    check_sampling(failures)
    check_declined(failures)
    print(f"{failures.count} differences")
    sys.exit(1 if failures.count else 0)


if __name__ == "__main__":
    main()
