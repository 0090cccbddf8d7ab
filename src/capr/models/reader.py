"""Reader: marks the answer to a question in a paragraph, or finds that the paragraph has none.

A Hugging Face encoder reads `[CLS] question [SEP] paragraph [SEP]`, and a linear layer gives each word piece two
scores: for the start of the answer, and for its end. An answer at [CLS] means that the paragraph has no answer.

References: Devlin et al., BERT, 2019, section 4.3 (SQuAD v2); Lanz and Pecina, Paragraph Retrieval for Enhanced
Question Answering in Clinical Documents, 2024, section 3.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from capr.documents import CaprError, Span
from capr.models.bases import BUILT_IN, KEPT, PieceTokenizer, load_answerer, load_tokenizer, weights_of
from capr.models.export import export, piece_example
from capr.models.family import Family, Offered, Schedule, option
from capr.models.layers import cut_inside
from capr.models.losses import distillation, listwise
from capr.models.memory import read_whole
from capr.models.precision import autocast
from capr.models.writable import Writable
from capr.runtime.extraction import AnswerExtractor, Cutter, ExtractedAnswer, ReaderWindow, WordPieces
from capr.runtime.onnx import TOGETHER
from capr.supervise.paragraph_questions import LENGTHS, ParagraphQuestion

GPU_PIECES = 65_536  # word pieces that a GPU reads at once


class SpanReader(nn.Module):
    """A Hugging Face model for question answering: an encoder, and a linear layer with two outputs."""

    def __init__(self, answerer: Any) -> None:
        super().__init__()
        self.answerer = answerer

    def forward(self, **inputs: Tensor) -> Tensor:
        # each input: (windows, pieces)
        states = self.answerer.base_model(**inputs)[0]  # (windows, pieces, size)
        scores: Tensor = self.answerer.qa_outputs(states)
        return scores.float()  # (windows, pieces, 2 or 3)


class SpanReaderForExport(nn.Module):
    """A reader for export: inputs to scores."""

    def __init__(self, model: SpanReader, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)))  # (windows, pieces, 2 or 3)


def read_lengths(name: str, length: int) -> tuple[int, int]:
    """Return the range of lengths from a third to five thirds of a length."""
    return length // 3, 5 * length // 3


@dataclass(frozen=True, kw_only=True)
class ReaderFamily(Family):
    """Train a reader from reports with questions: it marks the words that answer, or finds that there are none.

    capr cuts the reports into paragraphs. The reader learns each question with a paragraph that answers it and with
    another paragraph of the same report. Some reports are for validation and for calibrating the confidence. After an
    interruption, repeat the command with --resume. Needs the extra `train`.

    Example: capr train reader squad.json notes.json=2 --base cross-encoder/ms-marco-MiniLM-L-12-v2 -o reader

    Attributes:
        base: a Hugging Face encoder, by path or name; the folder of a trained reader, to continue its training; or
            `reader`, the built-in reader.
        layers: number of layers to keep; 0 for all.
        teacher: the folder of a trained reader whose scores are learned as well.
        label_weight: the weight of the gold answers in the loss, if there is a teacher. The weight of the teacher is 1.
        teacher_temperature: the temperature of the teacher's scores. A high one gives weight to spans that the teacher
            ranks low.
        lengths: the range of average lengths of paragraphs, in characters. Each epoch draws a length for each report.
        unanswerable: share of the unanswerable questions that an epoch draws.
        hard_negative_share: how often the paragraph without the answer is the one most similar to the question, not a
            random one.
        pieces: maximum number of word pieces of a window.
        stride: number of word pieces that neighbouring windows share.
        question: maximum number of word pieces of a question.
        answer: maximum number of word pieces of an answer when reading; 0 for no limit. The longest answer of SQuAD has
            43. Of the answers of COVID-QA, 7% have more than 64, and 0.3% more than 128.
        windows: maximum number of windows per paragraph in a step. Windows with the answer come first.
        validation: share of the reports to validate on.
        name: the name of the model.
        licence: the licence of the reports.
    """

    learns_from: ClassVar[str] = "reports"
    schedule: ClassVar[Schedule] = Schedule(epochs=3, batch=16, learning_rate=5e-5)
    offered: ClassVar[Offered] = {
        **Family.offered,
        "epochs": {"help": "How often each question is drawn."},
        "batch": {"help": "Questions per step, each with a paragraph.", "least": 1},
    }

    base: str = option(
        help="A folder or name of the Hub, or encoder, ranker or reader.",
        metavar="MODEL",
    )
    layers: int = option(0, "Layers of the base to keep; 0 for all.", least=0)
    teacher: str = option("", "A reader that teaches its scores.", metavar="FOLDER")
    label_weight: float = option(0.5, "The weight of the gold answers. The weight of the teacher is 1.", least=0)
    lengths: tuple[int, int] = option(
        LENGTHS,
        "Average characters of a paragraph; lengths vary from a third to five thirds of it.",
        name="--length",
        least=3,
        parse=read_lengths,
        shown=900,
    )
    unanswerable: float = option(1.0, "Share of the unanswerable questions to draw.", least=0, most=1)
    hard_negative_share: float = option(0.0, "How often the other paragraph is the one most similar.", least=0, most=1)
    negative_paragraphs: int = option(
        0, "Other paragraphs for each question, to learn to score paragraphs as well; 0 for none.", least=0
    )
    validation: float = option(0.05, "Share of the reports to validate and calibrate on.", least=0, most=1)
    teacher_temperature: float = 2.0
    pieces: int = 384
    stride: int = 128
    question: int = 192
    answer: int = 128
    windows: int = 4

    @property
    def length(self) -> int:
        """The average length of the paragraphs for validation."""
        return sum(self.lengths) // 2

    def objective(self, device: str, limit: int = 0) -> ReaderObjective:
        """Return the network with its inputs and its loss.

        Args:
            device: `cuda` or `cpu`.
            limit: number of word pieces that the network reads at once; 0 for a whole batch.

        Raises:
            CaprError: the base or the teacher cannot be used.
        """
        base = weights_of(self.base, *BUILT_IN)
        answerer = load_answerer(base, 3 if self.negative_paragraphs else 2)
        if self.layers:
            cut_inside(answerer, self.layers)
        tokenizer = PieceTokenizer(load_tokenizer(base), answerer, device)
        teacher = load_teacher(self.teacher, tokenizer) if self.teacher else None
        return ReaderObjective(self, SpanReader(answerer), tokenizer, teacher, limit)

    def settings(self) -> dict[str, Any]:
        """Return the settings for the model card, with the names of folders instead of their paths."""
        return {**vars(self), "base": Path(self.base).name, "teacher": Path(self.teacher).name}


@dataclass
class ReaderBatch:
    """The tensors of a training step.

    Attributes:
        inputs: the inputs of the network: (windows, pieces) each.
        positions: (windows, 2), the first and the last piece of the answer; (0, 0), which is [CLS], for no answer.
        allowed: (windows, pieces), true for possible starts and ends of an answer: [CLS] and the paragraph.
        groups: (questions, 1 + windows), the numbers of each question's windows, from 1. The first column stands for no
            answer; 0 elsewhere is padding.
        right: (questions, 1 + windows), true for the windows with an answer, or for the first column if there is none.
    """

    inputs: dict[str, Tensor]
    positions: Tensor
    allowed: Tensor
    groups: Tensor
    right: Tensor

    def to(self, device: str) -> ReaderBatch:
        """Return a copy on a device."""
        inputs = {name: tensor.to(device, non_blocking=True) for name, tensor in self.inputs.items()}
        tensors = (self.positions, self.allowed, self.groups, self.right)
        return ReaderBatch(inputs, *(tensor.to(device, non_blocking=True) for tensor in tensors))


class ReaderObjective(Writable):
    """A reader with its tokenizer, its loss, its export and an optional teacher.

    Args:
        family: the settings.
        model: the network to train.
        tokenizer: tokenizes the texts.
        teacher: a trained network with the same inputs.
        limit: number of word pieces that a training step reads at once; 0 for a whole batch.
    """

    def __init__(
        self,
        family: ReaderFamily,
        model: SpanReader,
        tokenizer: PieceTokenizer,
        teacher: SpanReader | None = None,
        limit: int = 0,
    ) -> None:
        self.family, self.model, self.tokenizer, self.teacher, self.limit = family, model, tokenizer, teacher, limit
        self.pieces = min(family.pieces, tokenizer.longest)
        self.cutter = Cutter(tokenizer.base_tokenizer, self.pieces, family.stride, family.question)

    def batch(self, questions: Sequence[Sequence[ParagraphQuestion]], rng: random.Random) -> ReaderBatch:
        """Return the windows of questions, each with its paragraphs.

        The tensors stay on the CPU, because another process may call this.
        """
        windows: list[ReaderWindow] = []
        positions: list[tuple[int, int]] = []
        ranges: list[range] = []
        for pairs in questions:
            first = len(windows)
            for pair in pairs:
                text = pair.text
                answer = pieces_of(pair.answers[0], self.cutter.pieces(text)) if pair.answers else None
                candidates = [
                    (window, position_in(window, answer)) for window in self.cutter.windows(pair.question, text)
                ]
                rng.shuffle(candidates)
                candidates.sort(key=lambda candidate: candidate[1] == (0, 0))
                windows += [window for window, _ in candidates[: self.family.windows]]
                positions += [position for _, position in candidates[: self.family.windows]]
            ranges.append(range(first, len(windows)))
        inputs = inputs_of(windows, self.tokenizer)
        allowed = np.zeros(inputs["input_ids"].shape, bool)
        for row, window in enumerate(windows):
            allowed[row, 0] = allowed[row, window.begin : window.end] = True
        tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
        groups = np.zeros((len(ranges), 1 + max(map(len, ranges))), np.int64)
        right = np.zeros(groups.shape, bool)
        for row, numbers in enumerate(ranges):
            groups[row, 1 : 1 + len(numbers)] = np.array(numbers) + 1
            right[row, 1 : 1 + len(numbers)] = [positions[number] != (0, 0) for number in numbers]
            right[row, 0] = not right[row].any()
        answers = torch.tensor(positions, dtype=torch.long).view(-1, 2)
        return ReaderBatch(tensors, answers, *map(torch.from_numpy, (allowed, groups, right)))

    def loss(self, batch: ReaderBatch) -> Tensor:
        """Return the loss of the gold answers, plus the loss of the teacher's scores if there is a teacher."""
        batch = batch.to(self.tokenizer.device)
        scores = read_whole(self.model, batch.inputs, self.limit)  # (windows, pieces, 2)
        value = hard_loss(scores, batch.positions, batch.allowed)
        if self.family.negative_paragraphs:
            value = value + paragraph_loss(scores[:, 0, 2], batch.groups, batch.right)
        if self.teacher is not None:
            with torch.no_grad():
                teacher_scores = read_whole(self.teacher, batch.inputs, self.limit)
            value = self.family.label_weight * value + soft_loss(
                scores, teacher_scores, batch.allowed, self.family.teacher_temperature
            )
        return value

    @torch.no_grad()
    def scores(self, windows: Sequence[ReaderWindow]) -> Any:
        """Return the scores of windows: (windows, pieces, 2)."""
        with autocast(self.tokenizer.device):
            return self.model(**self.tokenizer.to_device(inputs_of(windows, self.tokenizer))).float().cpu().numpy()

    def extract(self, questions: Iterable[ParagraphQuestion]) -> list[ExtractedAnswer | None]:
        """Return the best answer to each question, or None."""
        training = self.model.training
        self.model.eval()
        limit = GPU_PIECES if self.tokenizer.device == "cuda" else TOGETHER
        extractor = AnswerExtractor(self.cutter, self.scores, self.family.answer, limit)
        answers = extractor.extract([(question.question, question.text) for question in questions])
        self.model.train(training)
        return [ranked[0] if ranked else None for ranked in answers]

    def save_weights(self, folder: Path) -> None:
        self.model.answerer.save_pretrained(folder)
        self.tokenizer.base_tokenizer.save(str(folder / "tokenizer.json"))

    def manifest(self) -> Mapping[str, Any]:
        family = self.family
        return {
            "kind": "reader",
            "pieces": self.pieces,
            "stride": family.stride,
            "question": family.question,
            "answer": family.answer,
        }

    def export(self, folder: Path) -> None:
        names = self.tokenizer.names
        if hasattr(self.model.answerer, "set_attn_implementation"):
            # torch's default attention checks for empty rows, which would take ONNX Runtime an eighth of its time.
            self.model.answerer.set_attn_implementation("eager")
        export(SpanReaderForExport(self.model, names), *piece_example(names, "windows"), folder)


