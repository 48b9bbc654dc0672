#!/usr/bin/env python3
"""Adds to tests/goldens/tokenizer/ the vocabularies whose GGUF names stand for pipelines of
tokenizer.json: the pre-tokenisers falcon, mpt, olmo, chatglm-bpe, deepseek-llm, deepseek-coder and
deepseek-v3, and the tokenizer models bert, gemma4 and t5 (Unigram);
and SentencePiece models with symbols of their own.

Expected ids come from tokenizers 0.23.3, those of t5 and SentencePiece models from sentencepiece
0.2.3, over the strings that make_tokenizer.py wrote.
"""

import io
import json

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

import make_tokenizer
import tokenizer_json_families as families
import tokenizer_tools as tools

P = pre_tokenizers
# Letters that have a case and signs, as DeepSeek LLM's tokenizer.json lists them.
DEEPSEEK_LETTERS = """
B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C 38E-3A1
3A3-3F5 3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B
1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D
1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102
2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183
2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D A680-A69B A722-A76F A771-A787 A78B-A78E
AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2
10CC0-10CF2 118A0-118DF 1E900-1E943
"""


def listed(ranges):
    out = ""
    for part in ranges.split():
        out += "-".join(chr(int(end, 16)) for end in part.split("-"))
    return out


def splits(*patterns, digits=False):
    steps = [P.Split(Regex(p), "isolated") for p in patterns]
    if digits:
        steps.append(P.Digits(individual_digits=True))
    return P.Sequence(steps + [P.ByteLevel(add_prefix_space=False, use_regex=False)])


def deepseek_llm():
    return splits(
        "[\r\n]",
        r"\s?[A-Za-z" + listed(DEEPSEEK_LETTERS) + "]+",
        r"\s?[!-/:-~" + listed("FF01-FF0F FF1A-FF5E 2018-201F 3000-3002") + "]+",
        r"\s+$",
        families.DEEPSEEK_CODER[2],
        digits=True,
    )


def falcon():
    return P.Sequence(
        [
            P.Punctuation("contiguous"),
            P.ByteLevel(add_prefix_space=False),
            P.Digits(individual_digits=False),
            P.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        ]
    )


def gpt2():
    return P.ByteLevel(add_prefix_space=False)


BYTE_LEVEL = {
    "falcon": (falcon, None, False),
    "mpt": (gpt2, normalizers.NFC, False),
    "olmo": (gpt2, normalizers.NFC, False),
    "chatglm-bpe": (lambda: splits(families.LLAMA3), None, True),
    "deepseek-llm": (deepseek_llm, None, False),
    "deepseek-coder": (
        lambda: splits("[\r\n]", *families.DEEPSEEK_CODER, digits=True),
        None,
        False,
    ),
    "deepseek-v3": (
        lambda: splits(
            r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", families.DEEPSEEK3
        ),
        None,
        False,
    ),
}


def byte_level(name, strings):
    pre, normalizer, whole_words = BYTE_LEVEL[name]
    trained = families.byte_level(pre, normalizer)(make_tokenizer.training_lines(strings), 1200)
    model = json.loads(trained.to_str())["model"]
    index = dict(model["vocab"])
    merges = [tuple(merge) for merge in model["merges"]]
    if whole_words:
        for word in ("Helloworld", "\u0120interoperability", "helloWORLDfoo"):
            index.setdefault(word, len(index))
    vocabulary = {
        "model": "gpt2",
        "pre": name,
        "merges": merges,
        "tokens": sorted(index, key=index.get) + make_tokenizer.CONTROL,
    }
    special = len(make_tokenizer.CONTROL)
    vocabulary["kinds"] = [tools.NORMAL] * len(index) + [tools.CONTROL] * special
    vocabulary["bos"] = vocabulary["eos"] = len(index)
    reference = Tokenizer(models.BPE(vocab=index, merges=merges, ignore_merges=whole_words))
    reference.pre_tokenizer, reference.normalizer = trained.pre_tokenizer, trained.normalizer
    reference.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t in make_tokenizer.CONTROL]
    )
    return vocabulary, reference


