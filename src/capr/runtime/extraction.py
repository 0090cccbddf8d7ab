"""Extract answers: cut a question and a paragraph into windows, and find the words with the best scores.

Reference: Lanz and Pecina, Paragraph Retrieval for Enhanced Question Answering in Clinical Documents, 2024, and its
released code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from capr.documents import CaprError, Span
from capr.runtime.onnx import TOGETHER, batches

WORD = re.compile(r"\w+(?:(?<=\d)[.,:/-](?=\d)\w+)*")  # a point in a number or a dash in a date does not end a word
BLANK = re.compile(r"\n[^\S\n]*\n")
UNIT = re.compile(  # the unit after a number that ends an answer
    r"""[ ]?(?:
    %|°[ ]?[CF]\b|x[ ]?10\^?\d+(?:/\w+)?|mm[ ]?Hg\b|bpm\b|lbs?\b|cc\b|puffs?\b|tablets?\b|units?\b|I?U\b(?:/\w+)?|
    (?:[µμmckdnp]?(?:g|L|l|mol|Eq|Osm|kat)|[µμmckn]?m)\b(?:/(?:\d+[ ]?)?\w+[²³]?)*|
    (?:seconds?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?)\b(?:-old|[ ]old)?
    )""",
    re.VERBOSE,
)
NUMBER = re.compile(r"\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|half)\b", re.IGNORECASE)
BOUND = re.compile(  # words and signs that turn the number after them into a limit or an estimate
    r"(?:\b(?:about|approximately|around|roughly|nearly|almost|at\s+(?:least|most)|up\s+to|(?:less|more|fewer|greater|"
    r"longer|shorter|higher|lower)\s+than|over|under|below|above|within)\s+|[<>≥≤~]\s*)\Z",
    re.IGNORECASE,
)
BEFORE = 20  # the number of characters before a number to search for a bound
CACHED = 2048  # texts whose word pieces stay in memory, because users ask several questions about one report
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WordPieces:
    """The word pieces of a text.

    Attributes:
        ids: the ids of the pieces in the tokenizer's vocabulary.
        offsets: (pieces, 2), the start and end of each piece in the text.
        words: (pieces,), whether the piece contains more than blanks.
        begins, ends: (pieces,), whether the piece begins, or ends, a word or a number, so that an answer may.
    """

    ids: list[int]
    offsets: NDArray[np.int64]
    words: NDArray[np.bool_]
    begins: NDArray[np.bool_]
    ends: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ReaderWindow:
    """A window: a question with pieces of a paragraph.

    Attributes:
        ids, type_ids: the ids of all pieces; the first piece is [CLS].
        begin, end: the range of the paragraph's pieces in the window.
        first: the index of the window's first paragraph piece in the paragraph.
    """

    ids: list[int]
    type_ids: list[int]
    begin: int
    end: int
    first: int


class Cutter:
    """Cuts texts into word pieces, and paragraphs into windows that begin with the question.

    Neighbouring windows share `stride` pieces. A long question is truncated, so that at least half of a window is left
    for the paragraph.

    Args:
        tokenizer: the tokenizer of the network; the cutter turns off its truncation and padding.
        pieces: the maximum number of pieces of a window.
        stride: the number of pieces that neighbouring windows share, at most half of their paragraph pieces.
        question: the maximum number of pieces of a question.

    Raises:
        CaprError: the tokenizer puts no mark before the question; the score of that mark is the score of no answer.
    """

    def __init__(self, tokenizer: Any, pieces: int = 384, stride: int = 128, question: int = 192) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        encoding = tokenizer.encode("a", "a")
        texts: list[int | None] = encoding.sequence_ids  # 0 and 1; None for the marks around them
        first, second = ([i for i, text in enumerate(texts) if text == number] for number in (0, 1))
        marks = (slice(0, first[0]), slice(first[-1] + 1, second[0]), slice(second[-1] + 1, len(texts)))
        self._marks = [encoding.ids[mark] for mark in marks]
        self._types = [encoding.type_ids[mark] for mark in marks]
        self._text_types = encoding.type_ids[first[0]], encoding.type_ids[second[0]]
        if not self._marks[0]:
            fix = "use one that does, such as that of BERT or RoBERTa"
            raise CaprError(f"the tokenizer puts no mark such as [CLS] before a text. Fix: {fix}.")
        room = pieces - sum(map(len, self._marks))
        if room < 2:
            raise CaprError(f"a window of {pieces} pieces is too small to read. Fix: make it larger.")
        self._room, self._stride, self._question = room, stride, min(question, room // 2)
        self.pieces = lru_cache(maxsize=CACHED)(self._cut)

    def _cut(self, text: str) -> WordPieces:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        words = np.array([begin < end and not text[begin:end].isspace() for begin, end in encoding.offsets], bool)
        inside = np.zeros(len(text) + 1, bool)  # whether an offset is inside a word
        for word in WORD.finditer(text):
            inside[word.start() + 1 : word.end()] = True
        begins, ends = (words & ~inside[offsets[:, side]] for side in (0, 1))
        return WordPieces(encoding.ids, offsets, words, begins, ends)

    def unread(self, question: str) -> str:
        """Return the end of a question that has too many pieces; empty if it is short enough."""
        rest = self.pieces(question).offsets[self._question :]
        return question[int(rest[0, 0]) :] if len(rest) else ""

    def windows(self, question: str, paragraph: str) -> Iterator[ReaderWindow]:
        """Yield the windows of a paragraph; none if it has no pieces.

        Raises:
            CaprError: the question has no words.
        """
        question_ids, paragraph_ids = self.pieces(question).ids[: self._question], self.pieces(paragraph).ids
        if not question_ids:
            raise CaprError("the question is empty. Fix: ask something, such as: What dose of aspirin was given?")
        room = self._room - len(question_ids)
        step = room - min(self._stride, room // 2)
        (before, between, after), types = self._marks, self._types
        begin = len(before) + len(question_ids) + len(between)
        head = [*before, *question_ids, *between]
        head_types = [*types[0], *[self._text_types[0]] * len(question_ids), *types[1]]
        for first in range(0, len(paragraph_ids), step):
            part = paragraph_ids[first : first + room]
            type_ids = [*head_types, *[self._text_types[1]] * len(part), *types[2]]
            yield ReaderWindow([*head, *part, *after], type_ids, begin, begin + len(part), first)
            if first + room >= len(paragraph_ids):
                break


@dataclass(frozen=True, slots=True)
class ExtractedAnswer:
    """Words of a paragraph that may answer.

    Attributes:
        span: the span in the paragraph.
        score: the log-probability that the answer begins and ends there, the highest of all windows.
        null: the log-probability that there is no answer, the lowest of all windows.
        paragraph: the score of the paragraph, the highest of all windows; above 0 if it is likelier to answer than not.
            It is 0 if the network does not score paragraphs.
    """

    span: Span
    score: float
    null: float
    paragraph: float = 0.0

    @property
    def margin(self) -> float:
        """The log-probability of these words minus that of no answer."""
        return self.score - self.null


Network = Callable[[Sequence[ReaderWindow]], NDArray[np.float32]]  # (windows, pieces, 2 or 3)


class AnswerExtractor:
    """Extracts answers with a network that scores the pieces of windows.

    Args:
        cutter: the maker of the windows.
        network: a function from windows to the start and end scores of each piece.
        answer: the maximum number of pieces of an answer; 0 for any number.
        together: the maximum number of pieces of a batch, with padding.
    """

    def __init__(self, cutter: Cutter, network: Network, answer: int = 128, together: int = TOGETHER) -> None:
        self._cutter, self._network, self._answer, self._together = cutter, network, answer, together

    def extract(self, pairs: Sequence[tuple[str, str]], best: int = 1) -> list[list[ExtractedAnswer]]:
        """Return for each question and paragraph the likeliest answers without overlap, the best first."""
        windows_of_pairs = [list(self._cutter.windows(question, paragraph)) for question, paragraph in pairs]
        scores = iter(self._scores([window for windows in windows_of_pairs for window in windows]))
        answers = []
        for (_, paragraph), windows in zip(pairs, windows_of_pairs, strict=True):
            scored = [(window, next(scores)) for window in windows]
            answers.append(spans(paragraph, self._cutter.pieces(paragraph), scored, self._answer, best))
        return answers

    def _scores(self, windows: Sequence[ReaderWindow]) -> list[NDArray[np.float32]]:
        """Return the scores of each window (pieces, 2). A batch has windows of similar length, to save padding."""
        scores: dict[int, NDArray[np.float32]] = {}
        for batch in batches([len(window.ids) for window in windows], self._together):
            table = self._network([windows[i] for i in batch])
            scores |= {i: table[row, : len(windows[i].ids)] for row, i in enumerate(batch)}
        return [scores[i] for i in range(len(windows))]


def spans(
    text: str,
    pieces: WordPieces,
    scored: Sequence[tuple[ReaderWindow, NDArray[np.float32]]],
    answer: int = 128,
    best: int = 1,
) -> list[ExtractedAnswer]:
    """Return the likeliest answers of a paragraph: whole words, without overlap, the best first.

    An answer ends before the next blank line. If it ends or begins with a number, it includes the unit or the bound of
    the number (`completed`).

    Args:
        text: the text of the paragraph.
        pieces: the pieces of the paragraph.
        scored: the windows of the paragraph with the scores of their pieces, (pieces, 2).
        answer: the maximum number of pieces of an answer; 0 for any number.
        best: the maximum number of answers.
    """
    windows, null = [], 0.0
    paragraph = max((float(scores[0, 2]) for _, scores in scored if scores.shape[1] > 2), default=0.0)
    for window, scores in scored:
        begins, ends, window_null = likelihoods(window, scores[:, :2])
        inside = slice(window.first, window.first + len(ends))
        begins[~pieces.begins[inside]] = -np.inf
        ends[~pieces.ends[inside]] = -np.inf
        windows.append((begins, ends, pieces.offsets[inside]))
        null = min(null, window_null)
    answers: list[ExtractedAnswer] = []
    used: list[Span] = []
    while windows and len(answers) < best:
        candidates = (_likeliest(*window, answer or len(pieces.ids), used) for window in windows)
        score, span = max(candidates, key=itemgetter(0))
        if score == -np.inf:
            break
        blank = BLANK.search(text, span.begin, span.end)
        trimmed = (Span(span.begin, blank.start()) if blank else span).trimmed(text)
        whole = completed(text, trimmed)
        if any(whole.begin < other.end and other.begin < whole.end for other in used):
            whole = trimmed
        used += [span, whole]
        answers.append(ExtractedAnswer(whole, score, null, paragraph))
    return answers


def completed(text: str, span: Span) -> Span:
    """Extend an answer by the unit of a number at its end, and by the bound of a number at its start.

    >>> text = "Take at least 5 mg, at most 10 mg."
    >>> completed(text, Span(14, 15)).of(text)
    'at least 5 mg'
    """
    begin, end = span
    if end > begin and text[end - 1].isdecimal() and (unit := UNIT.match(text, end)):
        end = unit.end()
    if NUMBER.match(text, begin) and (bound := BOUND.search(text[max(0, begin - BEFORE) : begin])):
        begin -= len(bound[0])
    return Span(begin, end)


def _likeliest(
    begins: Floats, ends: Floats, offsets: NDArray[np.int64], answer: int, used: Sequence[Span]
) -> tuple[float, Span]:
    """Return the likeliest span of a window that overlaps no used span, and its log-probability first."""
    width = min(answer, len(ends))
    padding = np.full(width - 1, -np.inf)
    table = begins[:, None] + sliding_window_view(np.concatenate([ends, padding]), width)  # (begin, length - 1)
    last = sliding_window_view(np.concatenate([offsets[:, 1], np.zeros(width - 1, np.int64)]), width)
    for span in used:
        table[(offsets[:, :1] < span.end) & (last > span.begin)] = -np.inf
    first, extra = divmod(int(table.argmax()), width)
    score = float(table[first, extra])
    if score == -np.inf:
        return score, Span(0, 0)
    return score, Span(int(offsets[first, 0]), int(offsets[first + extra, 1]))


def likelihoods(window: ReaderWindow, scores: NDArray[np.float32]) -> tuple[Floats, Floats, float]:
    """Return the log-probabilities of start and end at each piece of the paragraph, and that of no answer.

    Those of the start, and those of the end, add up to 1 over [CLS] and the paragraph; the question has no answers.
    """
    logits = np.concatenate([scores[:1], scores[window.begin : window.end]]).astype(np.float64)  # (1 + pieces, 2)
    top = logits.max(axis=0)
    logs = logits - top - np.log(np.exp(logits - top).sum(axis=0))
    return logs[1:, 0], logs[1:, 1], float(logs[0].sum())
