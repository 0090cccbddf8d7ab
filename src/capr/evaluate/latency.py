"""Time one query against 64 to 2,048 passages of 512 word pieces with a bi-, poly- or cross-encoder.

Bi- and poly-encoders compare the query with passages that are already encoded, as in a library; a cross-encoder reads
each passage with the query. On a CPU this times the 8-bit models of the search, on a GPU their torch weights in 16
bits. Every model reads all 512 pieces, even if it reads fewer in a search.

Reference: Grundmann et al. (CAPR), figure 3: a cross-encoder takes about 10 s for 2,048 passages on a V100.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from capr.documents import CaprError
from capr.runtime.kinds import kind_of, load_model, read_manifest
from capr.runtime.manifest import FILE
from capr.runtime.ranker import Keeper

SIZES = (64, 128, 256, 512, 1024, 2048)
PIECES = 512
QUERY = "What are the signs and symptoms of heart failure?"
WORD = "heart "  # one word piece in every English vocabulary


class Timing(NamedTuple):
    """The median time of a query in seconds."""

    model: str
    kind: str
    device: str
    passages: int
    seconds: float


def timings(folders: Sequence[Path], device: str, sizes: Sequence[int] = SIZES, repeats: int = 5) -> Iterator[Timing]:
    """Yield the median time of a query for each model and number of passages."""
    for folder in folders:
        kind = _kind(folder, device)
        prepare = gpu_queries(folder) if device == "cuda" else cpu_queries(folder)
        for size in sizes:
            query = prepare(size)
            query()  # warm up
            yield Timing(folder.name, kind, device, size, median(_seconds(query) for _ in range(repeats)))


def _kind(folder: Path, device: str) -> str:
    """Return the kind of the model in a folder.

    Raises:
        CaprError: the model is neither an encoder nor a ranker, or the device cannot run it.
    """
    if (role := kind_of(folder).role) not in ("encoder", "ranker"):
        fix = "name the folder of an encoder or a ranker"
        raise CaprError(f"{folder} has a {role}, which does not compare passages with a query. Fix: {fix}.")
    manifest = read_manifest(folder, needed=(FILE,)) if device == "cuda" else read_manifest(folder)
    if device == "cuda" and getattr(manifest, "inputs", "pieces") != "pieces":
        raise CaprError(f"{folder} reads words, not word pieces, and runs only on a CPU. Fix: leave out --device.")
    return manifest.kind


def _seconds(query: Callable[[], object]) -> float:
    start = time.perf_counter()
    query()
    return time.perf_counter() - start


def cpu_queries(folder: Path) -> Callable[[int], Callable[[], object]]:
    """Return a function that prepares a query against a number of passages on a CPU."""
    model = load_model(folder, pieces=PIECES)
    text = WORD * (PIECES - 2)
    if kind_of(folder).role == "encoder":
        vector = model.passages([text])

        def prepare(size: int) -> Callable[[], object]:
            vectors = np.repeat(vector, size, axis=0)
            return lambda: np.argsort(-(vectors @ model.query(QUERY)))

        return prepare
    if isinstance(model, Keeper):
        (passage,) = model.keep([text])
        return lambda size: lambda: model.scores_kept(QUERY, [passage] * size)
    return lambda size: lambda: model.scores(QUERY, [text] * size)


def gpu_queries(folder: Path) -> Callable[[int], Callable[[], object]]:
    """Return a function that prepares a query against a number of passages with torch on a GPU."""
    import torch

    from capr.models.bases import PieceTokenizer, load_classifier, load_encoder, load_tokenizer

    if not torch.cuda.is_available():
        raise CaprError("there is no GPU here. Fix: leave out --device, or use a machine with a GPU.")
    torch_folder = folder / "torch"
    if not torch_folder.is_dir():
        fix = "name a folder that capr train wrote"
        raise CaprError(f"{folder} has no torch weights, and a GPU needs them. Fix: {fix}.")
    model = kind_of(folder)
    keeps = issubclass(model.runner, Keeper)  # such a ranker stores a vector for each word piece of a passage
    pairwise = model.role == "ranker" and not keeps
    network: Any = load_classifier(str(torch_folder)) if pairwise else load_encoder(str(torch_folder))
    network = network.to("cuda", torch.bfloat16).eval()
    tokenizer = PieceTokenizer(load_tokenizer(str(torch_folder)), network, "cuda")
    passage = WORD * PIECES

    @torch.inference_mode()
    def read_pairs(size: int) -> None:
        for begin in range(0, size, 512):
            inputs = tokenizer.read([(QUERY, passage)] * min(512, size - begin), PIECES)
            network(**inputs)
        torch.cuda.synchronize()

    @torch.inference_mode()
    def compare_vectors(vectors: Any, tokens: bool) -> None:
        query = network(**tokenizer.read([QUERY], PIECES)).last_hidden_state[:, 0]
        if tokens:
            weights = (vectors @ query[0]).softmax(-1)  # (passages, pieces)
            ((weights[:, None] @ vectors)[:, 0] @ query[0]).argsort()
        else:
            (vectors @ query[0]).argsort()
        torch.cuda.synchronize()

    def prepare(size: int) -> Callable[[], object]:
        if pairwise:
            return lambda: read_pairs(size)
        shape = (size, PIECES) if keeps else (size,)
        vectors = torch.randn(*shape, network.config.hidden_size, device="cuda", dtype=torch.bfloat16)
        return lambda: compare_vectors(vectors, keeps)

    return prepare
