"""Makes tests/goldens/sampling/{chain,newer,philox,logprobs}.txt.

Usage: python make_sampling.py

chain     what may be drawn and with what probability, by the logits processors of transformers
          (repetition penalty, top-k, typical, top-p, min-p, temperature) in the order of
          src/sampling/sampler.cc; bias, presence and frequency penalty by OpenAI's formula in
          numpy. In float64. Cases that a relative change of 1e-5 in p would decide otherwise are
          left out: rounding would make them a coin toss.
newer     XTC, top-n-sigma, mirostat 2, DRY and dynamic temperature in numpy, each from the
          definition in its paper or announcement (named in src/sampling), without a view to speed.
philox    Philox 4x32-10 by a second implementation on Python's integers, after Salmon et al. 2011.
logprobs  log-softmax by numpy in float64.

Made with numpy 2.4.6, torch 2.15.0, transformers 5.24.0. The files are never edited by hand.

chain.txt, one item per line, words separated by blanks:
  logits N value...                   dyadic, so that every reader gets the same floats
  history N id...
  case temperature top_k typical_p top_p min_p repetition presence frequency window
  bias N (id value)...
  kept N (id probability)...

newer.txt, likewise:
  logits N value...
  sigma n / kept N id...
  xtc threshold / kept N id...
  dynamic centre range exponent temperature
  mirostat limit tau eta token next-limit / kept N id...
  history N id...
  dry multiplier base allowed / breakers N id... / penalties N (id penalty)...
"""

import pathlib

import numpy
import torch
from transformers.generation import logits_process as processors

FOLDER = pathlib.Path(__file__).parent / "sampling"
F32 = numpy.float32


def truncate(scores, case, slack):
    """scores [1, vocabulary] float64 -> the same with -inf where dropped, at the temperature."""
    chain = []
    if case["top_k"]:
        chain.append(processors.TopKLogitsWarper(case["top_k"]))
    if 0 < case["typical_p"] < 1:
        chain.append(processors.TypicalLogitsWarper(mass=float(F32(case["typical_p"])) * slack))
    if 0 < case["top_p"] < 1:
        chain.append(processors.TopPLogitsWarper(float(F32(case["top_p"])) * slack))
    if case["min_p"]:
        chain.append(processors.MinPLogitsWarper(min(1.0, float(F32(case["min_p"])) * slack)))
    chain.append(processors.TemperatureLogitsWarper(float(F32(case["temperature"]))))
    for processor in chain:
        scores = processor(None, scores)
    return scores


def penalise(logits, history, case):
    scores = logits.astype(numpy.float64)
    for token, value in case["bias"]:
        scores[token] += float(F32(value))
    recent = history[-case["window"]:] if case["window"] else history
    if case["repetition"] and recent:
        processor = processors.RepetitionPenaltyLogitsProcessor(float(F32(case["repetition"])))
        scores = processor(torch.tensor([recent]), torch.tensor(scores[None]))[0].numpy()
    for token in set(recent):
        scores[token] -= (float(F32(case["frequency"])) * recent.count(token)
                          + float(F32(case["presence"])))
    return scores


def kept(logits, history, case):
    """[(id, probability)], or None when the border is too close to call."""
    scores = torch.tensor(penalise(logits, history, case)[None])
    results = [truncate(scores.clone(), case, slack)[0] for slack in (1, 1 - 1e-5, 1 + 1e-5)]
    sets = [torch.isfinite(result).nonzero().flatten().tolist() for result in results]
    if sets[0] != sets[1] or sets[0] != sets[2]:
        return None
    probabilities = torch.softmax(results[0], -1)
    return [(i, probabilities[i].item()) for i in sets[0]]


