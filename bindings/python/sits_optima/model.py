"""A loaded model: weights, tokenizer, metadata. Read-only, shared by its sessions."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

from sits_optima import _raw
from sits_optima._fill import as_bytes, fill, make
from sits_optima._handle import Handle
from sits_optima._library import call, library
from sits_optima._raw import MetadataKind, TokenKind
from sits_optima._request import Prompt, Request, Stream, call_interruptibly
from sits_optima._source import BytesSource, FolderSource, PathSource, ReaderSource, Source
from sits_optima.engine import Engine, fields_of
from sits_optima.result import Result, floats
from sits_optima.session import OnEvent, Session, session_struct, take_ids

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Unpack

    from sits_optima.options import EngineOptions, ModelOptions, RequestOptions, SessionOptions

    class LoadOptions(EngineOptions, ModelOptions, total=False):
        """Of the model, and of the engine that is made for it."""


_MODEL_KEYS = {name for name, *_ in _raw.ModelOptions._fields_}


class Model(Handle):
    """Model(path) opens a GGUF file or a Hugging Face folder, with an engine of its own unless one
    is given. Calls that are not told a session use a new one; what prompts share is computed once.
    Any number of threads may use a model at the same time."""

    _destroy = "optima_model_destroy"

    def __init__(self, path: str | os.PathLike[str], *, engine: Engine | None = None,
                 **options: Unpack[LoadOptions]) -> None:
        self._open(PathSource(path), engine, options)

    @classmethod
    def from_bytes(cls, data: Any, *, engine: Engine | None = None,
                   **options: Unpack[LoadOptions]) -> Model:
        """From a buffer (bytes, mmap, ...) that holds a GGUF file and does not change."""
        return cls._from(BytesSource(data), engine, options)

    @classmethod
    def from_reader(cls, file: IO[bytes], *, engine: Engine | None = None,
                    **options: Unpack[LoadOptions]) -> Model:
        """From an object with seek() and readinto() that holds a GGUF file."""
        return cls._from(ReaderSource(file), engine, options)

    @classmethod
    def from_folder(cls, lengths: Mapping[str, int],
                    read: Callable[[str, int, memoryview], object], *,
                    engine: Engine | None = None, **options: Unpack[LoadOptions]) -> Model:
        """From a Hugging Face folder wherever it is: the lengths of its files by name, and
        read(name, offset, into), which fills the view `into` from the file's byte `offset` on."""
        return cls._from(FolderSource(lengths, read), engine, options)

    @classmethod
    def _from(cls, source: Source, engine: Engine | None, options: Mapping[str, Any]) -> Model:
        model = cls.__new__(cls)
        model._open(source, engine, options)
        return model

    def _open(self, source: Source, engine: Engine | None, options: Mapping[str, Any]) -> None:
        for_model = {key: value for key, value in options.items() if key in _MODEL_KEYS}
        for_engine = {key: value for key, value in options.items() if key not in _MODEL_KEYS}
        if engine is not None and for_engine:
            raise TypeError(f"the engine is given: {', '.join(for_engine)} must be given to it")
        self._own_engine = engine is None
        self.engine = engine if engine is not None else Engine(**for_engine)
        progress = for_model.pop("progress", None)
        struct = make(_raw.ModelOptions)
        fill(struct, for_model)
        if progress is not None:
            struct.progress = _raw.ProgressFn(source.guard(progress))
        out = ctypes.c_void_p()
        with self.engine._use() as pointer:
            source.open(pointer, struct, out)
        self._source = source  # Memory of the host must outlive the model and its sessions.
        super().__init__(out)
        self.info = SimpleNamespace(**self._read_info())

    def close(self) -> None:
        super().close()
        if self._own_engine:
            self.engine.close()

    def _read_info(self) -> dict[str, Any]:
        out = make(_raw.ModelInfo)
        with self._use() as pointer:
            call("optima_model_get_info", pointer, ctypes.byref(out))
        return fields_of(out)

    @property
    def architecture(self) -> str:
        with self._use() as pointer:
            return library().optima_model_architecture(pointer).decode()

    @property
    def name(self) -> str:
        with self._use() as pointer:
            return library().optima_model_name(pointer).decode()

    @property
    def chat_template(self) -> str:
        """Jinja source; empty when there is none."""
        with self._use() as pointer:
            count = ctypes.c_int64()
            text = library().optima_model_chat_template(pointer, ctypes.byref(count))
            return ctypes.string_at(text, count.value).decode("utf-8", "replace")

    def metadata(self, key: str) -> int | float | bool | str | list | None:
        """A metadata value by its key; None = there is no such key."""
        with self._use() as pointer:
            out, name = make(_raw.Metadata), key.encode()
            call("optima_model_metadata_find", pointer, name, len(name), ctypes.byref(out))
            if out.kind < MetadataKind.INTEGERS:
                return _metadata_value(out)
            items = []
            for item in range(out.count):
                one = make(_raw.Metadata)
                call("optima_model_metadata_item", pointer, out.index, item, ctypes.byref(one))
                items.append(_metadata_value(one))
            return items

    def tokenize(self, text: str | bytes, *, no_add_special: bool = False,
                 no_parse_special: bool = False) -> list[int]:
        """Token ids, with BOS and EOS as the model wants them."""
        data, out, flags = as_bytes(text), ctypes.c_void_p(), 0
        flags |= _raw.TextFlag.NO_ADD_SPECIAL if no_add_special else 0
        flags |= _raw.TextFlag.NO_PARSE_SPECIAL if no_parse_special else 0
        with self._use() as pointer:
            call("optima_model_tokenize", pointer, data, len(data), flags, ctypes.byref(out))
        return take_ids(out)

    def detokenize_bytes(self, ids: Sequence[int], *, show_special: bool = False) -> bytes:
        """The bytes of token ids, which may begin or end inside a code point."""
        array, out = (ctypes.c_int32 * len(ids))(*ids), ctypes.c_void_p()
        flags = _raw.TextFlag.SHOW_SPECIAL if show_special else 0
        with self._use() as pointer:
            call("optima_model_detokenize", pointer, array, len(ids), flags, ctypes.byref(out))
        return _take_text(out)

    def detokenize(self, ids: Sequence[int], *, show_special: bool = False) -> str:
        """Text of token ids; what is no UTF-8 becomes U+FFFD."""
        return self.detokenize_bytes(ids, show_special=show_special).decode("utf-8", "replace")

    def token_kind(self, token: int) -> TokenKind:
        with self._use() as pointer:
            return TokenKind(library().optima_model_token_kind(pointer, token))

    def render(self, messages: Sequence[Mapping[str, Any]], *,
               tools: Sequence[Mapping[str, Any]] | None = None,
               variables: Mapping[str, Any] | None = None, template: str | None = None,
               no_generation_prompt: bool = False) -> str:
        """A conversation as a prompt, by the chat template."""
        struct, out = make(_raw.ChatDesc), ctypes.c_void_p()
        fill(struct, {"messages_json": list(messages), "tools_json": tools,
                      "extra_json": variables, "template_source": template,
                      "no_generation_prompt": no_generation_prompt})
        with self._use() as pointer:
            call("optima_model_render", pointer, ctypes.byref(struct), ctypes.byref(out))
        return _take_text(out).decode("utf-8", "replace")

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """An empty session."""
        struct, _keep = session_struct(options)
        out = ctypes.c_void_p()
        with self._use() as pointer:
            call("optima_session_create", pointer, ctypes.byref(struct), ctypes.byref(out))
        return Session(self, out)

    def restore(self, saved: str | os.PathLike[str] | IO[bytes],
                **options: Unpack[SessionOptions]) -> Session:
        """A session that goes on where one was saved: a path, or an object with seek() and
        readinto()."""
        struct, _keep = session_struct(options)
        out = ctypes.c_void_p()
        with self._use() as pointer:
            if hasattr(saved, "readinto"):
                ReaderSource(saved).restore(pointer, struct, out)
            else:
                path = os.fsencode(saved)
                call("optima_session_restore_path", pointer, ctypes.byref(struct), path, len(path),
                     ctypes.byref(out))
        return Session(self, out)

    def generate(self, prompt: Prompt, *, on_event: OnEvent | None = None,
                 **options: Unpack[RequestOptions]) -> Result:
        """Session.generate in a new session."""
        with self.session() as session:
            return session.generate(prompt, on_event=on_event, **options)

    def stream(self, prompt: Prompt, **options: Unpack[RequestOptions]) -> Stream:
        """Session.stream in a new session."""
        session = self.session()
        return Stream(session, Request(session, prompt, options), after=session.close)

    def chat(self, messages: Sequence[Mapping[str, Any]], *,
             tools: Sequence[Mapping[str, Any]] | None = None, on_event: OnEvent | None = None,
             **options: Unpack[RequestOptions]) -> Result:
        """Session.chat in a new session."""
        with self.session() as session:
            return session.chat(messages, tools=tools, on_event=on_event, **options)

    def stream_chat(self, messages: Sequence[Mapping[str, Any]], *,
                    tools: Sequence[Mapping[str, Any]] | None = None,
                    **options: Unpack[RequestOptions]) -> Stream:
        """Session.stream_chat in a new session."""
        prompt = self.render(messages, tools=tools)
        return self.stream(prompt, no_add_special=True, **options)

    def logits(self, prompt: Prompt, **options: Unpack[RequestOptions]) -> numpy.ndarray:
        """Session.logits in a new session."""
        with self.session() as session:
            return session.logits(prompt, **options)

    def embed(self, texts: str | Sequence[str], *, context_tokens: int = 0,
              **options: Unpack[RequestOptions]) -> numpy.ndarray:
        """Embeddings, float32: [width] of a text, [texts, width] of several, which are computed as
        many at a time as fit."""
        many = [texts] if isinstance(texts, (str, bytes)) else list(texts)
        with self.session(output="embedding", context_tokens=context_tokens) as session:
            rows = _embed_texts(session, many, options)
        rows = rows.reshape(len(many), self.info.embedding_width)
        return rows[0] if isinstance(texts, (str, bytes)) else rows


