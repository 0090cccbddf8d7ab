"""How a reader reads: windows of a question and a paragraph, and the words of the paragraph that score best.

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
from capr.index.onnx import TOGETHER, batches

WORD = re.compile(r"\w+(?:(?<=\d)[.,:/-](?=\d)\w+)*")  # a number goes on after its point, and a date after its dashes
BLANK = re.compile(r"\n[^\S\n]*\n")
UNIT = re.compile(  # what a number that ends an answer is a number of
    r"""[ ]?(?:
    %|°[ ]?[CF]\b|x[ ]?10\^?\d+(?:/\w+)?|mm[ ]?Hg\b|bpm\b|lbs?\b|cc\b|puffs?\b|tablets?\b|units?\b|I?U\b(?:/\w+)?|
    (?:[µμmckdnp]?(?:g|L|l|mol|Eq|Osm|kat)|[µμmckn]?m)\b(?:/(?:\d+[ ]?)?\w+[²³]?)*|
    (?:seconds?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?)\b(?:-old|[ ]old)?
    )""",
    re.VERBOSE,
)
NUMBER = re.compile(r"\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|half)\b", re.IGNORECASE)
BOUND = re.compile(  # what may stand before a number, and changes what it says
    r"(?:\b(?:about|approximately|around|roughly|nearly|almost|at\s+(?:least|most)|up\s+to|(?:less|more|fewer|greater|"
    r"longer|shorter|higher|lower)\s+than|over|under|below|above|within)\s+|[<>≥≤~]\s*)\Z",
    re.IGNORECASE,
)
BEFORE = 20  # characters in which a bound is looked for
KEPT = 2048  # texts whose pieces are remembered, as several questions are asked of one report
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The word pieces of a text.

    Attributes:
        ids: as the network knows them.
        offsets: (pieces, 2), the characters of the text that each stands for.
        words: (pieces,), whether it stands for more than blanks.
        begins, ends: (pieces,), whether it does and a word or a number begins, or ends, so that an answer may.
    """

    ids: list[int]
    offsets: NDArray[np.int64]
    words: NDArray[np.bool_]
    begins: NDArray[np.bool_]
    ends: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """What the network sees at once.

    Attributes:
        ids, type_ids: of all pieces; the first is [CLS].
        begin, end: where the pieces of the paragraph stand among them.
        first: which piece of the paragraph is the first of them.
    """

    ids: list[int]
    type_ids: list[int]
    begin: int
    end: int
    first: int