def bert(strings):
    reference = families.word_piece(
        lambda: normalizers.BertNormalizer(), lambda: P.BertPreTokenizer()
    )(make_tokenizer.training_lines(strings), 1200)
    index = reference.get_vocab()
    names = sorted(index, key=index.get)

    def written(token):
        if token.startswith("[") and token.endswith("]"):
            return token
        return token[2:] if token.startswith("##") else "\u2581" + token

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    for token in special:
        reference.add_special_tokens([AddedToken(token, special=True, normalized=False)])
    return {
        "model": "bert",
        "pre": "bert-bge",
        "tokens": [written(t) for t in names],
        "kinds": [tools.CONTROL if t in special else tools.NORMAL for t in names],
        "bos": index["[CLS]"],
        "eos": index["[SEP]"],
        "unknown": index["[UNK]"],
    }, reference


def gemma4(strings):
    vocabulary, reference = make_tokenizer.gemma_like()
    # Its files name runs of spaces as the merges do.
    tokens = [t.replace(" ", "\u2581") if not t.strip(" ") else t for t in vocabulary["tokens"]]
    vocabulary["tokens"] = tokens
    merges = [tuple(merge) for merge in json.loads(reference.to_str())["model"]["merges"]]
    return {**vocabulary, "model": "gemma4", "pre": "gemma4", "merges": merges}, reference


SYMBOLS = ["<extra_id_0>", "<extra_id_1>", "</b>", "<b>", "<b><i>"]
# SentencePiece models: Unigram in T5's own manner (NFKC rules, spaces collapsed, no byte tokens)
# and in the opposite of each; both kinds with symbols inside of texts, which tokenizer.model files
# have and GGUF files do not: there symbols cut a text, and after each comes a text of its own.
SENTENCEPIECE = {
    "t5": {"model_type": "unigram"},
    "t5-bytes": {
        "model_type": "unigram",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
    },
    "unigram-symbols": {
        "model_type": "unigram",
        "user_defined_symbols": SYMBOLS + ["the", "\uff0c", "\u2581\u2581\u2581", "(a"],
    },
    "bpe-symbols": {
        "model_type": "bpe",
        "byte_fallback": True,
        "user_defined_symbols": SYMBOLS + ["the", "\uff0c", "\u2581\u2581\u2581", "(a"],
    },
}


def trained(name):
    """The vocabulary as a file has it, and the model of sentencepiece."""
    lines = make_tokenizer.training_lines(tools.HAND_MADE)
    lines = [t.replace("\n", " ").replace("\0", "") for t in lines]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(t for t in lines if len(t) < 400),
        model_writer=model,
        vocab_size=1000,
        character_coverage=0.98,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        num_threads=1,
        minloglevel=2,
        **SENTENCEPIECE[name],
    )
    data = model.getvalue()
    vocabulary = make_tokenizer.sentencepiece_vocabulary(data)
    rules = sentencepiece_model_pb2.ModelProto.FromString(data).normalizer_spec
    return {
        **vocabulary,
        "model": "llama" if name.startswith("bpe") else "t5",
        "user_defined_inside": name.endswith("-symbols"),
        "pad": 0,
        "add_eos": 1,
        "add_space_prefix": int(rules.add_dummy_prefix),
        "remove_extra_whitespaces": rules.remove_extra_whitespaces,
        "charsmap": rules.precompiled_charsmap,
    }, data


def main():
    read, take = tools.number_reader((make_tokenizer.OUT / "strings.bin").read_bytes())
    strings = [take(read()).decode() for _ in range(read())]
    for name in BYTE_LEVEL:
        vocabulary, reference = byte_level(name, strings)
        make_tokenizer.write(name, vocabulary, strings, make_tokenizer.both(reference, strings))
    for name, make in (("bert-bge", bert), ("gemma4", gemma4)):
        vocabulary, reference = make(strings)
        answers = make_tokenizer.both(reference, strings)
        if name == "bert-bge":  # U+2581 marks words there: a token of it may be either of two
            for lists in answers.values():
                lists[:] = [None if "\u2581" in t else ids for t, ids in zip(strings, lists)]
        make_tokenizer.write(name, vocabulary, strings, answers)
    for name in SENTENCEPIECE:
        vocabulary, data = trained(name)
        processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        plain, end = processor.encode(strings), vocabulary["eos"]
        ended = [None if i % 16 else ids + [end] for i, ids in enumerate(plain)]
        answers = {0: plain, tools.ADD_SPECIAL: ended}
        make_tokenizer.write(name, vocabulary, strings, answers)


if __name__ == "__main__":
    main()
