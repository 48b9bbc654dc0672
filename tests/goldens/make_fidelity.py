"""Makes tests/goldens/fidelity/<name>.json: what a real model says in fp32, by transformers.

Usage: python make_fidelity.py NAME MODEL.gguf [--threads N]
       (NAME smollm2 or gemma3-270m; the file from examples/get_model.sh NAME)

The file's weights are dequantised by transformers and run in fp32 with eager attention. Two facts
are kept:
  prompts     ten prompts and 48 greedy tokens each; for every one its margin, which is the
              distance of its logit to the runner-up's. An engine that differs where the margin is
              wide is wrong; where it is a hair's breadth, rounding decides.
  perplexity  of a text that every Debian machine has: windows of 512 ids, the first id of a window
              replaced by BOS where the model adds one, predictions of the second half scored.
  published   the same on the ids of the published figure, which are kept with it where they differ:
              transformers builds the tokenizer of smollm2 from the GGUF file without the digit
              split that SmolLM2's own tokenizer.json has and that the file names by its
              pre-tokenizer "smollm" (7658 ids for 7639).

Made with torch 2.15.0, transformers 5.24.0, gguf 0.19.0, accelerate 1.15.0, tokenizers 0.23.3.
The files are never edited by hand.
"""

import argparse
import copy
import hashlib
import json
import math
import os
import pathlib
import re
import sys

import tokenizers
import torch
import transformers

TEXT = "/usr/share/common-licenses/GPL-3"
TOKENS_PER_PROMPT = 48
WINDOW = 512
# The published truth that this script must find again, else it writes nothing.
PUBLISHED = {"smollm2": 18.130, "gemma3-270m": 13.829}
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a village by the sea,",
    "def fibonacci(n):\n    ",
    "Water boils at 100 degrees Celsius because",
    "The three primary colours are",
    "Dear Sir or Madam,\n\nI am writing to",
    "1, 2, 3, 4, 5,",
    "La tour Eiffel se trouve",
    "Q: Who wrote Romeo and Juliet?\nA:",
    "The difference between a virus and a bacterium is that",
]


def load(path):
    folder, name = os.path.split(os.path.realpath(path))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager")
    return tokenizer, model.eval()


def with_digit_split(tokenizer):
    """The tokenizer as SmolLM2 publishes it: each digit is a piece of its own."""
    out, pieces = copy.deepcopy(tokenizer), tokenizers.pre_tokenizers
    out.backend_tokenizer.pre_tokenizer = pieces.Sequence(
        [pieces.Digits(individual_digits=True), pieces.ByteLevel(add_prefix_space=False)])
    return out


def greedy(model, prompt_ids):
    """Greedy continuation that ends at no token: [(id, margin, log-probability)]."""
    out, cache, step = [], None, torch.tensor([prompt_ids])
    for _ in range(TOKENS_PER_PROMPT):
        result = model(step, past_key_values=cache, use_cache=True)
        cache, logits = result.past_key_values, result.logits[0, -1].double()
        top = torch.topk(logits, 2)
        logprob = (top.values[0] - torch.logsumexp(logits, 0)).item()
        out.append((top.indices[0].item(), (top.values[0] - top.values[1]).item(), logprob))
        step = top.indices[:1].view(1, 1)
    return out


def perplexity(model, ids, bos):
    windows, nll, per_window = len(ids) // WINDOW, [], []
    for w in range(windows):
        window = list(ids[w * WINDOW:(w + 1) * WINDOW])
        if bos is not None:
            window[0] = bos
        logits = model(torch.tensor([window])).logits[0].double()
        first = WINDOW // 2
        targets = torch.tensor(window[first + 1:])
        rows = torch.log_softmax(logits[first:-1], dim=-1)
        losses = -rows[torch.arange(len(targets)), targets]
        nll += losses.tolist()
        per_window.append(round(math.exp(losses.mean().item()), 5))
        print(f"window {w + 1}/{windows}: {per_window[-1]:.4f}", file=sys.stderr)
    value = math.exp(sum(nll) / len(nll))
    print(f"{len(ids)} ids, perplexity {value:.4f}", file=sys.stderr)
    return {"ids": len(ids), "window": WINDOW, "windows": windows, "scored": len(nll),
            "value": round(value, 5), "per_window": per_window}


def compact(text):
    """Lists of numbers in one line."""
    return re.sub(r"\[[^\[\]{}\"]*\]", lambda m: re.sub(r"\s+", " ", m.group()), text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(PUBLISHED))
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)

    converted, model = load(args.model)
    tokenizer = with_digit_split(converted) if args.name == "smollm2" else converted
    adds_bos = tokenizer("x").input_ids[0] == tokenizer.bos_token_id
    bos = tokenizer.bos_token_id if adds_bos else None
    prompts = []
    for text in PROMPTS:
        prompt_ids = tokenizer(text).input_ids
        tokens = greedy(model, prompt_ids)
        prompts.append({
            "text": text,
            "prompt_ids": prompt_ids,
            "ids": [t[0] for t in tokens],
            "margins": [round(t[1], 5) for t in tokens],
            "logprobs": [round(t[2], 5) for t in tokens],
        })
        print(repr(tokenizer.decode(prompts[-1]["ids"])), file=sys.stderr)

    raw = pathlib.Path(TEXT).read_bytes()
    ids = tokenizer(raw.decode("utf-8")).input_ids
    truth = perplexity(model, ids, bos)
    published_ids = converted(raw.decode("utf-8")).input_ids
    published = {"value": truth["value"]}
    if published_ids != ids:
        published = perplexity(model, published_ids, bos) | {"token_ids": published_ids}
    if abs(published["value"] - PUBLISHED[args.name]) > 0.0006:
        sys.exit(f"{args.name}: perplexity {published['value']}, "
                 f"published {PUBLISHED[args.name]}")
    result = {
        "model_sha256": hashlib.sha256(pathlib.Path(args.model).read_bytes()).hexdigest(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "text": TEXT,
        "text_sha256": hashlib.sha256(raw).hexdigest(),
        "prompts": prompts,
        "perplexity": truth,
        "published": published,
    }
    out = pathlib.Path(__file__).parent / "fidelity" / f"{args.name}.json"
    out.write_text(compact(json.dumps(result, indent=1)) + "\n")


if __name__ == "__main__":
    main()
