"""enable_optima on stand-ins for a transformers model: objects with its interface and the tensors
of a recorded checkpoint, without torch. tests/long/enable_optima.sh does it with transformers."""
import json
import math

import numpy
import pytest
from conftest import GOLDENS

from sits_optima import (ArgumentError, ContextFull, DeviceNotFound, Enabled, OptimaError,
                         Unsupported, enable_optima)

WIDTHS = {"F32": 4, "F16": 2, "BF16": 2}
NAMES = {"F32": "torch.float32", "F16": "torch.float16", "BF16": "torch.bfloat16"}


class Weight:
    """As torch.Tensor, as far as weights are asked."""

    def __init__(self, memory, dtype, shape):
        self._memory, self.dtype, self.shape = memory, dtype, shape

    def detach(self):
        return self

    cpu = contiguous = detach

    def element_size(self):
        return self._memory.nbytes // max(self.numel(), 1)

    def numel(self):
        return math.prod(self.shape)

    def data_ptr(self):
        return self._memory.ctypes.data


class Ids:
    """As torch.LongTensor, as far as ids are asked."""

    def __init__(self, values):
        self._values = values

    def tolist(self):
        return self._values

    def new_tensor(self, values):
        return Ids(values)

    def new_empty(self, shape):
        return Ids([0] * shape[0])

    def random_(self, first, last):
        return Ids([(first + last) // 3 for _ in self._values])


class Config:
    def __init__(self, text):
        self._text = text

    def to_json_string(self):
        return self._text

    def to_dict(self):
        return json.loads(self._text)


def weights_of(file):
    data = numpy.fromfile(file, numpy.uint8)
    header_bytes = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:8 + header_bytes].tobytes())
    header.pop("__metadata__", None)
    out = {}
    for name, row in header.items():
        first, last = row["data_offsets"]
        memory = data[8 + header_bytes + first:8 + header_bytes + last].copy()
        out[name] = Weight(memory, NAMES[row["dtype"]], tuple(row["shape"]))
    return out


class StandIn:
    """A causal language model of transformers, but for the computing."""

    def __init__(self, name):
        folder = GOLDENS / "arch" / name
        self.config = Config((folder / "config.json").read_text())
        self.generation_config = Config((folder / "generation_config.json").read_text())
        self.name_or_path = str(folder)
        self.golden = json.loads((folder / "golden.json").read_text())
        self._weights = {}
        for file in sorted(folder.glob("*.safetensors")):
            self._weights |= weights_of(file)
        self.calls = []

    def state_dict(self):
        return self._weights

    def generate(self, *arguments, **keywords):
        self.calls.append((arguments, keywords))
        return "of transformers"

    def prompt(self):
        return Ids([self.golden["text_ids"]])

    def answer(self):
        return [self.golden["text_ids"] + self.golden["continuation_ids"]]


@pytest.fixture(params=["llama", "qwen2"])
def model(request):
    return StandIn(request.param)


def ask(model, **options):
    # The recorded answers are without a penalty and without an end.
    options = {"max_new_tokens": len(model.golden["continuation_ids"]), "do_sample": False,
               "eos_token_id": 10 ** 6, "repetition_penalty": 1.0, "use_sits_kernel": True,
               **options}
    return model.generate(model.prompt(), **options).tolist()


def test_greedy_tokens_are_those_of_transformers(model):
    with enable_optima(model, threads=1) as enabled:
        assert isinstance(enabled, Enabled)
        assert ask(model) == model.answer()
        assert model.calls == []
        assert enabled.device == "cpu"
        assert enabled.engine_model.info.vocabulary == model.golden["vocabulary"]


@pytest.mark.parametrize("name", ["llama_llama3", "gpt2", "phi3"])
def test_other_architectures(name):
    """Tied heads, tensors of 16 bits, several shards, transposed matrices."""
    model = StandIn(name)
    with enable_optima(model, threads=1):
        if "continuation_ids" in model.golden:
            assert ask(model) == model.answer()


