"""Small tokenizers in the manner of known model families, trained with `tokenizers`: every kind of
component that the library reads, in the combinations that models have. Used by
make_tokenizer_json.py and tests/long/tokenizer_subjects.py."""

import io
import json
import pathlib
import tempfile

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

N, P, D = normalizers, pre_tokenizers, decoders
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (
    r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?"
    r"|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + CONTRACTIONS + "?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI = (
    r"[\p{Han}]+|"
    + O200K.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace(r"[\r\n/]*", r"[\r\n]*")
)
DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK_CODER = (
    r"\s?\p{L}+",
    r"\s?\p{P}+",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
)
CLIP = (
    r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
)
WORDS = r"\w+(?:['\-]\w+)*|[^\w\s]\b|\B.|\d{,2}"


def byte_level_trainer(size, special):
    return trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=P.ByteLevel.alphabet(),
        special_tokens=special,
        show_progress=False,
    )


def split_bytes(*patterns):
    steps = [P.Split(Regex(p), "isolated") for p in patterns]
    return P.Sequence(steps + [P.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level(pre, normalizer=None, special=(), ignore_merges=False, prefix_space=False):
    def make(lines, size):
        tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
        tokenizer.pre_tokenizer = pre() if pre else P.ByteLevel(add_prefix_space=prefix_space)
        if normalizer:
            tokenizer.normalizer = normalizer()
        tokenizer.decoder = D.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
        tokenizer.train_from_iterator(lines, byte_level_trainer(size, list(special)))
        return tokenizer

    return make


def with_template(make, bos, eos=None):
    def made(lines, size):
        tokenizer = make(lines, size)
        single = f"{bos} $A" + (f" {eos}" if eos else "")
        ids = [(t, tokenizer.token_to_id(t)) for t in (bos, eos) if t]
        template = processors.TemplateProcessing(single=single, special_tokens=ids)
        tokenizer.post_processor = processors.Sequence(
            [processors.ByteLevel(trim_offsets=False), template]
        )
        return tokenizer

    return made


def with_added(make, *tokens):
    def made(lines, size):
        tokenizer = make(lines, size)
        for token in tokens:
            (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
        return tokenizer

    return made


ADDED = (
    AddedToken("<|l|>", lstrip=True, special=True, normalized=False),
    AddedToken("<|r|>", rstrip=True, special=True, normalized=False),
    AddedToken("the", single_word=True, normalized=False, special=False),
    AddedToken("  \t", normalized=False, special=False),
    AddedToken("<b>", normalized=True, special=False, lstrip=True, rstrip=True),
    AddedToken("<b><i>", normalized=True, special=False),
    AddedToken("\u00c9t\u00e9", normalized=True, special=False, single_word=True),
    AddedToken("<|im", special=False, normalized=False),
)


BYTE_TOKENS = [f"<0x{b:02X}>" for b in range(256)]


def byte_fallback(normalizer, pre, decoder, special=("<unk>", "<s>", "</s>"), **options):
    """SentencePiece's BPE as Llama, Mistral and Gemma have it."""

    def make(lines, size):
        trained = Tokenizer(models.BPE(unk_token="<unk>"))
        trained.normalizer = normalizer()
        trained.pre_tokenizer = P.Split("\u2581", "merged_with_next")
        trained.train_from_iterator(
            lines,
            trainers.BpeTrainer(vocab_size=size, limit_alphabet=150, show_progress=False),
        )
        model = json.loads(trained.to_str())["model"]
        words = list(special) + BYTE_TOKENS + ["\u2581\u2581", "\u2581\u2581\u2581\u2581"]
        words += [w for w in sorted(model["vocab"], key=model["vocab"].get) if w not in words]
        merges = [("\u2581", "\u2581"), ("\u2581\u2581", "\u2581\u2581")]
        merges += [tuple(m) for m in model["merges"] if tuple(m) not in merges]
        vocab = {w: i for i, w in enumerate(words)}
        tokenizer = Tokenizer(
            models.BPE(
                vocab=vocab,
                merges=merges,
                unk_token="<unk>",
                **{"fuse_unk": True, "byte_fallback": True, **options},
            )
        )
        tokenizer.normalizer = normalizer()
        if pre:
            tokenizer.pre_tokenizer = pre()
        tokenizer.decoder = decoder()
        tokenizer.add_special_tokens(list(special))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", vocab["<s>"])]
        )
        return tokenizer

    return make


def llama_decoder():
    return D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])


