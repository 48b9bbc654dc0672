"""transformers' generate() through the engine."""
from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from sits_optima import errors
from sits_optima._checkpoint import Checkpoint
from sits_optima._generation import Settings, declined_in, rows_of, settings_of
from sits_optima._request import Request, Run, Stream
from sits_optima.model import Model

PROFILE_MODES = ("latency", "throughput", "auto")
DEVICES = ("cpu",)

_log = logging.getLogger("sits_optima")


def enable_optima(model: Any, profile_mode: str = "auto", target_device: str = "auto", *,
                  tokenizer: Any = None, **options: Any) -> Enabled:
    """Loads a transformers causal language model into the engine, from its configuration and the
    tensors in memory; afterwards model.generate(..., use_sits_kernel=True) runs there, and without
    it in transformers as before. Changes of the model's weights after the call are not seen.

    profile_mode: what a batch of several rows is made for: "latency" runs them one after another,
    each at its best pace, "throughput" all together, "auto" too. target_device: "cpu", or "auto"
    for the best there is; a device that is absent is a DeviceNotFound. tokenizer: a fast one, which
    is needed where the model was not loaded from a folder or name that has one. options: those of
    sits_optima.Model.

    A second call changes the profile and loads nothing. The result's disable() undoes it, and so
    does leaving `with enable_optima(model):`, unless it was enabled before. What the model asks for
    that the engine declines is an Unsupported error that names it; what its generation_config asks
    for is in the result's `declined`, and an error of the calls that ask for it."""
    if profile_mode not in PROFILE_MODES:
        raise errors.ArgumentError(f"profile_mode is {profile_mode!r}, "
                                   f"known are {', '.join(PROFILE_MODES)}")
    if target_device != "auto" and target_device not in DEVICES:
        raise errors.DeviceNotFound(f"target_device is {target_device!r}: there is no such device; "
                                    f"there are {', '.join(DEVICES)}")
    state = getattr(vars(model).get("generate"), "_sits_optima", None)
    if state is not None:
        state.profile_mode = profile_mode
        return Enabled(state, was_enabled=True)
    return Enabled(_State(model, profile_mode, tokenizer, options), was_enabled=False)


class Enabled:
    """What enable_optima did."""

    def __init__(self, state: _State, was_enabled: bool) -> None:
        self._state = state
        self._was_enabled = was_enabled

    @property
    def engine_model(self) -> Model:
        """The model in the engine."""
        return self._state.engine_model

    @property
    def declined(self) -> list[str]:
        """Settings of the model's generation_config that are not done with use_sits_kernel=True."""
        return list(self._state.declined)

    @property
    def profile_mode(self) -> str:
        return self._state.profile_mode

    @property
    def device(self) -> str:
        return DEVICES[0]

    @property
    def enabled(self) -> bool:
        return self._state.enabled

    def disable(self) -> None:
        """Gives the model its own generate() back, and the engine's memory to the system."""
        self._state.disable()

    def __enter__(self) -> Enabled:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._was_enabled:
            self.disable()


