"""The bases of training: Hugging Face encoders, by path or name, with their tokenizers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capr.documents import CaprError
from capr.models import from_onnx
from capr.models.long_context import window
from capr.runtime.shipped import shipped

if TYPE_CHECKING:
    from tokenizers import Tokenizer

KEPT = "torch"  # the subfolder with the torch weights of a trained model
HUB_NAME = re.compile(r"\w[\w.-]*/[\w.-]+")  # owner and checkpoint, so that a misspelt folder is not looked up there
EXAMPLE = "BAAI/bge-small-en-v1.5"
BUILT_IN = ("encoder", "ranker", "reader")  # the built-in models that can be a base
PROBE_SECONDS = 5.0  # to wait for the hub
MARKERS = ("[QUERY]", "[PASSAGE]")
Ids = NDArray[np.int32]


def load_encoder(base: str) -> Any:
    """Load an encoder that returns a vector for each word piece."""
    from transformers import AutoModel

    model = _load(AutoModel, base)
    if hasattr(model, "pooler"):
        model.pooler = None
    return model


def load_classifier(base: str) -> Any:
    """Load an encoder with a head that returns one score."""
    from transformers import AutoModelForSequenceClassification

    return _load(AutoModelForSequenceClassification, base, num_labels=1, ignore_mismatched_sizes=True)


def load_answerer(base: str, outputs: int = 2) -> Any:
    """Load an encoder with a head that returns two or three scores for each word piece.

    The third is the score of the paragraph, which counts at [CLS]. It starts at 0 if the head of the base has two.
    """
    from transformers import AutoConfig, AutoModelForQuestionAnswering

    has_config = (Path(base) / "config.json").is_file()
    labels = 3 if has_config and AutoConfig.from_pretrained(base).num_labels == 3 else 2
    answerer = _load(AutoModelForQuestionAnswering, base, num_labels=labels, ignore_mismatched_sizes=True)
    if labels < outputs:
        head = torch.nn.Linear(answerer.qa_outputs.in_features, outputs)
        with torch.no_grad():
            head.weight.zero_()
            head.bias.zero_()
            head.weight[:labels], head.bias[:labels] = answerer.qa_outputs.weight, answerer.qa_outputs.bias
        answerer.qa_outputs, answerer.config.num_labels = head, outputs
    return answerer


def weights_of(base: str, *shipping: str) -> str:
    """Return the folder or name of the weights of a base. A model that capr trained has them in `torch`.

    Args:
        base: a folder, a name on the Hugging Face Hub, or the name of a built-in model.
        shipping: the names of the built-in models that can be a base.

    Raises:
        CaprError: there is no such folder, and the base is no name on the hub; or the folder has no weights for further
            training.
    """
    folder = Path(base)
    if base in shipping and not folder.is_dir():
        folder = shipped(base)
    elif not folder.is_dir():
        if not HUB_NAME.fullmatch(base):
            fix = f"name a folder, or a checkpoint with its owner, such as {EXAMPLE}"
            raise CaprError(f"there is no folder {base}. Fix: {fix}.")
        return base
    if (folder / KEPT).is_dir():
        return str(folder / KEPT)
    if from_onnx.is_exported(folder) and (folder / "query.onnx").is_file():
        fix = f"train it again, and keep the folder {KEPT}"
        raise CaprError(f"{folder} has two networks, but only in ONNX, which is not enough. Fix: {fix}.")
    return str(folder)


def _load(kind: Any, base: str, **options: Any) -> Any:
    from transformers.utils import logging

    logging.set_verbosity_error()  # transformers warns of new heads, which are intended
    logging.disable_progress_bar()
    try:
        if from_onnx.is_exported(Path(base)):
            return from_onnx.load(kind, Path(base), num_labels=options.get("num_labels", 1))
        with _hub(base):
            return kind.from_pretrained(base, **options)
    except CaprError:
        raise
    except Exception as error:  # each library raises its own classes
        _check_reached(base, error)
        cause = (str(error).splitlines() or [type(error).__name__])[0][:150]
        fix = "name the folder of a Hugging Face encoder (config.json, model.safetensors, tokenizer.json)"
        raise CaprError(f"{base} cannot be loaded ({cause}). Fix: {fix}.") from error


@contextmanager
def _hub(base: str) -> Iterator[None]:
    """Let a base be looked up on the hub, or only among its copies on this machine if the hub cannot be reached.

    One request finds that out. Without it, every file is requested six times, with growing pauses and messages.
    """
    from huggingface_hub import constants, get_session
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()
    if Path(base).is_dir() or constants.HF_HUB_OFFLINE:
        yield
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=PROBE_SECONDS)
        is_offline = False
    except Exception:  # the classes depend on the version of huggingface_hub
        is_offline = True
    constants.HF_HUB_OFFLINE = is_offline
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = False


def _check_reached(base: str, error: BaseException) -> None:
    """Raise CaprError if a base could not be loaded because the hub was not reached."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LocalEntryNotFoundError):
            fact = f"there is no folder {base}, and the Hugging Face hub cannot be reached"
            fix = "name a folder that has a copy of the checkpoint, or connect to the internet"
            raise CaprError(f"{fact}. Fix: {fix}.") from error
        cause = cause.__cause__ or cause.__context__


