"""Questions out of plain documents: a sentence with a blank, which other places of the document fill.

A term that stands in several places of a document is taken out of one sentence. The sentence becomes the question, the
rest of the document the report, and the term's other places the answers. What a reader learns from that is to look for
the place that speaks of the same thing, before it has seen any question that a person asked.

Reference: Ram et al., Few-Shot Question Answering by Pretraining Span Selection (Splinter), 2021; here with sentences
as questions and one blank in each.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from capr.documents import Document, Span
from capr.search.parse import stopwords
from capr.segment import sentences
from capr.supervise.reports import Asked, Report

BLANK = "[MASK]"
WORD = re.compile(r"\w+(?:[-/.']\w+)*")
LONGEST = 4  # words of a term
WORDS = (6, 40)  # of a sentence that can become a question


def recurring(documents: Iterable[Document], questions: int = 5, seed: int = 1, blank: str = BLANK) -> Iterator[Report]:
    """Reports with so many questions each, at most; documents in which no term recurs give none.

    A report is a document of its own: the text without the sentences that became questions.

    Args:
        documents: any.
        questions: of each.
        seed: of what is drawn.
        blank: what stands for the term in a question, the mask of the reader's tokenizer.
    """
    ordinary = stopwords()
    for document in documents:
        draw = random.Random(f"{seed} {document.id}")
        report = _report(document, questions, draw, blank, ordinary)
        if report.questions:
            yield report


def _report(document: Document, questions: int, draw: random.Random, blank: str, ordinary: frozenset[str]) -> Report:
    text = document.text
    found = [(span, list(_terms(text, span, ordinary))) for span in sentences(text)]
    often = Counter(term for _, terms in found for term, _ in terms)
    chosen: list[tuple[Span, str, Span]] = []
    draw.shuffle(order := [one for one in found if WORDS[0] <= len(WORD.findall(one[0].of(text))) <= WORDS[1]])
    for size in range(LONGEST, 0, -1):  # the parts of a term that recurs recur as well
        for span, terms in order:
            own = Counter(term for term, _ in terms)
            known = [(term, place) for term, place in terms if own[term] == 1 and often[term] > 1]
            known = [one for one in known if len(one[0].split()) == size]
            if known and len(chosen) < questions and all(span != other for other, _, _ in chosen):
                chosen.append((span, *draw.choice(known)))
                often -= own  # the sentence is no part of the report
    kept, places = _without(text, [span for span, _, _ in chosen])
    rest = Document(f"{document.id} spans", kept, document.title, document.metadata)
    answers: dict[str, list[Span]] = {term: [] for _, term, _ in chosen}
    for span, terms in found:
        if span.begin in places:
            for term, place in terms:
                if term in answers:
                    shift = places[span.begin]
                    answers[term].append(Span(place.begin - shift, place.end - shift))
    return Report(rest, tuple(
        Asked(f"{rest.id} {number}", _blanked(text, span, place, blank), tuple(answers[term]))
        for number, (span, term, place) in enumerate(chosen, 1)
        if answers[term]
    ))  # fmt: skip


def _terms(text: str, sentence: Span, ordinary: frozenset[str]) -> Iterator[tuple[str, Span]]:
    """The runs of words that may be a term, as they are compared, with their places.

    Only blanks stand between their words, and neither the first nor the last word is an ordinary one.
    """
    words = list(WORD.finditer(text, *sentence))
    for first, begin in enumerate(words):
        for last in range(first, min(first + LONGEST, len(words))):
            end = words[last]
            if last > first and text[words[last - 1].end() : end.start()].strip():
                break
            said = [word.group().lower() for word in words[first : last + 1]]
            least = 3 if last > first else 5  # letters
            if all(len(w) >= least and w not in ordinary and not w[0].isdecimal() for w in (said[0], said[-1])):
                yield " ".join(said), Span(begin.start(), end.end())


def _without(text: str, left_out: Iterable[Span]) -> tuple[str, dict[int, int]]:
    """The text without some of its sentences; for each other sentence, how far its begin has moved."""
    out = sorted(left_out)
    parts, place = [], 0
    for span in out:
        parts.append(text[place : span.begin])
        place = span.end
    parts.append(text[place:])
    others = [sentence for sentence in sentences(text) if sentence not in out]
    moved = {one.begin: sum(span.end - span.begin for span in out if span.end <= one.begin) for one in others}
    return "".join(parts), moved


def _blanked(text: str, sentence: Span, place: Span, blank: str) -> str:
    """A sentence with a blank instead of a term."""
    return text[sentence.begin : place.begin] + blank + text[place.end : sentence.end]
