"""Small vocabularies for the models of make_tiny_model.py, trained on sentences made up here.

Each vocabulary is what a GGUF file says of one, with the library that trained it as the oracle for
ids: tokenizers for byte-level BPE, sentencepiece for the SentencePiece kind.
"""

import dataclasses
import io
import json
import random
from typing import Callable

import sentencepiece
import tokenizers
from gguf import TokenType

NOUNS = ["river", "engine", "garden", "letter", "winter", "market", "number", "window", "teacher",
         "island", "matter", "mother", "station", "paper", "water", "table"]
VERBS = ["finds", "holds", "opens", "follows", "counts", "writes", "reaches", "keeps", "moves"]
OTHER = ["old", "quiet", "the other", "every", "a small", "its own", "green", "no", "42", "1.5"]
ENDS = [".", "!", "?", ", and ", "; ", ".\n", " – ", ": "]

CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' "
          "+ message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
TURNS = ("{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' "
         "+ ('model' if message['role'] == 'assistant' else message['role']) + '\\n' "
         "+ message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}")


def sentence(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randint(2, 4)):
        parts.append(f"{rng.choice(OTHER)} {rng.choice(NOUNS)} {rng.choice(VERBS)} "
                     f"{rng.choice(OTHER)} {rng.choice(NOUNS)}{rng.choice(ENDS)}")
    return "".join(parts).strip()


def corpus() -> list[str]:
    rng = random.Random(5)
    return [sentence(rng) for _ in range(400)]


@dataclasses.dataclass
class Vocabulary:
    model: str  # tokenizer.ggml.model
    pre: str | None
    tokens: list[bytes]
    types: list[TokenType]
    scores: list[float] | None
    merges: list[str] | None
    bos: int
    eos: int
    unknown: int
    pad: int
    add_bos: bool
    template: str
    encode: Callable[[str], list[int]]  # with BOS where the model adds it
    decode: Callable[[list[int]], str]

    @property
    def size(self) -> int:
        return len(self.tokens)

    def specials(self) -> set[int]:
        return {i for i, t in enumerate(self.types) if t != TokenType.NORMAL}

    def write(self, writer):
        writer.add_tokenizer_model(self.model)
        if self.pre is not None:
            writer.add_tokenizer_pre(self.pre)
        writer.add_token_list(self.tokens)
        writer.add_token_types([int(t) for t in self.types])
        if self.scores is not None:
            writer.add_token_scores(self.scores)
            writer.add_add_space_prefix(False)
        if self.merges is not None:
            writer.add_token_merges(self.merges)
        writer.add_bos_token_id(self.bos)
        writer.add_eos_token_id(self.eos)
        writer.add_unk_token_id(self.unknown)
        writer.add_pad_token_id(self.pad)
        writer.add_add_bos_token(self.add_bos)
        writer.add_chat_template(self.template)


def byte_level(merges_wanted: int) -> Vocabulary:
    """256 bytes, some merges and three special tokens, split as SmolLM2 splits text."""
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=len(specials) + 256 + merges_wanted, special_tokens=specials,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False)
    model.train_from_iterator(corpus(), trainer)
    size = model.get_vocab_size()
    tokens = [model.id_to_token(i) for i in range(size)]
    # Each merge made the token after the last one: the parts follow from the saved model.
    saved = json.loads(model.to_str())["model"]["merges"]
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in saved]
    assert len(merges) == merges_wanted and size == len(specials) + 256 + merges_wanted
    return Vocabulary(
        model="gpt2", pre="smollm", tokens=[t.encode() for t in tokens],
        types=[TokenType.CONTROL] * 3 + [TokenType.NORMAL] * (size - 3), scores=None,
        merges=merges, bos=1, eos=2, unknown=0, pad=2, add_bos=False, template=CHATML,
        encode=lambda text: model.encode(text).ids,
        decode=lambda ids: model.decode(ids, skip_special_tokens=True))


def sentence_piece(size: int) -> Vocabulary:
    """Pieces with scores and 256 byte tokens, with Gemma's rules for BOS and spaces."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=out, model_type="bpe", vocab_size=size,
        byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False,
        remove_extra_whitespaces=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
        control_symbols=["<start_of_turn>", "<end_of_turn>"], num_threads=1, minloglevel=2)
    model = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    assert model.get_piece_size() == size

    def kind(i):
        if model.is_control(i):
            return TokenType.CONTROL
        if model.is_unknown(i):
            return TokenType.UNKNOWN
        return TokenType.BYTE if model.is_byte(i) else TokenType.NORMAL

    return Vocabulary(
        model="llama", pre=None, tokens=[model.id_to_piece(i).encode() for i in range(size)],
        types=[kind(i) for i in range(size)], scores=[model.get_score(i) for i in range(size)],
        merges=None, bos=2, eos=1, unknown=3, pad=0, add_bos=True, template=TURNS,
        encode=lambda text: [2, *model.encode(text)], decode=model.decode)
