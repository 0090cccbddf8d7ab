"""A language model as the sentence encoder of a discourse model, frozen or fine-tuned.

Reference: Arnold et al. (CDV), 2020, equation 9; Grundmann et al. (CAPR), section 3.4: in the first stage the language
model is frozen, with mean pooling; in the second stage it is trained with the rest, with [CLS] pooling.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from capr.documents import CaprError
from capr.models import from_onnx
from capr.models.bases import PieceTokenizer, load_encoder, load_tokenizer
from capr.models.bi import BiEncoder, BiEncoderForExport
from capr.models.export import export, piece_example
from capr.models.memory import read_parts
from capr.models.precision import autocast
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.onnx import FILES, QUERY, Floats, files_of
from capr.runtime.shipped import shipped
from capr.train.cdv_task import CdvObjective, features

AT_ONCE = 128  # sentences
KEPT = "torch"  # the subfolder with the torch weights of a trained model
CONFIG = "config.json"  # the configuration of a Hugging Face encoder
KEYS = 'name, kind ("encoder"), dimensions, pooling ("cls" or "mean") and pieces'
GUIDE = "docs/explanation/cdv.md, An encoder of your own"
NEEDED = f"put tokenizer.json and a manifest.json with {KEYS} beside model.onnx ({GUIDE})"


def language_model(base: str, device: str, tuned: bool) -> LanguageModel | FrozenEncoder:
    """Load an encoder as a language model.

    Without tuning, ONNX Runtime runs an exported encoder on a CPU. This is fast, and search uses the same vectors.

    Args:
        base: the folder of an encoder, or `encoder`.
        device: `cuda` or `cpu`.
        tuned: whether a second stage tunes the encoder.
    """
    folder = encoder_folder(base)
    if _is_frozen(folder, device, tuned):
        return FrozenEncoder(folder)
    return LanguageModel(base, device, "mean" if tuned else "")


def check_base(base: str, device: str, tuned: bool) -> None:
    """Check that `language_model` can use a base. The check reads only small files.

    Raises:
        CaprError: the base is missing or incomplete.
    """
    folder = encoder_folder(base)
    if _is_frozen(folder, device, tuned):
        OnnxEncoder.read_manifest(folder)
        return
    weights = _torch_folder(folder)
    has_config = (weights / CONFIG).is_file()
    missing = _missing(folder)
    if FILES[0] not in missing and missing and (not has_config or from_onnx.is_exported(weights)):
        raise CaprError(f"{folder} has {FILES[0]}, but no {' and no '.join(missing)}. Fix: {NEEDED}.")
    if not has_config and missing:
        fix = "name the folder of a Hugging Face encoder, or of an encoder trained by capr train bi"
        raise CaprError(f"{folder} is not an encoder: it has neither {CONFIG} nor {FILES[0]}. Fix: {fix}.")
    if not has_config:
        fact = f"{folder} has no {CONFIG}, so it can neither be tuned nor run on a GPU"
        fix = "use --device cpu without --tune, or name the Hugging Face encoder that it was exported from"
        raise CaprError(f"{fact}. Fix: {fix}.")
    load_tokenizer(str(weights))


def query_encoder(name: str) -> Path:
    """Return the folder of an exported encoder for a query space.

    Raises:
        CaprError: the encoder is missing or incomplete.
    """
    folder = encoder_folder(name)
    if missing := _missing(folder):
        fix = "name the folder of an encoder trained by capr train bi"
        if FILES[0] not in missing:
            fix = f"{fix}, or {NEEDED}"
        raise CaprError(f"{folder} has no {' and no '.join(missing)}, which a query space needs. Fix: {fix}.")
    OnnxEncoder.read_manifest(folder)
    return folder


def copy_encoder(folder: Path, to: Path) -> None:
    """Copy an exported encoder, and its separate query network if it has one."""
    to.mkdir(parents=True, exist_ok=True)
    if not (folder / QUERY).is_file():
        (to / QUERY).unlink(missing_ok=True)  # the query network of an earlier encoder
    for name in files_of(folder):
        (to / name).write_bytes((folder / name).read_bytes())


def _missing(folder: Path) -> list[str]:
    """Return the files of an exported encoder that a folder lacks."""
    return [name for name in FILES if not (folder / name).is_file()]


def _is_frozen(folder: Path, device: str, tuned: bool) -> bool:
    """Return whether ONNX Runtime runs the exported encoder of a folder."""
    return not tuned and device == "cpu" and not _missing(folder)


def _torch_folder(folder: Path) -> Path:
    """Return the folder of the torch weights."""
    return folder / KEPT if (folder / KEPT).is_dir() else folder


def encoder_folder(base: str) -> Path:
    """Return the folder of an encoder; `encoder` is the built-in one.

    Raises:
        CaprError: there is no such folder.
    """
    folder = shipped(base) if base == "encoder" and not Path(base).is_dir() else Path(base)
    if not folder.is_dir():
        fix = "name the folder of a Hugging Face encoder, or of an encoder trained by capr train bi"
        raise CaprError(f"there is no folder {base}. Fix: {fix}.")
    return folder


class FrozenEncoder:
    """An exported encoder without training: sentences to normalised vectors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.encoder = OnnxEncoder(folder)
        self.dimensions = self.encoder.identity.dimensions

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts: (texts, dimensions)."""
        return self.encoder.passages(texts)

    def save(self, folder: Path) -> None:
        """Copy the files of the encoder to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(self.folder / name, folder / name)


