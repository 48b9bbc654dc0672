"""Other implementations of tokenizers, each as an oracle: ids(flags, texts) gives the ids of every
text, texts(flags, ids) what the ids say, as text or bytes, or None where it has no say. `ways`:
the flags (of tokenizer_tools.py) that it can be asked with."""

import base64
import json
import unicodedata

import tokenizer_tools as tools

PARSE, ADD = tools.PARSE, tools.ADD_SPECIAL


class Tokenizers:
    """The package `tokenizers`; `name` of it and its version for the report."""

    ways = (PARSE, 0, PARSE | ADD)

    def __init__(self, backend, ways=ways):
        import tokenizers

        self.name = f"tokenizers {tokenizers.__version__}"
        self.backend, self.ways = backend, ways

    def ids(self, flags, texts):
        self.backend.encode_special_tokens = not flags & PARSE
        batch = self.backend.encode_batch_fast(texts, add_special_tokens=bool(flags & ADD))
        return [encoding.ids for encoding in batch]

    def texts(self, flags, ids):
        return self.backend.decode_batch(ids, skip_special_tokens=not flags & PARSE)


class Tiktoken:
    """Special tokens in a text cut it before it is normalised, as in tokenizer.json."""

    def __init__(self, ranks, pattern, specials, bos=None, nfc=False):
        import tiktoken

        self.name = f"tiktoken {tiktoken.__version__}"
        self.encoding = tiktoken.Encoding(
            name="oracle", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
        )
        self.nfc, self.bos = nfc, [] if bos is None else [specials[bos]]
        self.specials = set(specials.values())
        self.begins = {text[:2] for text in specials}
        self.ways = (PARSE, 0, PARSE | ADD)

    def one(self, flags, text):
        if self.nfc and not text.isascii():
            composed = unicodedata.normalize("NFC", text)
            if flags & PARSE and "\u0338" in text:  # it may go with the '>' of a special token
                return None
            # Normalisation is Python's; characters that are newer than it stay as they are.
            if any(unicodedata.category(c) == "Cn" for c in text):
                return None
            text = composed
        bos = self.bos if flags & ADD else []
        # Its search for thousands of special tokens is slow; most texts have none.
        if flags & PARSE and any(begin in text for begin in self.begins):
            return bos + self.encoding.encode(text, allowed_special="all")
        return bos + self.encoding.encode_ordinary(text)

    def ids(self, flags, texts):
        return [self.one(flags, text) for text in texts]

    def texts(self, flags, ids):
        if not flags & PARSE:
            ids = [[i for i in one if i not in self.specials] for one in ids]
        return [self.encoding.decode_bytes(one) for one in ids]


class SentencePiece:
    """It knows no special tokens in a text; it writes unknown tokens in a way of its own."""

    ways = (0,)

    def __init__(self, model_bytes):
        import sentencepiece

        self.name = f"sentencepiece {sentencepiece.__version__}"
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)

    def ids(self, flags, texts):
        return self.processor.encode(texts, num_threads=1)

    def texts(self, flags, ids):
        unknown = self.processor.unk_id()
        decoded = self.processor.decode(ids)
        return [None if unknown in one else text for one, text in zip(ids, decoded)]


class LlamaCpp:
    """Its tables are of Unicode 15 at most; it says nothing about strings that are newer."""

    ways = (PARSE,)

    def __init__(self, model):
        import llama_cpp

        self.name, self.model = f"llama-cpp-python {llama_cpp.__version__}", model

    def ids(self, flags, texts):
        return [self.one(text) for text in texts]

    def one(self, text):
        if any(unicodedata.category(c) == "Cn" for c in text):
            return None
        return self.model.tokenize(text.encode(), add_bos=False, special=True)

    def texts(self, flags, ids):
        return [None] * len(ids)


def ranks_of(path):
    lines = path.read_bytes().splitlines()
    return {base64.b64decode(t): int(r) for t, r in (line.split() for line in lines if line)}


def tekken_of(path):
    """(ranks as ids, pattern, special tokens) of a Tekken file, the last as mistral-common says."""
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    data = json.loads(path.read_text())
    config = data["config"]
    count = config["default_num_special_tokens"]
    size = config["default_vocab_size"] - count
    ranks = {base64.b64decode(t["token_bytes"]): count + t["rank"] for t in data["vocab"][:size]}
    known = Tekkenizer.from_file(path)
    specials = {known.id_to_piece(i): i for i in range(count)}
    assert len(specials) == count
    return ranks, config["pattern"], specials


def byte_level_backend(ranks, specials, pattern, nfc):
    """The tokenizer.json that `transformers` makes of tiktoken ranks: (backend, vocabulary for a
    GGUF file)."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models
    from tokenizers import normalizers as n
    from tokenizers import pre_tokenizers as p
    from transformers.convert_slow_tokenizer import TikTokenConverter

    converter = TikTokenConverter()
    converter.load_tiktoken_bpe = lambda _: ranks
    vocab, merges = converter.extract_vocab_merges_from_model("")
    first_special = min(specials.values())
    if first_special < min(vocab.values()):
        vocab |= specials
    backend = Tokenizer(models.BPE(vocab, merges, ignore_merges=not nfc))
    if nfc:
        backend.normalizer = n.NFC()
    backend.pre_tokenizer = p.Sequence(
        [p.Split(Regex(pattern), "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = decoders.ByteLevel()
    ordered = sorted(specials, key=specials.get)
    backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ordered])
    assert all(backend.token_to_id(t) == i for t, i in specials.items())
    everything = sorted((vocab | specials).items(), key=lambda item: item[1])
    assert [i for _, i in everything] == list(range(len(everything)))
    vocabulary = {
        "model": "gpt2",
        "tokens": [t for t, _ in everything],
        "kinds": [tools.CONTROL if t in specials else tools.NORMAL for t, _ in everything],
        "merges": merges,
    }
    return backend, vocabulary
