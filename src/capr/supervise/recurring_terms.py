"""Questions from plain documents: a sentence with a blank, which the rest of the document fills.

A term that occurs several times in a document is removed from one sentence. The sentence becomes the question, the rest
of the document the report, and the other occurrences of the term the answers. From these a reader learns to find the
passage about the same thing, before it sees any question that a person asked.

Reference: Ram et al., Few-Shot Question Answering by Pretraining Span Selection (Splinter), 2021; here with sentences
as questions and one blank in each.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from capr.documents import Document, Span
from capr.segment import sentences
from capr.supervise.reports import Report, ReportQuestion
from capr.text.stopwords import stopwords

BLANK = "[MASK]"
WORD = re.compile(r"\w+(?:[-/.']\w+)*")
MAX_TERM_WORDS = 4
SENTENCE_WORDS = (6, 40)  # the minimum and the maximum in a sentence that becomes a question


def recurring_term_reports(
    documents: Iterable[Document], questions: int = 5, seed: int = 1, blank: str = BLANK
) -> Iterator[Report]:
    """Yield reports with up to `questions` questions each; documents without a recurring term yield none.

    The document of a report is new: the text without the sentences that became questions.

    Args:
        documents: any documents.
        questions: the maximum number of questions for a document.
        seed: the seed of all random choices.
        blank: replaces the term in a question; the mask token of the reader's tokenizer.
    """
    stop_words = stopwords()
    for document in documents:
        rng = random.Random(f"{seed} {document.id}")
        report = _report(document, questions, rng, blank, stop_words)
        if report.questions:
            yield report


def _report(document: Document, questions: int, rng: random.Random, blank: str, stop_words: frozenset[str]) -> Report:
    text = document.text
    sentence_terms = [(span, list(_terms(text, span, stop_words))) for span in sentences(text)]
    counts = Counter(term for _, terms in sentence_terms for term, _ in terms)
    draws: list[tuple[Span, str, Span]] = []
    rng.shuffle(
        order := [
            item
            for item in sentence_terms
            if SENTENCE_WORDS[0] <= len(WORD.findall(item[0].of(text))) <= SENTENCE_WORDS[1]
        ]
    )
    for size in range(MAX_TERM_WORDS, 0, -1):  # the parts of a recurring term recur as well
        for span, terms in order:
            own_counts = Counter(term for term, _ in terms)
            recurring_terms = [
                (term, term_span) for term, term_span in terms if own_counts[term] == 1 and counts[term] > 1
            ]
            recurring_terms = [item for item in recurring_terms if len(item[0].split()) == size]
            if recurring_terms and len(draws) < questions and all(span != other for other, _, _ in draws):
                draws.append((span, *rng.choice(recurring_terms)))
                counts -= own_counts  # the sentence is not part of the report
    rest_text, shifts = _without(text, [span for span, _, _ in draws])
    rest = Document(f"{document.id} spans", rest_text, document.title, document.metadata)
    answers: dict[str, list[Span]] = {term: [] for _, term, _ in draws}
    for span, terms in sentence_terms:
        if span.begin in shifts:
            for term, term_span in terms:
                if term in answers:
                    shift = shifts[span.begin]
                    answers[term].append(Span(term_span.begin - shift, term_span.end - shift))
    return Report(
        rest,
        tuple(
            ReportQuestion(f"{rest.id} {number}", _with_blank(text, span, term_span, blank), tuple(answers[term]))
            for number, (span, term, term_span) in enumerate(draws, 1)
            if answers[term]
        ),
    )


def _terms(text: str, sentence: Span, stop_words: frozenset[str]) -> Iterator[tuple[str, Span]]:
    """Yield the runs of words that may be a term, in lower case with single blanks, with their spans.

    Only white space separates the words of a term, and neither its first nor its last word is a stop word.
    """
    words = list(WORD.finditer(text, *sentence))
    for first, first_match in enumerate(words):
        for last in range(first, min(first + MAX_TERM_WORDS, len(words))):
            last_match = words[last]
            if last > first and text[words[last - 1].end() : last_match.start()].strip():
                break
            run = [word.group().lower() for word in words[first : last + 1]]
            min_letters = 3 if last > first else 5
            if all(
                len(word) >= min_letters and word not in stop_words and not word[0].isdecimal()
                for word in (run[0], run[-1])
            ):
                yield " ".join(run), Span(first_match.start(), last_match.end())


def _without(text: str, removed: Iterable[Span]) -> tuple[str, dict[int, int]]:
    """Remove sentences from the text; for each other sentence, return how far its start has moved."""
    removed_spans = sorted(removed)
    parts, position = [], 0
    for span in removed_spans:
        parts.append(text[position : span.begin])
        position = span.end
    parts.append(text[position:])
    remaining = [sentence for sentence in sentences(text) if sentence not in removed_spans]
    shifts = {
        sentence.begin: sum(span.end - span.begin for span in removed_spans if span.end <= sentence.begin)
        for sentence in remaining
    }
    return "".join(parts), shifts


def _with_blank(text: str, sentence: Span, term_span: Span, blank: str) -> str:
    """Replace the term in a sentence with a blank."""
    return text[sentence.begin : term_span.begin] + blank + text[term_span.end : sentence.end]