class _State:
    """One enabled model. Hangs on its generate attribute, so that both go together."""

    def __init__(self, model: Any, profile_mode: str, tokenizer: Any,
                 options: Mapping[str, Any]) -> None:
        self.profile_mode = profile_mode
        self._model = model
        checkpoint = Checkpoint(model, tokenizer)
        self.engine_model = Model.from_folder(checkpoint.lengths, checkpoint.read, **options)
        checkpoint.release()
        self.declined = declined_in(self._own_settings())
        if self.declined:
            _log.warning("use_sits_kernel=True declines, from the generation_config: %s",
                         ", ".join(self.declined))
        self._before = vars(model).get("generate")
        self._original = model.generate
        generate = self._wrapper()
        generate._sits_optima = self
        model.generate = generate
        self.enabled = True

    def _own_settings(self) -> Mapping[str, Any]:
        config = getattr(self._model, "generation_config", None)
        return config.to_dict() if config is not None else {}

    def disable(self) -> None:
        if not self.enabled:
            return
        self.enabled = False
        del self._model.generate
        if self._before is not None:
            self._model.generate = self._before
        self.engine_model.close()

    def _wrapper(self) -> Callable[..., Any]:
        original = self._original

        def generate(*arguments: Any, use_sits_kernel: bool = False, **keywords: Any) -> Any:
            if not use_sits_kernel:
                return original(*arguments, **keywords)
            return self._generate(*arguments, **keywords)

        generate.__doc__ = getattr(original, "__doc__", None)
        return generate

    def _generate(self, inputs: Any = None, generation_config: Any = None, *,
                  input_ids: Any = None, attention_mask: Any = None, streamer: Any = None,
                  **keywords: Any) -> Any:
        ids = inputs if inputs is not None else input_ids
        if ids is None:
            raise errors.ArgumentError("generate with use_sits_kernel=True needs input_ids")
        config = generation_config.to_dict() if generation_config is not None else {}
        settings = settings_of(self._own_settings(), config, keywords)
        mask = attention_mask.tolist() if attention_mask is not None else None
        whole = [row for row in ids.tolist() for _ in range(settings.sequences)]
        if mask is not None:
            mask = [row for row in mask for _ in range(settings.sequences)]
        prompts = rows_of(whole, mask, settings.pad, settings.eos)
        max_tokens = _max_tokens(settings, len(whole[0]))
        # An id that is no token ends nothing: callers of transformers turn ends off so.
        ends = [token for token in settings.eos
                if 0 <= token < self.engine_model.info.vocabulary]
        rows = [dict(settings.options, max_tokens=max_tokens, stop_tokens=ends,
                     **_seed(settings, ids)) for _ in prompts]
        if streamer is not None:
            outputs = [self._stream(ids, prompts, rows, streamer)]
        elif self.profile_mode == "latency":
            outputs = [self._run_one(prompt, row) for prompt, row in zip(prompts, rows)]
        else:
            outputs = self._run_all(prompts, rows)
        return ids.new_tensor(_padded(whole, outputs, settings.pad))

    def _session(self, prompt: list[int], row: Mapping[str, Any]) -> Any:
        """With room for what is asked for; 0 is the model's own length, which it cannot exceed."""
        wanted = len(prompt) + row["max_tokens"]
        limit = self.engine_model.info.context_length
        if wanted > limit:
            error = errors.ContextFull(f"prompt and output have {wanted} tokens, the model's "
                                       f"context holds {limit}")
            error.wanted, error.available, error.limit = wanted, limit, limit
            raise error
        return self.engine_model.session(context_tokens=wanted)

    def _run_one(self, prompt: list[int], row: Mapping[str, Any]) -> list[int]:
        with self._session(prompt, row) as session:
            return session.generate(prompt, **row).token_ids

    def _run_all(self, prompts: list[list[int]], rows: list[dict[str, Any]]) -> list[list[int]]:
        runs: list[Run] = []
        sessions = []
        try:
            for prompt, row in zip(prompts, rows):
                sessions.append(self._session(prompt, row))
                runs.append(Run(sessions[-1], Request(sessions[-1], prompt, row),
                                keeps_events=False))
            for run in runs:
                run.wait_done()
            return [run.result().token_ids for run in runs]
        finally:
            for run in runs:
                run.end()
            for session in sessions:
                session.close()

    def _stream(self, ids: Any, prompts: list[list[int]], rows: list[dict[str, Any]],
                streamer: Any) -> list[int]:
        if len(prompts) != 1:
            raise errors.ArgumentError(f"streamer: {len(prompts)} rows, it takes one")
        streamer.put(ids)
        with self._session(prompts[0], rows[0]) as session:
            with Stream(session, Request(session, prompts[0], rows[0])) as stream:
                tokens = [event.token for event in stream
                          if event.token >= 0 and _put(streamer, ids, event.token)]
        streamer.end()
        return tokens


def _put(streamer: Any, ids: Any, token: int) -> bool:
    streamer.put(ids.new_tensor([token]))
    return True


def _max_tokens(settings: Settings, prompt_tokens: int) -> int:
    if settings.max_new_tokens is not None:
        out, name = settings.max_new_tokens, "max_new_tokens"
    else:
        out, name = settings.max_length - prompt_tokens, "max_length"
    if out < 1:
        raise errors.ArgumentError(f"{name} leaves {out} tokens after {prompt_tokens} of the prompt")
    return out


def _seed(settings: Settings, ids: Any) -> dict[str, int]:
    """From the random numbers of the tensor's own library, so that its seed holds here too."""
    if "temperature" not in settings.options:
        return {}
    return {"seed": int(ids.new_empty((1,)).random_(0, 2 ** 62).tolist()[0])}


def _padded(prompts: list[list[int]], outputs: list[list[int]],
            pad: int | None) -> list[list[int]]:
    longest = max(map(len, outputs))
    if pad is None and any(len(output) < longest for output in outputs):
        raise errors.ArgumentError("rows end at different lengths: pad_token_id is needed")
    return [prompt + output + [pad] * (longest - len(output))
            for prompt, output in zip(prompts, outputs)]
