"""A language model as the sentence encoder of a discourse model: as it comes, or trained with it.

Reference: Arnold et al. (CDV), 2020, equation 9; Grundmann et al. (CAPR), section 3.4: in a first stage the language
model stays as it is and its vectors are averaged; in a second everything learns, and the vector of [CLS] is taken.
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
from capr.index.encoder import OnnxEncoder
from capr.index.onnx import FILES, QUERY, Floats, files_of, read_manifest
from capr.models.bi import BiEncoder, Side
from capr.search.models import shipped
from capr.train import from_onnx
from capr.train.bases import Reader, load_encoder, load_tokenizer
from capr.train.cdv_loop import Learned, features
from capr.train.export import export
from capr.train.objectives import autocast

AT_ONCE = 128  # sentences
KEPT = "torch"  # the folder of a trained model's weights
CONFIG = "config.json"  # of a Hugging Face encoder
KEYS = 'name, kind ("encoder"), dimensions, pooling ("cls" or "mean") and pieces'
NEEDED = f"put tokenizer.json and a manifest.json with {KEYS} beside model.onnx (docs/cdv.md, An encoder of your own)"


def language_model(base: str, device: str, tuned: bool) -> LanguageModel | FrozenEncoder:
    """The encoder of a folder, to be tuned or to stay as it is.

    One that stays, and that capr has exported, is run on a CPU by ONNX Runtime: faster, and just as it will be later.
    """
    folder = located(base)
    if _stays(folder, device, tuned):
        return FrozenEncoder(folder)
    return LanguageModel(base, device, "mean" if tuned else "")


def check_base(base: str, device: str, tuned: bool) -> None:
    """Complains of a base that `language_model` could not use, by its files; nothing large is read.

    Raises:
        CaprError: there is none, or it has not all that is needed.
    """
    folder = located(base)
    if _stays(folder, device, tuned):
        read_manifest(folder, "encoder")
        return
    place = _torch_folder(folder)
    whole = (place / CONFIG).is_file()
    missing = _missing(folder)
    if FILES[0] not in missing and missing and (not whole or from_onnx.is_exported(place)):
        raise CaprError(f"{folder} has {FILES[0]}, but no {' and no '.join(missing)}. Fix: {NEEDED}.")
    if not whole and missing:
        fix = "name the folder of a Hugging Face encoder, or of one that capr train bi has made"
        raise CaprError(f"{folder} is no encoder: it has neither {CONFIG} nor {FILES[0]}. Fix: {fix}.")
    if not whole:
        fact = f"{folder} has no {CONFIG}, without which it can neither be tuned nor be run on a GPU"
        fix = "use --device cpu without --tune, or name the Hugging Face encoder that it was exported from"
        raise CaprError(f"{fact}. Fix: {fix}.")
    load_tokenizer(str(place))


def query_encoder(name: str) -> Path:
    """The folder of an exported encoder, which is what a query space needs.

    Raises:
        CaprError: there is none, or it has not all that is needed.
    """
    folder = located(name)
    if missing := _missing(folder):
        fix = "name a folder that capr train bi has made"
        if FILES[0] not in missing:
            fix = f"{fix}, or {NEEDED}"
        raise CaprError(f"{folder} has no {' and no '.join(missing)}, which a query space needs. Fix: {fix}.")
    read_manifest(folder, "encoder")
    return folder


def copy_encoder(folder: Path, to: Path) -> None:
    """Copies an exported encoder, and its own network for queries if it has one."""
    to.mkdir(parents=True, exist_ok=True)
    if not (folder / QUERY).is_file():
        (to / QUERY).unlink(missing_ok=True)  # of another encoder that was there
    for name in files_of(folder):
        (to / name).write_bytes((folder / name).read_bytes())


def _missing(folder: Path) -> list[str]:
    """What an exported encoder should have, and the folder has not."""
    return [name for name in FILES if not (folder / name).is_file()]


def _stays(folder: Path, device: str, tuned: bool) -> bool:
    """Whether the encoder of a folder is run as it was exported."""
    return not tuned and device == "cpu" and not _missing(folder)


def _torch_folder(folder: Path) -> Path:
    """Where the weights for torch are."""
    return folder / KEPT if (folder / KEPT).is_dir() else folder


def located(base: str) -> Path:
    """The folder of an encoder, or of the one that ships.

    Raises:
        CaprError: there is none.
    """
    folder = shipped(base) if base == "encoder" and not Path(base).is_dir() else Path(base)
    if not folder.is_dir():
        fix = "name the folder of a Hugging Face encoder, or of one that capr train bi has made"
        raise CaprError(f"there is no encoder {base}. Fix: {fix}.")
    return folder


class FrozenEncoder:
    """An exported encoder, as it is: sentences to vectors of length 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.encoder = OnnxEncoder(folder)
        self.dimensions = self.encoder.identity.dimensions

    def vectors(self, texts: Sequence[str]) -> Floats:
        """(texts, dimensions)."""
        return self.encoder.passages(texts)

    def save(self, folder: Path) -> None:
        """Copies the encoder's folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(self.folder / name, folder / name)


class LanguageModel:
    """Sentences to vectors of length 1.

    Args:
        base: the folder of a Hugging Face encoder or of one that was trained here, or `encoder`, the one that ships.
        device: `cuda` or `cpu`.
        pooling: `cls` or `mean`; empty for that of the manifest, `mean` if there is none.
        pieces: word pieces that are read of a sentence, at most.
    """

    def __init__(self, base: str, device: str, pooling: str = "", pieces: int = 128) -> None:
        folder = located(base)
        manifest = folder / "manifest.json"
        said = json.loads(manifest.read_text("utf-8")) if manifest.is_file() else {}
        self.pooling, self.before = pooling or said.get("pooling", "mean"), said.get("passage", "")
        self.device, self.name = device, folder.name
        place = str(_torch_folder(folder))
        encoder = load_encoder(place)
        self.reader = Reader(load_tokenizer(place), encoder, device)
        self.pieces = min(pieces, self.reader.longest)
        self.model = BiEncoder(encoder, True, self.pooling).to(device).eval()
        self.dimensions: int = encoder.config.hidden_size

    def encoded(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimensions), to learn by."""
        parts, back = self.reader.read_parts([self.before + text for text in texts], self.pieces, AT_ONCE)
        with autocast(self.device):
            vectors = torch.cat([self.model.passage(**part) for part in parts])
        return nn.functional.normalize(vectors.float(), dim=-1)[back]

    @torch.no_grad()
    def vectors(self, texts: Sequence[str]) -> Floats:
        """(texts, dimensions)."""
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        found: Floats = self.encoded(texts).cpu().numpy()
        return found

    def save(self, folder: Path) -> None:
        """Writes an encoder's folder; see `capr.index.onnx`."""
        names = self.reader.names
        example = tuple(torch.ones(2, 8, dtype=torch.long) for _ in names)
        side = Side(self.model.cpu().float().eval(), self.model.passage_encoder, names)
        export(side, example, {name: {0: "texts", 1: "pieces"} for name in names}, folder)
        (folder / "model.fp32.onnx").unlink()
        self.reader.tokenizer.save(str(folder / "tokenizer.json"))
        manifest = {
            "name": self.name, "kind": "encoder", "dimensions": self.dimensions, "pooling": self.pooling,
            "pieces": self.pieces, "passage": self.before,
        }  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