def gemma_decoder():
    return D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse()])


SPACES = "\u2581"


def word_piece(normalizer, pre, cleanup=True):
    def make(lines, size):
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer(), pre()
        tokenizer.train_from_iterator(
            lines,
            trainers.WordPieceTrainer(
                vocab_size=size, special_tokens=special, limit_alphabet=200, show_progress=False
            ),
        )
        tokenizer.post_processor = processors.BertProcessing(
            ("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]"))
        )
        tokenizer.decoder = D.WordPiece(prefix="##", cleanup=cleanup)
        return tokenizer

    return make


def charsmap(rules):
    """A small set of SentencePiece normalisation rules, or one that it knows by name."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    with tempfile.TemporaryDirectory() as folder:
        options = {"normalization_rule_name": rules}
        if isinstance(rules, dict):
            path = pathlib.Path(folder) / "rules.tsv"
            path.write_text(
                "".join(
                    " ".join(f"{ord(c):X}" for c in a) + "\t"
                    + " ".join(f"{ord(c):X}" for c in b) + "\n"
                    for a, b in rules.items()
                )
            )
            options = {"normalization_rule_tsv": str(path)}
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c", "abc abd"] * 9),
            model_writer=model,
            vocab_size=20,
            hard_vocab_limit=False,
            minloglevel=2,
            **options,
        )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


RULES = {chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}
RULES |= {
    "\u3000": " ",
    "\u00a0": " ",
    "\t": " ",
    "\n": " ",
    "\ufb01": "fi",
    "\u2460": "1",
    "A\u030a": "\u00c5",
    "e\u0301": "\u00e9",
    "\u212b": "\u00c5",
    "\u0958": "\u0915\u093c",
    "\u1100\u1161": "\uac00",
    "\u200b": "",
    "\u200d": " ",
    "\u0130": "i",
    "\U0001d54f": "X",
    "\u3392": "MHz",
}


def precompiled(rules):
    return N.Precompiled(charsmap(rules))


def unigram(normalizer, pre, byte_tokens=False, post=True):
    def make(lines, size):
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer(), pre()
        special = ["<pad>", "</s>", "<unk>"]
        tokenizer.train_from_iterator(
            lines,
            trainers.UnigramTrainer(
                vocab_size=size - (256 if byte_tokens else 0),
                special_tokens=special,
                unk_token="<unk>",
                show_progress=False,
            ),
        )
        if byte_tokens:
            data = json.loads(tokenizer.to_str())
            data["model"]["vocab"] += [[t, -20.0] for t in BYTE_TOKENS]
            data["model"]["byte_fallback"] = True
            tokenizer = Tokenizer.from_str(json.dumps(data))
        tokenizer.decoder = D.Metaspace(replacement="\u2581", prepend_scheme="always")
        if post:
            tokenizer.post_processor = processors.TemplateProcessing(
                single="$A </s>", special_tokens=[("</s>", 1)]
            )
        return tokenizer

    return make


def clip(lines, size):
    tokenizer = Tokenizer(
        models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>",
                   continuing_subword_prefix="")
    )
    tokenizer.normalizer = N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()])
    tokenizer.pre_tokenizer = P.Sequence(
        [P.Split(Regex(CLIP), "removed", invert=True), P.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.train_from_iterator(
        lines,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["<|startoftext|>", "<|endoftext|>"],
            initial_alphabet=P.ByteLevel.alphabet(),
            end_of_word_suffix="</w>",
            show_progress=False,
        ),
    )
    tokenizer.decoder = D.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), add_prefix_space=False, trim_offsets=False
    )
    return tokenizer


def prefixed(lines, size):
    """BPE with a mark for subwords that go on, unknown tokens that are not fused."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"))
    tokenizer.normalizer = N.Sequence([N.Nmt(), N.NFKC(), N.StripAccents(), N.Strip()])
    tokenizer.pre_tokenizer = P.Sequence([P.Whitespace(), P.Punctuation("merged_with_previous")])
    tokenizer.train_from_iterator(
        lines,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["[UNK]"],
            continuing_subword_prefix="##",
            limit_alphabet=120,
            show_progress=False,
        ),
    )
    return tokenizer