def test_it_is_reversible(model):
    before = dict(vars(model))
    enabled = enable_optima(model, threads=1)
    assert "generate" in vars(model) and enabled.enabled
    assert model.generate(1, a=2) == "of transformers"
    assert model.calls == [((1,), {"a": 2})]
    enabled.disable()
    enabled.disable()
    assert not enabled.enabled
    assert vars(model) == before
    assert model.generate(use_sits_kernel=True) == "of transformers"  # whose error it would be

    own = model.generate = lambda *_, **__: "its own"
    with enable_optima(model, threads=1):
        assert model.generate() == "its own"
    assert model.generate is own


def test_it_is_idempotent(model):
    first = enable_optima(model, "latency", threads=1)
    generate = model.generate
    second = enable_optima(model, "throughput")
    assert model.generate is generate
    assert second.engine_model is first.engine_model
    assert first.profile_mode == "throughput"
    with second:
        assert ask(model) == model.answer()
    assert first.enabled  # it was enabled before the `with`
    first.disable()
    assert not second.enabled


@pytest.mark.parametrize("mode", ["latency", "throughput", "auto"])
def test_batches(model, mode):
    ids, wanted = model.golden["text_ids"], model.golden["continuation_ids"]
    pad = 1
    with enable_optima(model, mode, threads=1):
        out = model.generate(
            Ids([[pad] * 3 + ids, [pad] * 3 + ids]),
            attention_mask=Ids([[0] * 3 + [1] * len(ids)] * 2), max_new_tokens=len(wanted),
            eos_token_id=[10 ** 6], pad_token_id=pad, do_sample=False, repetition_penalty=1.0,
            use_sits_kernel=True)
        assert out.tolist() == [[pad] * 3 + ids + wanted] * 2


def test_rows_that_end_early_are_padded(model):
    ids, wanted = model.golden["text_ids"], model.golden["continuation_ids"]
    last = next(i for i in range(3, len(wanted)) if wanted[i] not in wanted[:i])
    rows = [[1, 1] + ids, ids + wanted[:2]]
    mask = [[0, 0] + [1] * len(ids), [1] * (len(ids) + 2)]
    with enable_optima(model, threads=1):
        out = model.generate(Ids(rows), attention_mask=Ids(mask), max_new_tokens=len(wanted),
                             eos_token_id=wanted[last], pad_token_id=1, do_sample=False,
                             repetition_penalty=1.0, use_sits_kernel=True)
        assert out.tolist() == [rows[0] + wanted[:last + 1], ids + wanted[:last + 1] + [1, 1]]


def test_ends(model):
    ids, wanted = model.golden["text_ids"], model.golden["continuation_ids"]
    with enable_optima(model, threads=1):
        assert ask(model, eos_token_id=wanted[3]) == [ids + wanted[:4]]
        assert ask(model, eos_token_id=[7, wanted[3]]) == [ids + wanted[:4]]
        assert ask(model, max_new_tokens=None, max_length=len(ids) + 2) == [ids + wanted[:2]]
        with pytest.raises(ArgumentError, match="max_length"):
            ask(model, max_new_tokens=None, max_length=3)
        with pytest.raises(ContextFull, match="context") as caught:
            ask(model, max_new_tokens=10 ** 6)
        assert caught.value.limit == caught.value.available


def test_sampling(model):
    with enable_optima(model, threads=1):
        # With the most probable token alone there is nothing to choose.
        assert ask(model, do_sample=True, top_k=1) == model.answer()
        assert ask(model, do_sample=True, temperature=0.5, top_p=1e-6) == model.answer()
        several = ask(model, do_sample=True, max_new_tokens=4, top_k=1, num_return_sequences=3)
        assert several == [model.golden["text_ids"] + model.golden["continuation_ids"][:4]] * 3
        with pytest.raises(ArgumentError, match="num_return_sequences"):
            ask(model, num_return_sequences=3)


