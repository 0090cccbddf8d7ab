"""Trains a reader from reports with questions to a finished folder: ONNX, tokenizer, manifest, card, checkpoint."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capr.documents import CaprError, Span
from capr.evaluate.answers import calibration_error, exact_match, f1
from capr.index.onnx import TOGETHER
from capr.models.layers import cut_inside
from capr.models.reader import SpanReader, Spans
from capr.search.models import shipped
from capr.search.reader import OnnxReader, sigmoid
from capr.search.reading import Cutter, Extracted, Extractor, Pieces, Window
from capr.train import card, loop
from capr.train.bases import Reader, load_answerer, load_tokenizer
from capr.train.calibration import calibrated, threshold
from capr.train.export import export
from capr.train.losses import listwise, taught
from capr.train.objectives import autocast
from capr.train.questions import LENGTHS, Cut, Posed, Source, posed, split, whole_reports

FEWEST = 8  # questions to train on
VALIDATED = 1000  # questions that are put to paragraphs in a validation
CALIBRATED = 400  # questions that are put to whole reports in the end, in 8 bits
PARAGRAPHS = 12  # of such a report, at most
CHECKED = 100  # questions to compare what was exported with torch
RIGHT = 0.5  # F1 with a gold answer, from which on an answer is right
ALIKE = 25  # batches among which paragraphs of like length are looked for
GPU_PIECES = 65_536  # that it reads at once
WORKERS = 4  # processes that cut texts into pieces, which takes longer than a GPU needs to learn from them
CHECKPOINT = "torch"


@dataclass(frozen=True)
class Recipe:
    """What to train, besides how long.

    Attributes:
        base: a Hugging Face encoder, by path or name; a folder that was trained here, to go on with it; `reader`, the
            one that ships.
        layers: how many to keep; 0 for all.
        teacher: a reader that was trained here, whose opinions are learned as well.
        hard: how much the answers count beside a teacher's opinion.
        heat: the temperature of that; the higher, the more the places count that the teacher does not take.
        lengths: the shortest and the longest average length of paragraphs, in characters, which is drawn for each
            report anew in each epoch.
        unanswerable: share of the questions without an answer that are drawn in an epoch.
        alike: how often the paragraph that does not answer is the one most like the question, instead of any.
        pieces: of a window.
        stride: pieces that neighbouring windows share.
        question: pieces of a question, at most.
        answer: pieces of an answer, at most, when reading; 0 for any number. The longest of SQuAD has 43; of COVID-QA's
            7 % have more than 64, and 0.3 % more than 128.
        windows: of a paragraph in a step, at most, those with the answer first.
        validation: share of the reports to validate on.
        name: of the model.
        licence: of the reports.
    """

    base: str
    layers: int = 0
    teacher: str = ""
    hard: float = 0.5
    heat: float = 2.0
    lengths: tuple[int, int] = LENGTHS
    unanswerable: float = 1.0
    alike: float = 0.0
    pieces: int = 384
    stride: int = 128
    question: int = 192
    answer: int = 128
    windows: int = 4
    validation: float = 0.05
    name: str = ""
    licence: str = ""

    @property
    def length(self) -> int:
        """Of paragraphs to validate on."""
        return sum(self.lengths) // 2


def train(
    sources: Sequence[Source],
    recipe: Recipe,
    schedule: loop.Schedule,
    out: Path,
    resume: bool = False,
    progress: Callable[[loop.Report], None] = lambda report: None,
    cut: Cut | None = None,
    onnx: bool = True,
) -> dict[str, float]:
    """Trains, validates, exports, calibrates and describes a reader; gives its scores on the validation split.

    Args:
        sources: reports with questions.
        recipe: what to train.
        schedule: how long and how fast; a batch has that many questions, each with a paragraph.
        out: the folder.
        resume: goes on from the checkpoint, if there is one of the same settings.
        progress: is told how it goes.
        cut: a report into paragraphs; into uniform ones of many lengths if None.
        onnx: whether to export and calibrate it: a model to go on with, or a teacher, need not be.

    Raises:
        CaprError: there is too little to learn from, the base cannot be used, or training went wrong.
    """
    learn, held = split(sources, recipe.validation, schedule.seed)
    counts = [sum(source.questions for source in part) for part in (learn, held)]
    judged = posed(held, f"{schedule.seed} held", cut, (recipe.length, recipe.length))[:VALIDATED]
    if counts[0] < FEWEST or not any(one.answers for one in judged):
        fact = f"there are {counts[0]} questions to train on and {counts[1]} to validate with"
        fix = "name more reports with questions and answers, or a larger --validation"
        raise CaprError(f"{fact}, which is too few. Fix: {fix}.")
    torch.manual_seed(schedule.seed)
    objective = build(recipe, schedule.device)
    if not resume:
        for old in ("checkpoint.pt", *(path.name for path in out.glob("*.onnx"))):
            (out / old).unlink(missing_ok=True)  # of another model that was trained here
    run = _Run(objective, learn, cut, judged, schedule, out, progress)
    scores = run.run(resume)
    if int(os.environ.get("RANK", 0)):
        return scores  # the first process writes the model
    out.mkdir(parents=True, exist_ok=True)
    keep(objective, out)
    write_manifest(objective, out)
    if onnx:
        scores |= finish(objective, held, judged, cut, out, schedule.seed)
    data = {
        "reports": sum(len(source.reports) for source in sources), "questions": sum(counts),
        "validation questions": counts[1],
        **{one.name: f"{one.questions:,} questions, {one.weight:g} times" for one in sources if one.name},
    }  # fmt: skip
    settings = {**asdict(recipe), **asdict(run.schedule)}
    settings |= {"base": Path(recipe.base).name, "teacher": Path(recipe.teacher).name}
    card.write(out, recipe.name or out.name, "reader", data, recipe.licence, settings, scores)
    (out / "checkpoint.pt").unlink(missing_ok=True)
    return scores


@dataclass
class Batch:
    """What one step sees.

    Attributes:
        inputs: each (windows, pieces).
        places: (windows, 2), the first and the last piece of the answer; 0 and 0, [CLS], if a window has none.
        allowed: (windows, pieces), true for [CLS] and the paragraph, among which the answer is looked for.
    """

    inputs: dict[str, Tensor]
    places: Tensor
    allowed: Tensor

    def to(self, device: str) -> Batch:
        """The same, there."""
        inputs = {name: tensor.to(device, non_blocking=True) for name, tensor in self.inputs.items()}
        return Batch(inputs, self.places.to(device), self.allowed.to(device))


class Objective:
    """A reader with its tokenizer and, perhaps, its teacher.

    Args:
        model: to teach.
        reader: how it takes texts.
        recipe: how it is taught.
        teacher: that takes texts in the same way.
    """

    def __init__(self, model: SpanReader, reader: Reader, recipe: Recipe, teacher: SpanReader | None = None) -> None:
        self.model, self.reader, self.teacher = model, reader, teacher
        self.recipe = replace(recipe, pieces=min(recipe.pieces, reader.longest))
        self.cutter = Cutter(reader.tokenizer, self.recipe.pieces, recipe.stride, recipe.question)

    def batch(self, chosen: Sequence[Posed], draw: random.Random) -> Batch:
        """Questions with their paragraphs, in windows; not on the device yet, as another process may make it."""
        windows: list[Window] = []
        places: list[tuple[int, int]] = []
        for one in chosen:
            text = one.text
            wanted = pieces_of(one.answers[0], self.cutter.pieces(text)) if one.answers else None
            found = [(window, place_in(window, wanted)) for window in self.cutter.windows(one.question, text)]
            draw.shuffle(found)
            found.sort(key=lambda pair: pair[1] == (0, 0))
            windows += [window for window, _ in found[: self.recipe.windows]]
            places += [place for _, place in found[: self.recipe.windows]]
        inputs = inputs_of(windows, self.reader)
        allowed = np.zeros(inputs["input_ids"].shape, bool)
        for row, window in enumerate(windows):
            allowed[row, 0] = allowed[row, window.begin : window.end] = True
        tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
        return Batch(tensors, torch.tensor(places, dtype=torch.long).view(-1, 2), torch.from_numpy(allowed))

    def loss(self, batch: Batch) -> Tensor:
        """Of the answers and, with a teacher, of its opinions."""
        batch = batch.to(self.reader.device)
        scores = self.model(**batch.inputs)
        value = hard_loss(scores, batch.places, batch.allowed)
        if self.teacher is not None:
            with torch.no_grad():
                opinion = self.teacher(**batch.inputs)
            value = self.recipe.hard * value + soft_loss(scores, opinion, batch.allowed, self.recipe.heat)
        return value

    @torch.no_grad()
    def scores(self, windows: Sequence[Window]) -> Any:
        """Of each window (pieces, 2)."""
        with autocast(self.reader.device):
            return self.model(**self.reader.moved(inputs_of(windows, self.reader))).float().cpu().numpy()

    def extract(self, chosen: Iterable[Posed]) -> list[Extracted | None]:
        """The answer to each."""
        trains = self.model.training
        self.model.eval()
        together = GPU_PIECES if self.reader.device == "cuda" else TOGETHER
        extractor = Extractor(self.cutter, self.scores, self.recipe.answer, together)
        found = extractor.extract([(one.question, one.text) for one in chosen])
        self.model.train(trains)
        return [one[0] if one else None for one in found]


def hard_loss(scores: Tensor, places: Tensor, allowed: Tensor) -> Tensor:
    """Cross-entropy of where the answer begins and where it ends, the mean of both.

    Args:
        scores: (windows, pieces, 2).
        places: (windows, 2).
        allowed: (windows, pieces); see `Batch`.
    """
    begin, end = (listwise(scores[..., side], places[:, side], ~allowed) for side in (0, 1))
    return (begin + end) / 2


def soft_loss(scores: Tensor, opinion: Tensor, allowed: Tensor, heat: float) -> Tensor:
    """How far a student's begins and ends are from its teacher's: the mean divergence of the distributions.

    Args:
        scores: (windows, pieces, 2), of the student.
        opinion: (windows, pieces, 2), of the teacher.
        allowed: (windows, pieces).
        heat: by which both are divided.

    Reference: Hinton et al., Distilling the Knowledge in a Neural Network, 2015.
    """
    known = opinion.masked_fill(~allowed[..., None], float("-inf"))
    begin, end = (taught(scores[..., side], known[..., side], heat) for side in (0, 1))
    return (begin + end) / 2


def pieces_of(answer: Span, pieces: Pieces) -> tuple[int, int] | None:
    """The first and the last piece that have a character of an answer; None if none has."""
    inside = (pieces.offsets[:, 0] < answer.end) & (pieces.offsets[:, 1] > answer.begin) & pieces.words
    (places,) = np.nonzero(inside)
    return (int(places[0]), int(places[-1])) if len(places) else None


def place_in(window: Window, wanted: tuple[int, int] | None) -> tuple[int, int]:
    """Where an answer begins and ends in a window; 0 and 0 if it is not wholly there."""
    size = window.end - window.begin
    if wanted is None or wanted[0] < window.first or wanted[1] >= window.first + size:
        return 0, 0
    shift = window.begin - window.first
    return wanted[0] + shift, wanted[1] + shift


def inputs_of(windows: Sequence[Window], reader: Reader) -> dict[str, Any]:
    """Windows as a network takes them: (windows, pieces) each."""
    shape = len(windows), max(len(window.ids) for window in windows)
    arrays = {name: np.zeros(shape, np.int64) for name in reader.names}
    arrays["input_ids"][:] = reader.padding
    for row, window in enumerate(windows):
        length = len(window.ids)
        arrays["input_ids"][row, :length] = window.ids
        arrays["attention_mask"][row, :length] = 1
        if "token_type_ids" in arrays:
            arrays["token_type_ids"][row, :length] = window.type_ids
    return arrays


def by_length(drawn: Sequence[Posed], batch: int) -> list[Posed]:
    """What is drawn, so that paragraphs of like length make a batch, and little is padded; batches stay shuffled."""
    batches = []
    for begin in range(0, len(drawn), batch * ALIKE):
        some = sorted(drawn[begin : begin + batch * ALIKE], key=lambda one: one.paragraph.end - one.paragraph.begin)
        batches += [some[place : place + batch] for place in range(0, len(some), batch)]
    short = batches.pop() if batches and len(batches[-1]) < batch else []
    random.Random(len(batches)).shuffle(batches)
    return [one for some in (*batches, short) for one in some]


class _Run(loop.Loop):
    """A run of a reader."""

    smaller = " or a shorter --length"

    def __init__(
        self, objective: Objective, sources: Sequence[Source], cut: Cut | None, judged: Sequence[Posed],
        schedule: loop.Schedule, folder: Path, progress: Callable[[loop.Report], None],
    ) -> None:  # fmt: skip
        self.objective, self.judged = objective, judged
        self.questions = sum(source.questions for source in sources)
        recipe = objective.recipe
        epochs = [
            posed(sources, f"{schedule.seed} {epoch}", cut, recipe.lengths, recipe.unanswerable, recipe.alike)
            for epoch in range(schedule.epochs)
        ]
        schedule = replace(schedule, batch=max(1, min(schedule.batch, min(map(len, epochs)))))
        self.order = [one for epoch in epochs for one in by_length(epoch, schedule.batch)]
        each = max(1, len(self.order) // schedule.epochs // schedule.batch)
        super().__init__(objective.model, each, schedule, folder, progress)
        self.workers = WORKERS if schedule.device == "cuda" else 0

    def made(self, step: int) -> Batch:
        size = self.schedule.batch
        chosen = self.order[step * size : (step + 1) * size][self.rank :: self.ranks]
        return self.objective.batch(chosen, random.Random(f"{self.schedule.seed} {step} {self.rank}"))

    def loss(self, batch: Batch) -> Tensor:
        return self.objective.loss(batch)

    def scored(self) -> dict[str, float]:
        return validated(self.judged, self.objective.extract(self.judged))

    def settings(self) -> dict[str, Any]:
        return {"seed": self.schedule.seed, "questions": self.questions, "model": repr(self.model)}


def validated(asked: Sequence[Posed], found: Sequence[Extracted | None]) -> dict[str, float]:
    """SQuAD v2's F1 and EM over questions that are put to paragraphs, and how many are answered and refused.

    There is an answer if it is likelier than none. Without one, F1 and EM are 1 if the paragraph has none, else 0.
    """
    alike: list[tuple[float, float]] = []
    answered: list[bool] = []
    refused: list[bool] = []
    for one, extracted in zip(asked, found, strict=True):
        said = extracted.span.of(one.text) if extracted is not None and extracted.margin > 0 else None
        if one.answers:
            answered.append(said is not None)
            alike.append((0.0, 0.0) if said is None else (f1(said, one.golds), exact_match(said, one.golds)))
        else:
            refused.append(said is None)
            alike.append((float(said is None),) * 2)
    return {
        "F1": mean(f1 for f1, _ in alike),
        "EM": mean(exact for _, exact in alike),
        "answered": float(mean(answered)) if answered else 1.0,
        "refused": float(mean(refused)) if refused else 1.0,
    }


def build(recipe: Recipe, device: str) -> Objective:
    """The reader of a recipe, and its teacher."""
    base = _place(recipe.base)
    answerer = load_answerer(base)
    if recipe.layers:
        cut_inside(answerer, recipe.layers)
    reader = Reader(load_tokenizer(base), answerer, device)
    teacher = load_teacher(recipe.teacher, reader) if recipe.teacher else None
    return Objective(SpanReader(answerer), reader, recipe, teacher)


def _place(base: str) -> str:
    """Where the weights of a base lie."""
    folder = Path(base)
    if base == "reader" and not folder.is_dir():
        folder = shipped("reader")
    if not folder.is_dir():
        return base
    return str(folder / CHECKPOINT if (folder / CHECKPOINT).is_dir() else folder)


def load_teacher(folder: str, reader: Reader) -> SpanReader:
    """A reader that was trained here, if it takes texts as its student does."""
    place = Path(_place(folder))
    manifest = (Path(folder) if place.name == CHECKPOINT else place) / "manifest.json"
    if not manifest.is_file() or json.loads(manifest.read_text("utf-8")).get("kind") != "reader":
        fix = "name the folder of a reader that capr train reader has made"
        raise CaprError(f"{folder} is no teacher: it is no reader. Fix: {fix}.")
    answerer = load_answerer(str(place))
    if not Reader(load_tokenizer(str(place)), answerer, reader.device).reads_as(reader):
        fix = "take the teacher, or its own base, for --base"
        raise CaprError(f"{folder} cannot teach: it cuts texts into other word pieces. Fix: {fix}.")
    return SpanReader(answerer).to(reader.device).eval()


def keep(objective: Objective, out: Path) -> None:
    """Writes the weights for torch, to go on with or to teach, and the tokenizer."""
    kept = out / CHECKPOINT
    shutil.rmtree(kept, ignore_errors=True)
    objective.model.answerer.save_pretrained(kept)
    objective.reader.tokenizer.save(str(out / "tokenizer.json"))
    shutil.copy(kept / "config.json", out / "config.json")
    shutil.copy(out / "tokenizer.json", kept / "tokenizer.json")


def write_manifest(objective: Objective, out: Path, **more: float) -> None:
    """Writes what a program must know to run the reader."""
    recipe = objective.recipe
    manifest = {
        "name": recipe.name or out.name, "kind": "reader", "pieces": recipe.pieces, "stride": recipe.stride,
        "question": recipe.question, "answer": recipe.answer, **more,
    }  # fmt: skip
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def finish(
    objective: Objective, held: Sequence[Source], judged: Sequence[Posed], cut: Cut | None, out: Path, seed: int
) -> dict[str, float]:
    """Exports a reader, checks what was exported, and calibrates it; gives what was found."""
    names = objective.reader.names
    if hasattr(objective.model.answerer, "set_attn_implementation"):
        # What torch has in its place looks for rows without any piece, which takes ONNX Runtime an eighth of its time.
        objective.model.answerer.set_attn_implementation("eager")
    example = tuple(torch.ones(2, 8, dtype=torch.long) for _ in names)
    export(Spans(objective.model, names), example, {name: {0: "windows", 1: "pieces"} for name in names}, out)
    checked = check(objective, out, judged[:CHECKED])
    groups = whole_reports(held, CALIBRATED, PARAGRAPHS, cut, objective.recipe.length, f"{seed} calibration")
    manifest, found = calibrate(partial(extracted, OnnxReader(out)), groups)
    write_manifest(objective, out, **manifest)
    return checked | found


def check(objective: Objective, out: Path, judged: Sequence[Posed]) -> dict[str, float]:
    """How often the exported networks read the same answer as torch, in 32 and in 8 bits, and their F1.

    Raises:
        CaprError: in 32 bits they do not agree, so that the export is wrong.
    """
    objective.model.cpu().float().eval()
    objective.reader.device = "cpu"
    wanted = objective.extract(judged)
    found = {}
    for bits, file in (("32 bits", "model.fp32.onnx"), ("8 bits", "model.onnx")):
        read = extracted(OnnxReader(out, file=file), judged)
        same = [one is two or (one and two and one.span == two.span) for one, two in zip(wanted, read, strict=True)]
        found[f"as torch, {bits}"] = float(mean(map(bool, same)))
        found[f"F1, {bits}"] = validated(judged, read)["F1"]
    other = 1 - found["as torch, 32 bits"]
    if other > 0.05:
        fact = f"the exported reader gives another answer to {other:.0%} of the questions"
        raise CaprError(f"{fact}. Fix: report it with the base's name; the torch weights are in {out / CHECKPOINT}.")
    return found


def extracted(reader: OnnxReader, asked: Iterable[Posed]) -> list[Extracted | None]:
    """The answer of an exported reader to each."""
    found = reader.extract([(one.question, one.text) for one in asked])
    return [one[0] if one else None for one in found]


def calibrate(
    extract: Callable[[Sequence[Posed]], list[Extracted | None]], groups: Sequence[Sequence[Posed]]
) -> tuple[dict[str, float], dict[str, float]]:
    """Temperature, bias and threshold for the manifest; and how well they do.

    An answer is right if its paragraph has one and F1 with it is 0.5 or more. The threshold is the one that best
    tells reports with an answer from those without (`capr.train.calibration.threshold`): questions without an answer,
    and those with one, put to the paragraphs that do not answer them.

    Args:
        extract: gives the answers of the reader.
        groups: questions, each with paragraphs of its report.
    """
    margins: list[float] = []
    right: list[bool] = []
    tops: dict[bool, list[float]] = {True: [], False: []}
    for group in groups:
        best: dict[bool, float] = {}
        for one, found in zip(group, extract(group), strict=True):
            if found is None:
                continue
            margins.append(found.margin)
            right.append(f1(found.span.of(one.text), one.golds) >= RIGHT)
            has = bool(one.answers)
            best[has] = max(best.get(has, found.margin), found.margin)
        if True in best:
            tops[True].append(max(best.values()))
        if False in best:
            tops[False].append(best[False])
    temperature, bias = calibrated(margins, right)

    def sure(of: Iterable[float]) -> list[float]:
        return [sigmoid(margin / temperature + bias) for margin in of]

    least, kept, refused = threshold(sure(tops[True]), sure(tops[False]))
    manifest = {"temperature": round(temperature, 4), "bias": round(bias, 4), "threshold": round(least, 4)}
    return manifest, {
        "calibration error": calibration_error(list(zip(sure(margins), right, strict=True))),
        "threshold": round(least, 4),
        "reports answered": kept,
        "reports refused": refused,
    }