def load_tokenizer(base: str) -> Tokenizer:
    """Load the tokenizer of a base.

    Raises:
        CaprError: the base has no tokenizer, or it is damaged.
    """
    from tokenizers import Tokenizer

    file = Path(base) / "tokenizer.json"
    if file.is_file():
        try:
            return Tokenizer.from_file(str(file))
        except Exception as error:  # tokenizers raises no other class
            raise CaprError(f"{file} cannot be read ({error}). Fix: copy the base again.") from error
    fix = "take a base that has tokenizer.json; vocab.txt alone does not say how to split words"
    if Path(base).exists():
        raise CaprError(f"{base} has no tokenizer. Fix: {fix}.")
    from transformers import AutoTokenizer

    try:
        with _hub(base):
            backend: Tokenizer = AutoTokenizer.from_pretrained(base).backend_tokenizer
    except (OSError, ValueError, AttributeError) as error:
        _check_reached(base, error)
        raise CaprError(f"{base} has no tokenizer. Fix: {fix}.") from error
    return backend


def add_markers(encoder: Any, tokenizer: Tokenizer) -> None:
    """Add the two markers to the vocabulary of an encoder. Their initial vectors are the mean of all vectors."""
    from tokenizers import AddedToken

    new = [marker for marker in MARKERS if tokenizer.token_to_id(marker) is None]
    tokenizer.add_special_tokens([AddedToken(marker, special=True) for marker in new])
    size = tokenizer.get_vocab_size()
    if size > encoder.get_input_embeddings().weight.shape[0]:
        encoder.resize_token_embeddings(size, mean_resizing=False)
    weight = encoder.get_input_embeddings().weight
    with torch.no_grad():
        for marker in new:
            weight[tokenizer.token_to_id(marker)] = weight.mean(0)