def _embed_texts(session: Session, texts: list[str], options: Mapping[str, Any]) -> numpy.ndarray:
    import numpy
    if not texts:
        return numpy.zeros(0, numpy.float32)
    request = Request(session, None, options)
    data = [as_bytes(text) for text in texts]
    array = (ctypes.c_char_p * len(data))(*data)
    lengths = (ctypes.c_size_t * len(data))(*map(len, data))
    out = ctypes.c_void_p()
    call_interruptibly(session, request, "optima_embed_texts", array, lengths, len(data),
                       ctypes.byref(out))
    try:
        return floats(lambda count: library().optima_buffer_floats(out, count))
    finally:
        library().optima_buffer_destroy(out)


def _metadata_value(out: Any) -> int | float | bool | str | None:
    if out.kind == MetadataKind.INTEGER:
        return out.integer
    if out.kind == MetadataKind.REAL:
        return out.real
    if out.kind == MetadataKind.BOOLEAN:
        return out.integer == 1
    if out.kind == MetadataKind.STRING:
        return ctypes.string_at(out.string, out.string_bytes).decode("utf-8", "replace")
    return None


def _take_text(buffer: ctypes.c_void_p) -> bytes:
    """The bytes of a buffer, which is destroyed."""
    try:
        count = ctypes.c_int64()
        data = library().optima_buffer_text(buffer, ctypes.byref(count))
        return ctypes.string_at(data, count.value) if data else b""
    finally:
        library().optima_buffer_destroy(buffer)