def words(lines, size):
    """BPE over what is left of a text by the odder pre-tokenisers."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=True))
    tokenizer.normalizer = N.Sequence([N.NFKD(), N.Lowercase()])
    tokenizer.pre_tokenizer = P.Sequence(
        [
            P.WhitespaceSplit(),
            P.Punctuation("contiguous"),
            P.Split(Regex(WORDS), "merged_with_next"),
            P.Digits(individual_digits=False),
        ]
    )
    tokenizer.train_from_iterator(
        lines,
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=["[UNK]"], limit_alphabet=120, show_progress=False
        ),
    )
    tokenizer.decoder = D.BPEDecoder(suffix="e")
    return tokenizer


def metaspace(scheme, split=True):
    return lambda: P.Metaspace(replacement="\u2581", prepend_scheme=scheme, split=split)


CHAT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LLAMA_PREFIX = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
GPT2 = byte_level(None, special=CHAT)

FAMILIES = {
    "gpt2": GPT2,
    "gpt2-added": with_added(GPT2, *ADDED),
    "phi": with_added(byte_level(None, special=CHAT, prefix_space=True), *ADDED),
    "llama3": with_template(
        byte_level(
            lambda: split_bytes(LLAMA3), special=("<|begin_of_text|>", "<|eot_id|>"),
            ignore_merges=True
        ),
        "<|begin_of_text|>",
    ),
    "qwen2": with_added(byte_level(lambda: split_bytes(QWEN2), N.NFC, special=CHAT), *ADDED),
    "smollm2": byte_level(
        lambda: P.Sequence(
            [P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False, use_regex=True)]
        ),
        special=CHAT,
    ),
    "o200k": byte_level(lambda: split_bytes(O200K), special=CHAT, ignore_merges=True),
    "kimi": byte_level(lambda: split_bytes(KIMI), special=CHAT),
    "deepseek-v3": byte_level(
        lambda: split_bytes(r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", DEEPSEEK3),
        special=CHAT,
    ),
    "deepseek-coder": byte_level(
        lambda: P.Sequence(
            [P.Split(Regex("[\r\n]"), "isolated")]
            + [P.Split(Regex(p), "isolated") for p in DEEPSEEK_CODER]
            + [
                P.Digits(individual_digits=True),
                P.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        ),
        special=CHAT,
    ),
    "falcon": byte_level(
        lambda: P.Sequence(
            [
                P.Punctuation("contiguous"),
                P.ByteLevel(add_prefix_space=False),
                P.Digits(individual_digits=False),
                P.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
            ]
        ),
        special=CHAT,
    ),
    "llama2": with_added(byte_fallback(lambda: LLAMA_PREFIX, None, llama_decoder), *ADDED),
    "mistral": with_added(
        byte_fallback(lambda: N.Sequence([]), metaspace("first", False), llama_decoder), *ADDED
    ),
    "mistral-strip": byte_fallback(lambda: N.Strip(), metaspace("first"), llama_decoder),
    "gemma": with_added(
        byte_fallback(
            lambda: N.Replace(" ", "\u2581"),
            lambda: P.Split(" ", "merged_with_previous"),
            gemma_decoder,
        ),
        *ADDED,
    ),
    "no-bytes": byte_fallback(
        lambda: LLAMA_PREFIX, None, llama_decoder, byte_fallback=False, fuse_unk=False
    ),
    "bert": with_added(word_piece(lambda: N.BertNormalizer(), lambda: P.BertPreTokenizer()),
                       *ADDED),
    "bert-cased": word_piece(
        lambda: N.BertNormalizer(lowercase=False, strip_accents=False),
        lambda: P.BertPreTokenizer(),
        cleanup=False,
    ),
    "t5": unigram(
        lambda: precompiled(RULES),
        lambda: P.Sequence([P.WhitespaceSplit(), metaspace("always")()]),
    ),
    "xlm-r": with_added(
        unigram(
            lambda: N.Sequence([precompiled(RULES), N.Replace(Regex(" {2,}"), " ")]),
            metaspace("always"),
        ),
        *ADDED,
    ),
    "albert": unigram(
        lambda: N.Sequence(
            [
                N.Replace("``", '"'),
                N.Replace("''", '"'),
                N.NFKD(),
                N.StripAccents(),
                N.Lowercase(),
                precompiled(RULES),
            ]
        ),
        metaspace("always"),
    ),
    "unigram-bytes": unigram(lambda: N.NFKC(), metaspace("never", False), byte_tokens=True),
    "clip": clip,
    "prefixed": prefixed,
    "words": words,
}


def as_json(tokenizer):
    """Without what a reader does not need, on few lines."""
    data = json.loads(tokenizer.to_str())
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
