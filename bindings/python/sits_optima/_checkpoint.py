"""A transformers model as the files of its checkpoint, without a file: config.json from its
configuration, model.safetensors from its tensors, read when the library asks for them. Needs of a
tensor what torch.Tensor has: dtype, shape, element_size, numel, data_ptr, detach, cpu and
contiguous."""
from __future__ import annotations

import bisect
import ctypes
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from sits_optima import errors

_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
          "int8": "I8", "uint8": "U8", "int32": "I32", "int64": "I64"}
_TOKENIZERS = {"tokenizer.json", "tokenizer.model", "tekken.json"}
_TOKENIZER_FILES = sorted(_TOKENIZERS | {"tokenizer_config.json", "special_tokens_map.json",
                                         "chat_template.jinja"})
WEIGHTS = "model.safetensors"
_HEADER_ALIGNMENT = 64


class Checkpoint:
    """`lengths` and `read` are what Model.from_folder takes."""

    def __init__(self, model: Any, tokenizer: Any = None) -> None:
        self._texts = documents_of(model, tokenizer)
        self._tensors = _distinct(model.state_dict())
        header, self._ends = _header(self._tensors)
        self._texts[WEIGHTS] = header
        self.lengths = {name: len(text) for name, text in self._texts.items()}
        self.lengths[WEIGHTS] += self._ends[-1] if self._ends else 0
        self._last: tuple[int, Any] | None = None  # of the tensor that was read last, its memory

    def read(self, name: str, offset: int, into: memoryview) -> None:
        text = self._texts[name]
        head = text[offset:offset + len(into)]
        into[:len(head)] = head
        if len(head) < len(into):
            self._read_tensors(max(offset - len(text), 0), into[len(head):])

    def _read_tensors(self, offset: int, into: memoryview) -> None:
        while into:
            index = bisect.bisect_right(self._ends, offset)
            first = self._ends[index - 1] if index else 0
            count = min(len(into), self._ends[index] - offset)
            target = ctypes.addressof(ctypes.c_char.from_buffer(into))
            ctypes.memmove(target, self._memory(index).data_ptr() + offset - first, count)
            offset, into = offset + count, into[count:]

    def _memory(self, index: int) -> Any:
        """The tensor in one piece of host memory, its own where it is that."""
        if self._last is None or self._last[0] != index:
            self._last = index, self._tensors[index][1].detach().cpu().contiguous()
        return self._last[1]

    def release(self) -> None:
        """Lets go of the model's tensors."""
        self._tensors, self._last = [], None


def documents_of(model: Any, tokenizer: Any) -> dict[str, bytes]:
    texts = {"config.json": model.config.to_json_string().encode()}
    generation = getattr(model, "generation_config", None)
    if generation is not None:
        texts["generation_config.json"] = generation.to_json_string().encode()
    return texts | _tokenizer_documents(model, tokenizer)


def _tokenizer_documents(model: Any, tokenizer: Any) -> dict[str, bytes]:
    """Of the tokenizer given; else the files of the folder that the model was loaded from, or what
    transformers has kept of them."""
    origin = getattr(model, "name_or_path", "")
    if tokenizer is None and origin:
        folder = pathlib.Path(origin)
        found = {name: (folder / name).read_bytes() for name in _TOKENIZER_FILES
                 if (folder / name).is_file()}
        if not _TOKENIZERS.isdisjoint(found):
            return found
        tokenizer = _kept_tokenizer(origin)
    if tokenizer is None:
        raise errors.ArgumentError("enable_optima needs a tokenizer=: there is none where the "
                                   f"model comes from ({origin or 'it does not say where'})")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise errors.Unsupported(f"{type(tokenizer).__name__} has no backend_tokenizer: "
                                 "a fast tokenizer is needed")
    settings = {name: str(value) for name in ("bos_token", "eos_token", "chat_template")
                if (value := getattr(tokenizer, name, None)) is not None}
    return {"tokenizer.json": backend.to_str().encode(),
            "tokenizer_config.json": json.dumps(settings).encode()}


def _kept_tokenizer(origin: str) -> Any:
    try:
        import transformers
        return transformers.AutoTokenizer.from_pretrained(origin, local_files_only=True)
    except (ImportError, OSError, ValueError):
        return None


def _distinct(state: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Tensors that share memory with an earlier one are left out, as in a saved checkpoint: the
    configuration says which those are."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    out = []
    for name, tensor in state.items():
        place = tensor.data_ptr(), tuple(tensor.shape)
        if tensor.numel() == 0 or place in seen:
            continue
        seen.add(place)
        out.append((name, tensor))
    # The widest first, so that each begins at a multiple of its width.
    return sorted(out, key=lambda item: -item[1].element_size())


def _header(tensors: list[tuple[str, Any]]) -> tuple[bytes, list[int]]:
    """The head of the safetensors file, and where each tensor's bytes end behind it."""
    rows: dict[str, Any] = {}
    ends: list[int] = []
    at = 0
    for name, tensor in tensors:
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in _TYPES:
            raise errors.Unsupported(f"tensor {name} has dtype {dtype}; known are "
                                     f"{', '.join(_TYPES)}")
        end = at + tensor.numel() * tensor.element_size()
        rows[name] = {"dtype": _TYPES[dtype], "shape": list(tensor.shape),
                      "data_offsets": [at, end]}
        ends.append(end)
        at = end
    text = json.dumps(rows).encode()
    text += b" " * (-(len(text) + 8) % _HEADER_ALIGNMENT)
    return len(text).to_bytes(8, "little") + text, ends