def settings(random):
    base = {"temperature": 1.0, "top_k": 0, "typical_p": 0, "top_p": 0, "min_p": 0,
            "repetition": 0, "presence": 0, "frequency": 0, "window": 0, "bias": []}
    single = [{}, {"temperature": 0.3}, {"temperature": 2.5}]
    single += [{"top_k": k} for k in (1, 2, 40, 299, 300)]
    single += [{"top_p": p} for p in (0.01, 0.5, 0.9, 0.999, 1.0)]
    single += [{"typical_p": p} for p in (0.01, 0.2, 0.9, 0.999, 1.0)]
    single += [{"min_p": p} for p in (0.001, 0.1, 0.7, 1.0)]
    single += [{"repetition": 1.3}, {"repetition": 0.8}, {"presence": 1.5}, {"frequency": 0.25},
               {"presence": -0.5, "frequency": 0.5, "window": 5},
               {"repetition": 1.1, "frequency": 0.1, "window": 20},
               {"bias": [(3, 4.0), (17, float("-inf")), (3, 0.5), (200, -2.5)]}]
    for change in single:
        yield base | change
    for _ in range(12):
        yield base | {
            "temperature": float(random.choice([0.5, 0.8, 1.0, 1.5])),
            "top_k": int(random.choice([0, 20, 100])),
            "typical_p": float(random.choice([0, 0.6, 0.95])),
            "top_p": float(random.choice([0, 0.8, 0.95])),
            "min_p": float(random.choice([0, 0.02, 0.05])),
            "repetition": float(random.choice([0, 1.2])),
            "presence": float(random.choice([0, 0.5])),
            "frequency": float(random.choice([0, 0.3])),
            "window": int(random.choice([0, 8])),
            "bias": [(int(random.integers(300)), 2.0)],
        }


def join(items):
    return " ".join(str(item) for item in items)


def write_chain():
    random = numpy.random.default_rng(3)
    lines = []
    left_out = 0
    for scale in (0.5, 2.0, 5.0):
        logits = numpy.round(random.normal(0, scale, 300) * 1024).astype(F32) / F32(1024)
        # No equal logits: transformers keeps or drops ties as its sort happens to lay them.
        assert len(set(logits.tolist())) > 280
        logits += numpy.arange(300, dtype=F32) / F32(2**19)
        assert len(set(logits.tolist())) == 300
        history = random.integers(0, 40, 30).tolist()
        lines.append("logits 300 " + join(logits.tolist()))
        lines.append("history 30 " + join(history))
        for case in settings(random):
            expected = kept(logits, history, case)
            if expected is None:
                left_out += 1
                continue
            lines.append("case " + join(case[key] for key in (
                "temperature", "top_k", "typical_p", "top_p", "min_p", "repetition", "presence",
                "frequency", "window")))
            lines.append(f"bias {len(case['bias'])} " + join(
                f"{token} {value}" for token, value in case["bias"]))
            lines.append(f"kept {len(expected)} " + join(
                f"{token} {probability:.7g}" for token, probability in expected))
    (FOLDER / "chain.txt").write_text("\n".join(lines) + "\n")
    print("chain:", sum(line.startswith("case") for line in lines), "cases,", left_out, "left out")


def clear_cut(values, border):
    """Whether no value is so close to the border that rounding decides."""
    return numpy.abs(values - border).min() > 1e-5 * max(abs(border), 1e-3)


def softmax(logits):
    weights = numpy.exp(logits - logits.max())
    return weights / weights.sum()


def newer_truncation(logits, random):
    """Lines of the samplers that look at one distribution."""
    lines = []
    wide = logits.astype(numpy.float64)
    p = softmax(wide)

    def kept(ids):
        lines.append(f"kept {len(ids)} " + join(ids))

    for n in (0.25, 1.0, 2.5):
        border = wide.max() - n * numpy.std(wide)
        if clear_cut(wide, border):
            lines.append(f"sigma {n}")
            kept(numpy.flatnonzero(wide >= border).tolist())
    for threshold in (0.001, 0.02, 0.1, 0.5):
        threshold = float(F32(threshold))
        if not clear_cut(p, threshold):
            continue
        above = [int(i) for i in numpy.argsort(-p, kind="stable") if p[i] >= threshold]
        lines.append(f"xtc {threshold}")
        kept(sorted(set(range(len(p))) - set(above[:-1])))
    for centre, spread, exponent in ((1.0, 0.5, 1.0), (0.8, 0.8, 2.0), (0.5, 1.0, 0.7)):
        low, high = max(0.0, centre - spread), centre + spread
        entropy = -(p * numpy.log(p)).sum() / numpy.log(len(p))
        lines.append(f"dynamic {centre} {spread} {exponent} "
                     f"{low + (high - low) * entropy**exponent:.9g}")
    for limit, tau, eta in ((10.0, 5.0, 0.1), (3.0, 5.0, 0.1), (6.5, 3.0, 0.25), (0.01, 3.0, 0.1)):
        surprise = -numpy.log2(p)
        if not clear_cut(surprise, limit):
            continue
        ids = numpy.flatnonzero(surprise <= limit).tolist() or [int(p.argmax())]
        token = int(random.choice(ids))
        observed = -numpy.log2(p[token] / p[ids].sum())
        lines.append(f"mirostat {limit} {tau} {eta} {token} {limit - eta * (observed - tau):.9g}")
        kept(ids)
    return lines


