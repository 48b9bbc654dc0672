"""Text, tokens, logits and sessions, against what transformers computed."""
import io
import json

import numpy
import pytest
from conftest import GOLDENS, tiny_golden

import sits_optima
from sits_optima import EventType, Finish, Model, Verdict

# Two, three and four bytes a character; the tiny vocabulary has tokens of one byte for them.
FORCED = "n\u00efve \u2013 \u6f22\U0001f33f!"


@pytest.mark.parametrize("name", ["llama-q8_0", "gemma3-f32"])
def test_greedy_tokens_are_those_of_transformers(name):
    golden = tiny_golden(name)
    with Model(golden.path, threads=1) as model:
        count = len(golden.continuation_ids)
        result = model.generate(golden.prompt, max_tokens=count)
        assert result.token_ids == golden.continuation_ids
        assert result.prompt_ids == golden.prompt_ids
        assert result.finish == Finish.LENGTH
        assert result.counters.output_tokens == count
        assert model.generate(golden.prompt_ids, max_tokens=count).text == result.text
        events = list(model.stream(golden.prompt, max_tokens=count))
        assert [event.token for event in events] == golden.continuation_ids
        assert [event.index for event in events] == list(range(count))


def test_tokenizer(model, golden):
    assert model.tokenize(golden.prompt) == golden.prompt_ids
    assert model.detokenize(golden.prompt_ids) == golden.prompt
    assert model.detokenize_bytes(golden.continuation_ids).decode(
        "utf-8", "replace") == golden.continuation


def test_streamed_text_is_whole_code_points(session):
    stream = session.stream("x", grammar=f'root ::= "{FORCED}"', grammar_kind="gbnf")
    events = list(stream)
    assert "".join(event.text for event in events) == FORCED == stream.result.text
    assert b"".join(event.bytes for event in events).startswith(FORCED.encode())
    # The point of the test: code points were split over tokens.
    assert any(event.bytes and not event.text for event in events)


def test_text_may_hold_a_nul(session):
    stream = session.stream("x", grammar='root ::= "a\\x00b"', grammar_kind="gbnf")
    assert "".join(event.text for event in stream) == "a\0b" == stream.result.text
    events = []
    session.generate("x", grammar='root ::= "a\\x00b"', grammar_kind="gbnf",
                     on_event=events.append)
    assert b"".join(event.bytes for event in events).startswith(b"a\0b")


def test_held_back_text_comes_at_the_end(session):
    grammar = f'root ::= "{FORCED}"'
    stream = session.stream("x", grammar=grammar, grammar_kind="gbnf", stops=["!never"])
    assert "".join(event.text for event in stream) == FORCED
    stopped = session.generate("x", grammar=grammar, grammar_kind="gbnf", stops=["zzz", "\u6f22"])
    assert (stopped.finish, stopped.stop_index) == (Finish.STOP_STRING, 1)
    assert stopped.text == FORCED[:FORCED.index("\u6f22")]


def test_events_of_a_callback(session, golden):
    events = []
    session.generate(golden.prompt, max_tokens=5, logprobs=3, on_event=events.append)
    assert [event.type for event in events] == (
        [EventType.PREFILL] + [EventType.TOKEN] * 5 + [EventType.DONE])
    assert events[0].tokens_total == len(golden.prompt_ids)
    assert [event.token for event in events[1:6]] == golden.continuation_ids[:5]
    row = golden.logits[len(golden.prompt_ids) - 1].astype(float)
    best = row.max() - numpy.log(numpy.exp(row - row.max()).sum()) - row.max()
    assert events[1].top[0].token == golden.continuation_ids[0]
    assert len(events[1].top) == 3
    assert abs(events[1].logprob - best) < 0.2  # the fast path rounds activations to 8 bits


def test_verdicts_of_a_callback(session, golden):
    def until(index, verdict):
        return lambda event: verdict if event.index == index and event.token >= 0 else None

    stopped = session.generate(golden.prompt, on_event=until(2, Verdict.STOP))
    assert stopped.finish == Finish.HOST
    assert stopped.token_ids == golden.continuation_ids[:3]
    assert session.tokens == golden.prompt_ids + golden.continuation_ids[:3]
    session.reset()
    undone = session.generate(golden.prompt, on_event=until(2, Verdict.CANCEL))
    assert undone.finish == Finish.CANCELLED
    assert session.tokens == []


def test_logits_are_those_of_transformers(golden):
    with Model(golden.path, threads=1) as model, model.session(path="reference") as session:
        logits = session.logits(golden.prompt_ids)
        assert logits.dtype == numpy.float32
        wanted = golden.logits[:len(golden.prompt_ids)]
        assert logits.shape == wanted.shape
        assert numpy.abs(logits - wanted).max() < 1e-3 * golden.logits_std
        at = len(golden.prompt_ids) + 1  # of the output
        result = session.generate(golden.prompt, max_tokens=3, logits_positions=[at])
        assert numpy.abs(result.logits[0] - golden.logits[at]).max() < 1e-3 * golden.logits_std