class PieceTokenizer:
    """Converts texts to the inputs of a model, and tokenizes each text only once.

    Args:
        tokenizer: the tokenizer of the base.
        model: the model, which determines the names of the inputs.
        device: the device of the inputs.
    """

    def __init__(self, tokenizer: Tokenizer, model: Any, device: str) -> None:
        from tokenizers import Tokenizer

        self.base_tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.base_tokenizer.no_padding()
        self.base_tokenizer.no_truncation()
        self.device = device
        parameters = inspect.signature(model.forward).parameters
        supported = ("input_ids", "attention_mask", "token_type_ids")
        types = getattr(model.config, "type_vocab_size", 0) > 1 and model.config.model_type != "longformer"
        self.names = tuple(name for name in supported if name in parameters and (name != "token_type_ids" or types))
        self.padding = getattr(model.config, "pad_token_id", 0) or 0
        self.longest = getattr(model.config, "max_position_embeddings", 512)
        if getattr(model.config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "longformer"):
            self.longest -= 2  # the positions of these models begin at 2
        self._ids: dict[str, Ids] = {}
        self._types = [0, 0]  # the type ids of the first and the second text
        self._frames = {False: self._frame("a"), True: self._frame("a", "a")}

    def _frame(self, *texts: str) -> list[tuple[list[int], list[int]]]:
        """Return the special pieces before, between and after one or two texts, with their type ids."""
        inner = self.base_tokenizer.encode("a", add_special_tokens=False).ids
        encoding = self.base_tokenizer.encode(texts[0], texts[1] if len(texts) > 1 else None)
        frame: list[tuple[list[int], list[int]]] = [([], [])]
        position = 0
        while position < len(encoding.ids):
            if encoding.ids[position : position + len(inner)] == inner and len(frame) <= len(texts):
                self._types[len(frame) - 1] = encoding.type_ids[position]
                frame.append(([], []))
                position += len(inner)
            else:
                frame[-1][0].append(encoding.ids[position])
                frame[-1][1].append(encoding.type_ids[position])
                position += 1
        return frame

    def reads_as(self, other: PieceTokenizer) -> bool:
        """Return whether another tokenizer makes equal tensors of every text, so that they can be shared."""
        ours, theirs = (
            (item.names, item.padding, item.longest, item.base_tokenizer.to_str()) for item in (self, other)
        )
        return ours == theirs

    def cut(self, texts: Sequence[str]) -> list[Ids]:
        """Return the word pieces of texts, without special pieces."""
        new = list(dict.fromkeys(text for text in texts if text not in self._ids))
        encodings = self.base_tokenizer.encode_batch_fast(new, add_special_tokens=False)
        for text, encoding in zip(new, encodings, strict=True):
            self._ids[text] = np.array(encoding.ids, np.int32)
        return [self._ids[text] for text in texts]

    def read(self, texts: Sequence[str] | Sequence[tuple[str, str]], pieces: int) -> dict[str, Tensor]:
        """Return the inputs (texts, pieces) of texts or pairs. In a long pair, the second text is shortened first."""
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
            begin = 0
            for column, (ids, types) in enumerate(frame):
                arrays["input_ids"][number, begin : begin + len(ids)] = ids
                if "token_type_ids" in arrays:
                    arrays["token_type_ids"][number, begin : begin + len(ids)] = types
                begin += len(ids)
                if column < len(row):
                    arrays["input_ids"][number, begin : begin + len(row[column])] = row[column]
                    if "token_type_ids" in arrays:
                        arrays["token_type_ids"][number, begin : begin + len(row[column])] = self._types[column]
                    begin += len(row[column])
            arrays["attention_mask"][number, :begin] = 1
        return self.to_device(arrays)

    def read_parts(
        self, texts: Sequence[str] | Sequence[tuple[str, str]], pieces: int, size: int = 128
    ) -> tuple[list[dict[str, Tensor]], Tensor]:
        """Return the inputs in parts, and the row of each text in them.

        The texts of a part have similar lengths, so that they need little padding.
        """
        rows = [(text,) if isinstance(text, str) else text for text in texts]
        self.cut([text for row in rows for text in row])
        lengths = [sum(len(self._ids[text]) for text in row) for row in rows]
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        items: list[Any] = list(texts)
        parts = [
            self.read([items[i] for i in order[begin : begin + size]], pieces) for begin in range(0, len(order), size)
        ]
        inverse = torch.empty(len(order), dtype=torch.long)
        inverse[torch.tensor(order, dtype=torch.long)] = torch.arange(len(order))
        return parts, inverse.to(self.device)

    def read_windows(self, texts: Sequence[tuple[str, str, str]], pieces: int) -> dict[str, Tensor]:
        """Return the inputs of passages with the text around them.

        Args:
            texts: text before, passage, and text after.
            pieces: maximum number of word pieces of a window.

        Returns:
            (texts, pieces) each; `inside` marks the pieces of the passage.
        """
        before, passage, after = (self.cut(list(column)) for column in zip(*texts, strict=True))
        (first,), (last,) = (ids for ids, _ in self._frames[False])
        size = min(pieces, self.longest)
        windows = [
            window(b.tolist(), p.tolist(), a.tolist(), size, first, last)
            for b, p, a in zip(before, passage, after, strict=True)
        ]
        shape = len(windows), max(len(context.ids) for context in windows)
        arrays = {name: np.zeros(shape, np.int64) for name in ("input_ids", "attention_mask", "inside")}
        arrays["input_ids"][:] = self.padding
        for row, context in enumerate(windows):
            arrays["input_ids"][row, : len(context.ids)] = context.ids
            arrays["attention_mask"][row, : len(context.ids)] = 1
            arrays["inside"][row, : len(context.ids)] = context.inside
        return self.to_device(arrays)

    def to_device(self, arrays: dict[str, Any]) -> dict[str, Tensor]:
        """Return arrays as tensors on the device."""
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        if self.device == "cuda":
            tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in tensors.items()}
