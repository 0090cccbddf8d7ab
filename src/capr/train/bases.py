"""Where training starts from: Hugging Face encoders, by path or name, and how they read texts."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer
from torch import Tensor

from capr.documents import CaprError
from capr.models.long import window
from capr.train import from_onnx

MARKERS = ("[QUERY]", "[PASSAGE]")
Ids = NDArray[np.int32]


def load_encoder(base: str) -> Any:
    """An encoder that gives a vector for each word piece."""
    from transformers import AutoModel

    model = _loaded(AutoModel, base)
    if hasattr(model, "pooler"):
        model.pooler = None
    return model


def load_classifier(base: str) -> Any:
    """An encoder with a head that gives one score."""
    from transformers import AutoModelForSequenceClassification

    return _loaded(AutoModelForSequenceClassification, base, num_labels=1, ignore_mismatched_sizes=True)


def load_answerer(base: str) -> Any:
    """An encoder with a head that gives two scores for each word piece."""
    from transformers import AutoModelForQuestionAnswering

    return _loaded(AutoModelForQuestionAnswering, base, num_labels=2, ignore_mismatched_sizes=True)


def _loaded(kind: Any, base: str, **options: Any) -> Any:
    from transformers.utils import logging

    logging.set_verbosity_error()  # its warnings that a head is new, which it has to be
    logging.disable_progress_bar()
    try:
        if from_onnx.is_exported(Path(base)):
            return from_onnx.load(kind, Path(base), num_labels=options.get("num_labels", 1))
        return kind.from_pretrained(base, **options)
    except CaprError:
        raise
    except Exception as error:  # each library has its own
        said = (str(error).splitlines() or [type(error).__name__])[0][:150]
        fix = "name the folder of a Hugging Face encoder (config.json, model.safetensors, tokenizer.json)"
        raise CaprError(f"{base} cannot be loaded ({said}). Fix: {fix}.") from error


def load_tokenizer(base: str) -> Tokenizer:
    """The tokenizer of a base."""
    file = Path(base) / "tokenizer.json"
    if file.is_file():
        try:
            return Tokenizer.from_file(str(file))
        except Exception as error:  # the library knows no other
            raise CaprError(f"{file} cannot be read ({error}). Fix: copy the base again.") from error
    fix = "take a base that has tokenizer.json; vocab.txt alone does not say how words are cut"
    if Path(base).exists():
        raise CaprError(f"{base} has no tokenizer. Fix: {fix}.")
    from transformers import AutoTokenizer

    try:
        backend: Tokenizer = AutoTokenizer.from_pretrained(base).backend_tokenizer
    except (OSError, ValueError, AttributeError) as error:
        raise CaprError(f"{base} has no tokenizer. Fix: {fix}.") from error
    return backend


def add_markers(encoder: Any, tokenizer: Tokenizer) -> None:
    """Gives an encoder the two markers; their vectors begin as the mean of all."""
    new = [marker for marker in MARKERS if tokenizer.token_to_id(marker) is None]
    tokenizer.add_special_tokens([AddedToken(marker, special=True) for marker in new])
    size = tokenizer.get_vocab_size()
    if size > encoder.get_input_embeddings().weight.shape[0]:
        encoder.resize_token_embeddings(size, mean_resizing=False)
    weight = encoder.get_input_embeddings().weight
    with torch.no_grad():
        for marker in new:
            weight[tokenizer.token_to_id(marker)] = weight.mean(0)


class Reader:
    """Texts to what a model takes; each text is cut into pieces once.

    Args:
        tokenizer: of the base.
        model: that takes it, which says whether it wants to know first and second text apart.
        device: where the tensors go.
    """

    def __init__(self, tokenizer: Tokenizer, model: Any, device: str) -> None:
        self.tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.device = device
        wanted = inspect.signature(model.forward).parameters
        known = ("input_ids", "attention_mask", "token_type_ids")
        types = getattr(model.config, "type_vocab_size", 0) > 1 and model.config.model_type != "longformer"
        self.names = tuple(name for name in known if name in wanted and (name != "token_type_ids" or types))
        self.padding = getattr(model.config, "pad_token_id", 0) or 0
        self.longest = getattr(model.config, "max_position_embeddings", 512)
        if getattr(model.config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "longformer"):
            self.longest -= 2  # their positions count from 2
        self._known: dict[str, Ids] = {}
        self._types = [0, 0]  # of the first and the second text
        self._frames = {False: self._frame("a"), True: self._frame("a", "a")}

    def _frame(self, *texts: str) -> list[tuple[list[int], list[int]]]:
        """The pieces that the tokenizer puts before, between and after one or two texts, with their types."""
        inner = self.tokenizer.encode("a", add_special_tokens=False).ids
        encoding = self.tokenizer.encode(texts[0], texts[1] if len(texts) > 1 else None)
        found: list[tuple[list[int], list[int]]] = [([], [])]
        place = 0
        while place < len(encoding.ids):
            if encoding.ids[place : place + len(inner)] == inner and len(found) <= len(texts):
                self._types[len(found) - 1] = encoding.type_ids[place]
                found.append(([], []))
                place += len(inner)
            else:
                found[-1][0].append(encoding.ids[place])
                found[-1][1].append(encoding.type_ids[place])
                place += 1
        return found

    def reads_as(self, other: Reader) -> bool:
        """Whether both make the same of every text, so that one need not read what the other has read."""
        mine, others = ((one.names, one.padding, one.longest, one.tokenizer.to_str()) for one in (self, other))
        return mine == others

    def cut(self, texts: Sequence[str]) -> list[Ids]:
        """The pieces of texts, without what a model wants around them."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        for text, encoding in zip(new, self.tokenizer.encode_batch_fast(new, add_special_tokens=False), strict=True):
            self._known[text] = np.array(encoding.ids, np.int32)
        return [self._known[text] for text in texts]

    def read(self, texts: Sequence[str] | Sequence[tuple[str, str]], pieces: int) -> dict[str, Tensor]:
        """(texts, pieces); of a pair the second text is shortened."""
        pairs = bool(texts) and not isinstance(texts[0], str)
        frame = self._frames[pairs]
        columns = list(zip(*texts, strict=True)) if pairs else [texts]
        parts = [self.cut([str(text) for text in column]) for column in columns]
        room = min(pieces, self.longest) - sum(len(ids) for ids, _ in frame)
        rows = []
        for row in zip(*parts, strict=True):
            first = row[0][:room]
            rows.append((first, row[1][: max(0, room - len(first))]) if pairs else (first,))
        lengths = [sum(map(len, row)) + sum(len(ids) for ids, _ in frame) for row in rows]
        arrays = {name: np.zeros((len(rows), max(lengths)), np.int64) for name in self.names}
        arrays["input_ids"][:] = self.padding
        for number, row in enumerate(rows):
            place = 0
            for kind, (ids, types) in enumerate(frame):
                arrays["input_ids"][number, place : place + len(ids)] = ids
                if "token_type_ids" in arrays:
                    arrays["token_type_ids"][number, place : place + len(ids)] = types
                place += len(ids)
                if kind < len(row):
                    arrays["input_ids"][number, place : place + len(row[kind])] = row[kind]
                    if "token_type_ids" in arrays:
                        arrays["token_type_ids"][number, place : place + len(row[kind])] = self._types[kind]
                    place += len(row[kind])
            arrays["attention_mask"][number, :place] = 1
        return self.moved(arrays)

    def read_parts(
        self, texts: Sequence[str] | Sequence[tuple[str, str]], pieces: int, size: int = 128
    ) -> tuple[list[dict[str, Tensor]], Tensor]:
        """The texts in parts of like length, so that little is padded, and the places that bring the order back."""
        given = [(text,) if isinstance(text, str) else text for text in texts]
        self.cut([part for parts in given for part in parts])
        lengths = [sum(len(self._known[part]) for part in parts) for parts in given]
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        listed: list[Any] = list(texts)
        parts = [
            self.read([listed[i] for i in order[begin : begin + size]], pieces) for begin in range(0, len(order), size)
        ]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order, dtype=torch.long)] = torch.arange(len(order))
        return parts, back.to(self.device)

    def read_windows(self, texts: Sequence[tuple[str, str, str]], pieces: int) -> dict[str, Tensor]:
        """Passages in their context, each as (before, passage, after); `inside` marks the pieces of the passage."""
        before, passage, after = (self.cut(list(column)) for column in zip(*texts, strict=True))
        (first,), (last,) = (ids for ids, _ in self._frames[False])
        size = min(pieces, self.longest)
        windows = [
            window(b.tolist(), p.tolist(), a.tolist(), size, first, last)
            for b, p, a in zip(before, passage, after, strict=True)
        ]
        shape = len(windows), max(len(found.ids) for found in windows)
        arrays = {name: np.zeros(shape, np.int64) for name in ("input_ids", "attention_mask", "inside")}
        arrays["input_ids"][:] = self.padding
        for row, found in enumerate(windows):
            arrays["input_ids"][row, : len(found.ids)] = found.ids
            arrays["attention_mask"][row, : len(found.ids)] = 1
            arrays["inside"][row, : len(found.ids)] = found.inside
        return self.moved(arrays)

    def moved(self, arrays: dict[str, Any]) -> dict[str, Tensor]:
        """Arrays as tensors on the device."""
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        if self.device == "cuda":
            tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in tensors.items()}