def dry_penalties(history, multiplier, base, allowed, breakers):
    """By the definition: for each earlier place the longest agreement with the end."""
    longest = {}
    for at in range(1, len(history)):
        token = history[at]
        if token in breakers:
            continue
        length = 0
        while (length < at and history[at - 1 - length] == history[-1 - length]
               and history[-1 - length] not in breakers):
            length += 1
        longest[token] = max(longest.get(token, 0), length)
    return {token: multiplier * base ** (length - allowed)
            for token, length in sorted(longest.items()) if length >= allowed}


def write_newer():
    random = numpy.random.default_rng(11)
    lines = []
    for scale in (0.3, 1.5, 4.0):
        logits = numpy.round(random.normal(0, scale, 120) * 1024).astype(F32) / F32(1024)
        logits += numpy.arange(120, dtype=F32) / F32(2**19)
        lines.append("logits 120 " + join(logits.tolist()))
        lines += newer_truncation(logits, random)
    for number in range(24):
        history = random.integers(0, 3 + number % 5, 10 + 3 * number).tolist()
        if number % 4 == 0:
            history += history[2:8]
        if number == 23:
            history = [7] * 60
        multiplier, base = (0.8, 1.75) if number % 2 else (0.5, 1.5)
        allowed = 1 + number % 3
        breakers = [] if number % 3 else [1]
        penalties = dry_penalties(history, multiplier, base, allowed, breakers)
        lines.append(f"history {len(history)} " + join(history))
        lines.append(f"dry {multiplier} {base} {allowed}")
        lines.append(f"breakers {len(breakers)} " + join(breakers))
        lines.append(f"penalties {len(penalties)} " + join(
            f"{token} {penalty:.9g}" for token, penalty in penalties.items()))
    (FOLDER / "newer.txt").write_text("\n".join(lines) + "\n")
    print("newer:", len(lines), "lines")


def philox(counter, key):
    counter, key = list(counter), list(key)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * counter[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * counter[2], 1 << 32)
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
        key = [(key[0] + 0x9E3779B9) % (1 << 32), (key[1] + 0xBB67AE85) % (1 << 32)]
    return counter


def write_philox():
    # The known answers published with Random123.
    known = [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ]
    for counter, key, answer in known:
        assert " ".join(f"{word:08x}" for word in philox(counter, key)) == answer
    random = numpy.random.default_rng(5)
    lines = []
    for _ in range(200):
        words = random.integers(0, 1 << 32, 6).tolist()
        lines.append(" ".join(f"{w:08x}" for w in words + philox(words[:4], words[4:])))
    (FOLDER / "philox.txt").write_text("\n".join(lines) + "\n")


def write_logprobs():
    random = numpy.random.default_rng(9)
    lines = []
    for scale, offset in ((0.01, 0), (3, 0), (3, 1e4), (3, -1e4), (40, 0)):
        logits = (random.normal(0, scale, 77) + offset).astype(F32)
        if scale == 40:
            logits[5] = -numpy.inf
        wide = logits.astype(numpy.float64)
        highest = wide.max()
        logprobs = wide - (highest + numpy.log(numpy.exp(wide - highest).sum()))
        lines.append("77 " + join(f"{v:.9g}" for v in logits.tolist()))
        lines.append(join(f"{v:.9g}" for v in logprobs.tolist()))
    (FOLDER / "logprobs.txt").write_text("\n".join(lines) + "\n")


FOLDER.mkdir(exist_ok=True)
write_chain()
write_newer()
write_philox()
write_logprobs()