def hard_loss(scores: Tensor, positions: Tensor, allowed: Tensor) -> Tensor:
    """Return the mean of two cross-entropies: of the first and of the last piece of the answer.

    Args:
        scores: (windows, pieces, 2).
        positions: (windows, 2).
        allowed: (windows, pieces); see `ReaderBatch`.
    """
    begin, end = (listwise(scores[..., side], positions[:, side], ~allowed) for side in (0, 1))
    return (begin + end) / 2


def paragraph_loss(scores: Tensor, groups: Tensor, right: Tensor) -> Tensor:
    """Return the cross-entropy of the windows with an answer, against all windows of a question and 0 for no answer.

    Args:
        scores: (windows,), the scores of the paragraphs.
        groups: (questions, 1 + windows); see `ReaderBatch`.
        right: (questions, 1 + windows); see `ReaderBatch`.
    """
    table = torch.cat((scores.new_zeros(1), scores))[groups]  # (questions, 1 + windows)
    padding = groups == 0
    padding[:, 0] = False
    table = table.masked_fill(padding, float("-inf"))
    return (table.logsumexp(1) - table.masked_fill(~right, float("-inf")).logsumexp(1)).mean()


def soft_loss(scores: Tensor, teacher_scores: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    """Return the mean divergence of a student's distributions of starts and ends from its teacher's.

    Args:
        scores: (windows, pieces, 2), the scores of the student.
        teacher_scores: (windows, pieces, 2), the scores of the teacher.
        allowed: (windows, pieces); see `ReaderBatch`.
        temperature: the divisor of both scores.

    Reference: Hinton et al., Distilling the Knowledge in a Neural Network, 2015.
    """
    targets = teacher_scores.masked_fill(~allowed[..., None], float("-inf"))
    begin, end = (distillation(scores[..., side], targets[..., side], temperature) for side in (0, 1))
    return (begin + end) / 2


def pieces_of(answer: Span, pieces: WordPieces) -> tuple[int, int] | None:
    """Return the first and the last piece that overlap an answer, or None."""
    inside = (pieces.offsets[:, 0] < answer.end) & (pieces.offsets[:, 1] > answer.begin) & pieces.words
    (positions,) = np.nonzero(inside)
    return (int(positions[0]), int(positions[-1])) if len(positions) else None


def position_in(window: ReaderWindow, answer: tuple[int, int] | None) -> tuple[int, int]:
    """Return the first and the last piece of an answer in a window, or (0, 0) if the window lacks a part of it."""
    size = window.end - window.begin
    if answer is None or answer[0] < window.first or answer[1] >= window.first + size:
        return 0, 0
    shift = window.begin - window.first
    return answer[0] + shift, answer[1] + shift


def inputs_of(windows: Sequence[ReaderWindow], tokenizer: PieceTokenizer) -> dict[str, Any]:
    """Return the inputs of a network for windows: (windows, pieces) each."""
    shape = len(windows), max(len(window.ids) for window in windows)
    arrays = {name: np.zeros(shape, np.int64) for name in tokenizer.names}
    arrays["input_ids"][:] = tokenizer.padding
    for row, window in enumerate(windows):
        length = len(window.ids)
        arrays["input_ids"][row, :length] = window.ids
        arrays["attention_mask"][row, :length] = 1
        if "token_type_ids" in arrays:
            arrays["token_type_ids"][row, :length] = window.type_ids
    return arrays


def load_teacher(folder: str, tokenizer: PieceTokenizer) -> SpanReader:
    """Load a reader that capr trained, as a teacher.

    Raises:
        CaprError: the folder has no reader, or the reader has other inputs than its student.
    """
    local = folder == "reader" or Path(folder).is_dir()  # a teacher is never looked up on the hub
    weights = Path(weights_of(folder, "reader") if local else folder)
    manifest = (Path(folder) if weights.name == KEPT else weights) / "manifest.json"
    if not manifest.is_file() or json.loads(manifest.read_text("utf-8")).get("kind") != "reader":
        fix = "name the folder of a reader trained by capr train reader"
        if not local:
            raise CaprError(f"there is no folder {folder}. Fix: {fix}.")
        raise CaprError(f"{folder} is not a teacher: it is not a reader. Fix: {fix}.")
    answerer = load_answerer(str(weights))
    if not PieceTokenizer(load_tokenizer(str(weights)), answerer, tokenizer.device).reads_as(tokenizer):
        fix = "take the teacher, or its own base, for --base"
        raise CaprError(f"{folder} cannot teach: it cuts texts into other word pieces. Fix: {fix}.")
    return SpanReader(answerer).to(tokenizer.device).eval()