def test_streamer(model):
    class Streamer:
        def __init__(self):
            self.put_ids, self.ended = [], False

        def put(self, ids):
            self.put_ids.append(ids.tolist())

        def end(self):
            self.ended = True

    streamer = Streamer()
    with enable_optima(model, threads=1):
        assert ask(model, streamer=streamer) == model.answer()
    assert streamer.ended
    assert streamer.put_ids == [[model.golden["text_ids"]]] + [
        [token] for token in model.golden["continuation_ids"]]


def test_what_it_declines_is_named(model):
    with enable_optima(model, threads=1) as enabled:
        assert enabled.declined == []
        for options, name in (({"num_beams": 4}, "num_beams=4"),
                              ({"stopping_criteria": [print]}, "stopping_criteria"),
                              ({"inputs_embeds": object()}, "inputs_embeds"),
                              ({"no_repeat_ngram_size": 2, "output_scores": True},
                               "no_repeat_ngram_size=2, output_scores=True")):
            with pytest.raises(Unsupported, match=name):
                ask(model, **options)
        with pytest.raises(Unsupported, match="gaps"):
            count = len(model.golden["text_ids"])
            ask(model, attention_mask=Ids([[1] * (count - 1) + [0]]))
        assert ask(model, num_beams=1, use_cache=True, stopping_criteria=[]) == model.answer()
    assert model.calls == []
    model.generation_config = Config(json.dumps({"num_beams": 3, "eos_token_id": 2}))
    with enable_optima(model, threads=1) as enabled:
        assert enabled.declined == ["num_beams=3"]


def test_arguments(model):
    for device in ("cuda", "cuda:0", "Some Accelerator"):
        with pytest.raises(DeviceNotFound, match=f"{device}.*there are cpu"):
            enable_optima(model, target_device=device)
    with pytest.raises(ArgumentError, match="latency, throughput, auto"):
        enable_optima(model, profile_mode="fast")
    assert "generate" not in vars(model)
    with enable_optima(model, target_device="cpu", threads=1):
        with pytest.raises(ArgumentError, match="input_ids"):
            model.generate(use_sits_kernel=True)


def test_the_tokenizer(model, tmp_path):
    class Backend:
        def to_str(self):
            return (GOLDENS / "arch/llama/tokenizer.json").read_text()

    class Fast:
        backend_tokenizer, bos_token, chat_template = Backend(), None, "{{ messages }}"
        eos_token = "<|im_end|>"

    ids = model.golden["text_ids"]
    with enable_optima(model, threads=1) as enabled:
        assert enabled.engine_model.tokenize(model.golden["text"]) == ids
    model.name_or_path = ""
    with enable_optima(model, tokenizer=Fast(), threads=1) as enabled:
        assert enabled.engine_model.tokenize(model.golden["text"]) == ids
        assert enabled.engine_model.chat_template == Fast.chat_template
        assert ask(model) == model.answer()
    for place in ("", str(tmp_path)):
        model.name_or_path = place
        with pytest.raises(ArgumentError, match=f"tokenizer=.*{place}"):
            enable_optima(model)
    with pytest.raises(Unsupported, match="object has no backend_tokenizer"):
        enable_optima(model, tokenizer=object())


def test_what_the_engine_cannot_load_is_an_error(model):
    config = model.config.to_dict()
    model.config = Config(json.dumps(config | {"model_type": "never_heard_of"}))
    with pytest.raises(OptimaError, match="never_heard_of"):
        enable_optima(model)
    model.config = Config(json.dumps(config))
    name, weight = next(iter(model.state_dict().items()))
    model.state_dict()[name] = Weight(weight._memory, "torch.complex64", weight.shape)
    with pytest.raises(Unsupported, match=f"{name} has dtype complex64"):
        enable_optima(model)
    assert "generate" not in vars(model)