class LanguageModel:
    """A trainable encoder: sentences to normalised vectors.

    Args:
        base: the folder of a Hugging Face encoder or of an encoder that capr trained; or `encoder`, the built-in one.
        device: `cuda` or `cpu`.
        pooling: `cls` or `mean`. Default: the pooling in the manifest, or `mean` without a manifest.
        pieces: maximum number of word pieces of a sentence.
        limit: number of word pieces that a training step reads at once; 0 for a whole batch.
    """

    def __init__(self, base: str, device: str, pooling: str = "", pieces: int = 128, limit: int = 0) -> None:
        folder = encoder_folder(base)
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        self.pooling, self.prefix = pooling or manifest.get("pooling", "mean"), manifest.get("passage", "")
        self.device, self.name, self.limit = device, folder.name, limit
        weights = str(_torch_folder(folder))
        encoder = load_encoder(weights)
        self.tokenizer = PieceTokenizer(load_tokenizer(weights), encoder, device)
        self.pieces = min(pieces, self.tokenizer.longest)
        self.model = BiEncoder(encoder, True, self.pooling).to(device).eval()
        self.dimensions: int = encoder.config.hidden_size

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of texts (texts, dimensions), with gradients."""
        parts, inverse = self.tokenizer.read_parts([self.prefix + text for text in texts], self.pieces, AT_ONCE)
        with autocast(self.device):
            vectors = torch.cat(read_parts(self.model.passage, parts, self.limit))
        return nn.functional.normalize(vectors.float(), dim=-1)[inverse]

    @torch.no_grad()
    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts (texts, dimensions), without gradients."""
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        vectors: Floats = self.encode(texts).cpu().numpy()
        return vectors

    def save(self, folder: Path) -> None:
        """Write the folder of an encoder; see `capr.runtime.onnx`."""
        names = self.tokenizer.names
        side = BiEncoderForExport(self.model.cpu().float().eval(), self.model.passage_encoder, names)
        export(side, *piece_example(names, "texts"), folder)
        (folder / "model.fp32.onnx").unlink()
        self.tokenizer.base_tokenizer.save(str(folder / "tokenizer.json"))
        manifest = {
            "name": self.name,
            "kind": "encoder",
            "dimensions": self.dimensions,
            "pooling": self.pooling,
            "pieces": self.pieces,
            "passage": self.prefix,
        }
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


@dataclass
class TunedCdvObjective(CdvObjective):
    """The network with its documents and labels, in a stage that also trains the language model.

    Attributes:
        language: the language model.
        window: number of consecutive sentences, at a random position, that a step reads besides the first.
    """

    language: LanguageModel | None = None
    window: int = 48

    @property
    def module(self) -> nn.Module:
        assert self.language is not None
        return nn.ModuleList([self.model, self.language.model])

    def refresh(self) -> None:
        assert self.language is not None
        self.language.model.eval()
        self.features = features(self.documents, self.language.vectors)

    def parts(self, numbers: Sequence[int], rng: np.random.Generator) -> list[list[int]]:
        parts = []
        for i in numbers:
            count = len(self.documents[i].sentences)
            begin = int(rng.integers(1, max(2, count - self.window + 1)))
            parts.append([0, *range(begin, min(count, begin + self.window))])
        return parts

    def read(self, numbers: Sequence[int], parts: Sequence[list[int]]) -> list[Tensor]:
        assert self.language is not None
        texts = [[self.documents[i].sentences[k] for k in part] for i, part in zip(numbers, parts, strict=True)]
        vectors = self.language.encode([text for sentences in texts for text in sentences])
        flags = [torch.tensor(self.documents[i].flags)[part] for i, part in zip(numbers, parts, strict=True)]
        split = vectors.split([len(sentences) for sentences in texts])
        return [torch.cat([part, rows.to(part)], 1) for part, rows in zip(split, flags, strict=True)]