class Cutter:
    """Cuts texts into word pieces, and paragraphs into windows with the question before each.

    Neighbouring windows share `stride` pieces. Of a long question the first pieces are read, so many that half of a
    window at least is left for the paragraph.

    Args:
        tokenizer: of the network; is changed to neither cut nor pad.
        pieces: of a window, at most.
        stride: pieces that neighbouring windows share, at most half of what they have of the paragraph.
        question: pieces of a question, at most.

    Raises:
        CaprError: the tokenizer puts nothing before the question which could stand for no answer.
    """

    def __init__(self, tokenizer: Any, pieces: int = 384, stride: int = 128, question: int = 192) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        encoding = tokenizer.encode("a", "a")
        texts: list[int | None] = encoding.sequence_ids  # 0 and 1; None for the marks around them
        first, second = ([place for place, text in enumerate(texts) if text == number] for number in (0, 1))
        marks = (slice(0, first[0]), slice(first[-1] + 1, second[0]), slice(second[-1] + 1, len(texts)))
        self._marks = [encoding.ids[mark] for mark in marks]
        self._types = [encoding.type_ids[mark] for mark in marks]
        self._text_types = encoding.type_ids[first[0]], encoding.type_ids[second[0]]
        if not self._marks[0]:
            fix = "take one that does, as those of BERT and RoBERTa do"
            raise CaprError(f"the tokenizer puts no mark such as [CLS] before a text. Fix: {fix}.")
        room = pieces - sum(map(len, self._marks))
        if room < 2:
            raise CaprError(f"a window of {pieces} pieces is too small to read. Fix: make it larger.")
        self._room, self._stride, self._question = room, stride, min(question, room // 2)
        self.pieces = lru_cache(maxsize=KEPT)(self._pieces)

    def _pieces(self, text: str) -> Pieces:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        words = np.array([begin < end and not text[begin:end].isspace() for begin, end in encoding.offsets], bool)
        within = np.zeros(len(text) + 1, bool)  # whether a word goes on from the character before
        for word in WORD.finditer(text):
            within[word.start() + 1 : word.end()] = True
        begins, ends = (words & ~within[offsets[:, side]] for side in (0, 1))
        return Pieces(encoding.ids, offsets, words, begins, ends)

    def unread(self, question: str) -> str:
        """What of a question is not read, since it has more pieces than there is room for."""
        rest = self.pieces(question).offsets[self._question :]
        return question[int(rest[0, 0]) :] if len(rest) else ""

    def windows(self, question: str, paragraph: str) -> Iterator[Window]:
        """The windows of a paragraph; none if it has no pieces.

        Raises:
            CaprError: the question has no words.
        """
        asked, read = self.pieces(question).ids[: self._question], self.pieces(paragraph).ids
        if not asked:
            raise CaprError("the question is empty. Fix: ask something, such as: What dose of aspirin was given?")
        room = self._room - len(asked)
        step = room - min(self._stride, room // 2)
        (before, between, after), types = self._marks, self._types
        begin = len(before) + len(asked) + len(between)
        head = [*before, *asked, *between]
        head_types = [*types[0], *[self._text_types[0]] * len(asked), *types[1]]
        for first in range(0, len(read), step):
            part = read[first : first + room]
            kinds = [*head_types, *[self._text_types[1]] * len(part), *types[2]]
            yield Window([*head, *part, *after], kinds, begin, begin + len(part), first)
            if first + room >= len(read):
                break


@dataclass(frozen=True, slots=True)
class Extracted:
    """Words of a paragraph that may answer.

    Attributes:
        span: of the paragraph.
        score: log-probability that the answer begins and ends there, in the window where it is highest.
        null: log-probability that there is none, in the window where it is lowest.
    """

    span: Span
    score: float
    null: float

    @property
    def margin(self) -> float:
        """How much likelier these words are than no answer."""
        return self.score - self.null


Network = Callable[[Sequence[Window]], NDArray[np.float32]]  # (windows, pieces, 2)


class Extractor:
    """Reads answers with a network that scores the pieces of windows.

    Args:
        cutter: makes the windows.
        network: windows to scores of begin and end at each piece.
        answer: pieces of an answer, at most; 0 for any number.
        together: pieces that the network is given at once, with padding.
    """

    def __init__(self, cutter: Cutter, network: Network, answer: int = 128, together: int = TOGETHER) -> None:
        self._cutter, self._network, self._answer, self._together = cutter, network, answer, together

    def extract(self, pairs: Sequence[tuple[str, str]], best: int = 1) -> list[list[Extracted]]:
        """For each question and paragraph the likeliest answers that do not overlap, the best first."""
        cut = [list(self._cutter.windows(question, paragraph)) for question, paragraph in pairs]
        scores = iter(self._scores([window for windows in cut for window in windows]))
        found = []
        for (_, paragraph), windows in zip(pairs, cut, strict=True):
            read = [(window, next(scores)) for window in windows]
            found.append(spans(paragraph, self._cutter.pieces(paragraph), read, self._answer, best))
        return found

    def _scores(self, windows: Sequence[Window]) -> list[NDArray[np.float32]]:
        """Of each window (pieces, 2); those of like length are read together, so that little is padded."""
        found: dict[int, NDArray[np.float32]] = {}
        for part in batches([len(window.ids) for window in windows], self._together):
            scores = self._network([windows[i] for i in part])
            found |= {i: scores[row, : len(windows[i].ids)] for row, i in enumerate(part)}
        return [found[i] for i in range(len(windows))]


def spans(
    text: str, pieces: Pieces, read: Sequence[tuple[Window, NDArray[np.float32]]], answer: int = 128, best: int = 1
) -> list[Extracted]:
    """The likeliest answers of a paragraph, whole words, the best first, none of which overlaps another.

    An answer ends before the next blank line, and a number has its unit and what bounds it (`completed`).

    Args:
        text: of the paragraph.
        pieces: of it.
        read: its windows with the scores of their pieces, (pieces, 2).
        answer: pieces of an answer, at most; 0 for any number.
        best: how many answers, at most.
    """
    likely, null = [], 0.0
    for window, scores in read:
        begins, ends, none = likelihoods(window, scores)
        inside = slice(window.first, window.first + len(ends))
        begins[~pieces.begins[inside]] = -np.inf
        ends[~pieces.ends[inside]] = -np.inf
        likely.append((begins, ends, pieces.offsets[inside]))
        null = min(null, none)
    found: list[Extracted] = []
    taken: list[Span] = []
    while likely and len(found) < best:
        tops = (_likeliest(*one, answer or len(pieces.ids), taken) for one in likely)
        score, span = max(tops, key=itemgetter(0))
        if score == -np.inf:
            break
        blank = BLANK.search(text, span.begin, span.end)
        said = (Span(span.begin, blank.start()) if blank else span).trimmed(text)
        whole = completed(text, said)
        if any(whole.begin < other.end and other.begin < whole.end for other in taken):
            whole = said
        taken += [span, whole]
        found.append(Extracted(whole, score, null))
    return found


def completed(text: str, span: Span) -> Span:
    """An answer with the unit of the number that it ends with, and with what bounds the number that it begins with.

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
    begins: Floats, ends: Floats, offsets: NDArray[np.int64], answer: int, taken: Sequence[Span]
) -> tuple[float, Span]:
    """The likeliest span of a window that has no character of those that were taken, and its log-probability."""
    width = min(answer, len(ends))
    more = np.full(width - 1, -np.inf)
    table = begins[:, None] + sliding_window_view(np.concatenate([ends, more]), width)  # begin, and length - 1
    last = sliding_window_view(np.concatenate([offsets[:, 1], np.zeros(width - 1, np.int64)]), width)
    for span in taken:
        table[(offsets[:, :1] < span.end) & (last > span.begin)] = -np.inf
    first, longer = divmod(int(table.argmax()), width)
    score = float(table[first, longer])
    if score == -np.inf:
        return score, Span(0, 0)
    return score, Span(int(offsets[first, 0]), int(offsets[first + longer, 1]))


def likelihoods(window: Window, scores: NDArray[np.float32]) -> tuple[Floats, Floats, float]:
    """Log-probabilities that the answer begins and ends at each piece of the paragraph, and that there is none.

    The probabilities of begin, and of end, add up to 1 over [CLS] and the paragraph: the question cannot answer.
    """
    seen = np.concatenate([scores[:1], scores[window.begin : window.end]]).astype(np.float64)  # (1 + pieces, 2)
    top = seen.max(axis=0)
    logs = seen - top - np.log(np.exp(seen - top).sum(axis=0))
    return logs[1:, 0], logs[1:, 1], float(logs[0].sum())