@dataclass
class Tuned(Learned):
    """A run in which the language model learns, too: it reads the first and `window` more sentences, from anywhere."""

    language: LanguageModel | None = None
    window: int = 48

    @property
    def module(self) -> nn.Module:
        assert self.language is not None
        return nn.ModuleList([self.model, self.language.model])

    def refresh(self) -> None:
        assert self.language is not None
        self.language.model.eval()
        self.features = features(self.lessons, self.language.vectors)

    def parts(self, chosen: Sequence[int], draw: np.random.Generator) -> list[list[int]]:
        found = []
        for i in chosen:
            count = len(self.lessons[i].sentences)
            begin = int(draw.integers(1, max(2, count - self.window + 1)))
            found.append([0, *range(begin, min(count, begin + self.window))])
        return found

    def read(self, chosen: Sequence[int], parts: Sequence[list[int]]) -> list[Tensor]:
        assert self.language is not None
        texts = [[self.lessons[i].sentences[k] for k in part] for i, part in zip(chosen, parts, strict=True)]
        vectors = self.language.encoded([text for some in texts for text in some])
        flags = [torch.tensor(self.lessons[i].flags)[part] for i, part in zip(chosen, parts, strict=True)]
        split = vectors.split([len(some) for some in texts])
        return [torch.cat([one, some.to(one)], 1) for one, some in zip(split, flags, strict=True)]
