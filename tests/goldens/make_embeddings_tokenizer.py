"""The WordPiece tokenizer of make_embeddings.py, as BERT's folders have it."""

import collections
import re

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import tiny_vocabulary

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZE = 107


def pieces():
    """Letters at the beginning and inside of words, endings, and the most frequent words. Not
    trained: a trainer's choice among equals differs from run to run."""
    words = collections.Counter(
        word for line in tiny_vocabulary.corpus() for word in re.findall(r"\w+", line.lower()))
    letters = sorted({letter for word in words for letter in word})
    out = SPECIALS + list(".,!?;:\u2013") + letters + [f"##{letter}" for letter in letters]
    out += ["##" + ending for ending in ("er", "es", "in", "or", "et", "ing")]
    ranked = sorted(words, key=lambda word: (-words[word], word))
    out += [word for word in ranked if word not in out]
    assert len(out) >= SIZE, len(out)
    return out[:SIZE]


def make():
    vocabulary = {piece: index for index, piece in enumerate(pieces())}
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(SPECIALS)
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids)
    return tokenizer


def save(folder, length):
    tokenizer = make()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        pad_token="[PAD]", mask_token="[MASK]", model_max_length=length).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer
