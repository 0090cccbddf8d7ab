"""How long one query takes against 64 to 2,048 passages of 512 word pieces: bi-, poly- and cross-encoder.

Passages of a bi- or poly-encoder were encoded before, as they are in a library; a cross-encoder reads each with the
query. On a CPU the 8-bit models that search are timed, on a GPU the torch weights beside them, in 16 bits. Every model
reads all pieces, also one that reads fewer when it searches.

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
from capr.index import OnnxEncoder
from capr.index.onnx import FILES, any_manifest
from capr.search.models import load_model
from capr.search.rerank import OnnxPoly

SIZES = (64, 128, 256, 512, 1024, 2048)
PIECES = 512
QUERY = "What are the signs and symptoms of heart failure?"
WORD = "heart "  # one piece in every English vocabulary


class Timing(NamedTuple):
    """The median time of a query in seconds."""

    model: str
    kind: str
    device: str
    passages: int
    seconds: float


def timings(folders: Sequence[Path], device: str, sizes: Sequence[int] = SIZES, repeats: int = 5) -> Iterator[Timing]:
    """The time of each model for each number of passages."""
    for folder in folders:
        kind = any_manifest(folder, needed=FILES[1:] if device == "cuda" else FILES).kind
        asked = on_gpu(folder, kind) if device == "cuda" else on_cpu(folder)
        for size in sizes:
            once = asked(size)
            once()  # the first is slower
            yield Timing(folder.name, kind, device, size, median(_timed(once) for _ in range(repeats)))


def _timed(once: Callable[[], object]) -> float:
    begun = time.perf_counter()
    once()
    return time.perf_counter() - begun


def on_cpu(folder: Path) -> Callable[[int], Callable[[], object]]:
    """For a number of passages, what one query does."""
    model = load_model(folder, pieces=PIECES)
    text = WORD * (PIECES - 2)
    if isinstance(model, OnnxEncoder):
        vector = model.passages([text])

        def compared(size: int) -> Callable[[], object]:
            vectors = np.repeat(vector, size, axis=0)
            return lambda: np.argsort(-(vectors @ model.query(QUERY)))

        return compared
    if isinstance(model, OnnxPoly):
        (kept,) = model.keep([text])
        return lambda size: lambda: model.scores_kept(QUERY, [kept] * size)
    return lambda size: lambda: model.scores(QUERY, [text] * size)


def on_gpu(folder: Path, kind: str) -> Callable[[int], Callable[[], object]]:
    """The same with torch on a GPU."""
    import torch

    from capr.train.bases import Reader, load_classifier, load_encoder, load_tokenizer

    if not torch.cuda.is_available():
        raise CaprError("there is no GPU here. Fix: leave out --device, or run it where there is one.")
    kept = folder / "torch"
    if not kept.is_dir():
        fix = "name a folder that capr train has made"
        raise CaprError(f"{folder} has no torch weights, and a GPU needs them. Fix: {fix}.")
    network: Any = load_classifier(str(kept)) if kind == "ranker" else load_encoder(str(kept))
    network = network.to("cuda", torch.bfloat16).eval()
    reader = Reader(load_tokenizer(str(kept)), network, "cuda")
    passage = WORD * PIECES

    @torch.inference_mode()
    def crossed(size: int) -> None:
        for begin in range(0, size, 512):
            inputs = reader.read([(QUERY, passage)] * min(512, size - begin), PIECES)
            network(**inputs)
        torch.cuda.synchronize()

    @torch.inference_mode()
    def compared(vectors: Any, tokens: bool) -> None:
        asked = network(**reader.read([QUERY], PIECES)).last_hidden_state[:, 0]
        if tokens:
            weights = (vectors @ asked[0]).softmax(-1)  # (passages, pieces)
            ((weights[:, None] @ vectors)[:, 0] @ asked[0]).argsort()
        else:
            (vectors @ asked[0]).argsort()
        torch.cuda.synchronize()

    def ready(size: int) -> Callable[[], object]:
        if kind == "ranker":
            return lambda: crossed(size)
        shape = (size, PIECES) if kind == "poly" else (size,)
        vectors = torch.randn(*shape, network.config.hidden_size, device="cuda", dtype=torch.bfloat16)
        return lambda: compared(vectors, kind == "poly")

    return ready