def test_on_logits_changes_the_choice(model, golden):
    seen = []

    def ban(logits, tokens):
        seen.append(list(tokens))
        logits[golden.continuation_ids[0]] = -numpy.inf

    row = golden.logits[len(golden.prompt_ids) - 1].copy()
    row[golden.continuation_ids[0]] = -numpy.inf
    with model.session(path="reference") as session:
        result = session.generate(golden.prompt, max_tokens=1, on_logits=ban)
        assert result.token_ids == [int(row.argmax())]
        assert seen == [golden.prompt_ids]
        biased = session.generate(golden.prompt, max_tokens=1, logit_bias={7: 1e9})
        assert biased.token_ids == [7]


def test_chat_renders_the_template(model, golden):
    messages = [{"role": "user", "content": "a small garden"}]
    prompt = model.render(messages)
    assert prompt == ("<|im_start|>user\na small garden<|im_end|>\n<|im_start|>assistant\n")
    wanted = model.generate(model.tokenize(prompt, no_add_special=True), max_tokens=4).token_ids
    assert model.chat(messages, max_tokens=4).token_ids == wanted
    assert [event.token for event in model.stream_chat(messages, max_tokens=4)] == wanted


def test_sessions_fork_save_and_restore(model, golden, tmp_path):
    count = len(golden.continuation_ids)
    with model.session() as session:
        session.generate(golden.prompt, prompt_only=True)
        fork = session.fork()
        session.save(tmp_path / "saved")
        stream = io.BytesIO()
        session.save(stream)
        others = [fork, model.restore(tmp_path / "saved"), model.restore(stream)]
        for other in [session] + others:
            assert other.tokens == golden.prompt_ids
            result = other.generate("", append=True, max_tokens=count)
            assert result.token_ids == golden.continuation_ids
        session.truncate(3)
        assert session.tokens == golden.prompt_ids[:3]
        assert session.kv["tokens"] <= 3
        for other in others:
            other.close()


def test_embeddings_are_those_of_transformers():
    golden = json.loads((GOLDENS / "embeddings/bert/golden.json").read_text())
    with Model(GOLDENS / "embeddings/bert", threads=1) as model:
        rows = model.embed(golden["texts"])
        assert rows.shape == (len(golden["texts"]), model.info.embedding_width)
        for row, wanted in zip(rows, golden["text_embeddings"]):
            wanted = numpy.array(wanted["mean"]["plain"])
            cosine = row @ wanted / numpy.linalg.norm(row) / numpy.linalg.norm(wanted)
            assert cosine > 0.999
        assert numpy.array_equal(model.embed(golden["texts"][0]).shape, rows[0].shape)
        with model.session(output="embedding") as session:
            one = session.embed(golden["texts"][1])
            assert one.finish == Finish.EMBEDDED
            assert numpy.abs(one.embedding - rows[1]).max() < 1e-2


def test_every_source_of_a_model(golden):
    data = golden.path.read_bytes()
    lengths = {}
    for file in (GOLDENS / "arch/llama").iterdir():
        if file.suffix in (".json", ".safetensors"):
            lengths[file.name] = file.stat().st_size

    def read(name, offset, into):
        with open(GOLDENS / "arch/llama" / name, "rb") as file:
            file.seek(offset)
            assert file.readinto(into) == len(into)

    for make, wanted in (
            (lambda: Model.from_bytes(data), golden),
            (lambda: Model.from_bytes(bytearray(data)), golden),
            (lambda: Model.from_reader(io.BytesIO(data)), golden),
            (lambda: Model.from_folder(lengths, read), json.loads(
                (GOLDENS / "arch/llama/golden.json").read_text()))):
        with make() as model:
            if isinstance(wanted, dict):
                ids, out = wanted["text_ids"], wanted["continuation_ids"]
            else:
                ids, out = wanted.prompt_ids, wanted.continuation_ids
            assert model.generate(ids, max_tokens=len(out), ignore_eos=True).token_ids == out


def test_metadata(model, golden):
    assert model.architecture == model.metadata("general.architecture") == "llama"
    assert model.metadata("no.such.key") is None
    assert len(model.metadata("tokenizer.ggml.tokens")) == golden.vocabulary
    assert model.info.vocabulary == golden.vocabulary
    assert model.engine.memory["weights_mapped_bytes"] == golden.path.stat().st_size
    assert sits_optima.version().count(".") == 2


def test_host_driven_engine(golden):
    engine = sits_optima.Engine(drive="host", threads=1)
    with Model(golden.path, engine=engine) as model:
        events = list(model.stream(golden.prompt, max_tokens=4))
        tokens = [event.token for event in events if event.type == EventType.TOKEN]
        assert tokens == golden.continuation_ids[:4]
        assert model.generate(golden.prompt, max_tokens=4).token_ids == tokens
        assert engine.step() is False
