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

Made with torch 2.15.0, transformers 5.24.0, gguf 0.19.0, accelerate 1.15.0, tokenizers 0.23.3.
The files are never edited by hand.
"""

import argparse
import hashlib
import json
import math
import os
import pathlib
import sys

import torch
import transformers

TEXT = "/usr/share/common-licenses/GPL-3"
TOKENS_PER_PROMPT = 48
WINDOW = 512
# The published truth that this script must find again, else it writes nothing.
TRUTH = {"smollm2": 18.130, "gemma3-270m": 13.829}
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
    windows, nll, count = len(ids) // WINDOW, 0.0, 0
    per_window = []
    for w in range(windows):
        window = list(ids[w * WINDOW:(w + 1) * WINDOW])
        if bos is not None:
            window[0] = bos
        logits = model(torch.tensor([window])).logits[0].double()
        first = WINDOW // 2
        targets = torch.tensor(window[first + 1:])
        rows = torch.log_softmax(logits[first:-1], dim=-1)
        losses = -rows[torch.arange(len(targets)), targets]
        nll, count = nll + losses.sum().item(), count + len(targets)
        per_window.append(round(math.exp(losses.mean().item()), 5))
        print(f"window {w + 1}/{windows}: {math.exp(nll / count):.4f}", file=sys.stderr)
    return math.exp(nll / count), count, per_window


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(TRUTH))
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)

    tokenizer, model = load(args.model)
    adds_bos = tokenizer("x").input_ids[0] == tokenizer.bos_token_id
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
    value, scored, per_window = perplexity(
        model, ids, tokenizer.bos_token_id if adds_bos else None)
    print(f"{args.name}: {len(ids)} ids, perplexity {value:.4f}", file=sys.stderr)
    if abs(value - TRUTH[args.name]) > 0.0006:
        sys.exit(f"{args.name}: perplexity {value:.5f}, published {TRUTH[args.name]}")
    result = {
        "model_sha256": hashlib.sha256(pathlib.Path(args.model).read_bytes()).hexdigest(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "prompts": prompts,
        "perplexity": {
            "text": TEXT,
            "text_sha256": hashlib.sha256(raw).hexdigest(),
            "ids": len(ids),
            "window": WINDOW,
            "windows": len(per_window),
            "scored": scored,
            "value": round(value, 5),
            "per_window": per_window,
        },
    }
    out = pathlib.Path(__file__).parent / "fidelity" / f"{args.name}.json"
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
