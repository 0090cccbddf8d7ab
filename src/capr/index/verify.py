"""Verifies a library: everything is compared with everything that it was made from."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from capr.documents import CaprError, Document, Span
from capr.index.derived import DamagedError
from capr.index.digest import digest
from capr.index.filters import document_facts, passage_facts
from capr.index.lock import writer_lock
from capr.index.protocol import Grain, Stored
from capr.index.sentences import unpacked
from capr.index.tables import MODELS
from capr.index.vectors import FOLDERS, decoded

if TYPE_CHECKING:
    from capr.index.embedded import EmbeddedIndex, View

KEPT = 100
REPAIR = "run capr verify --repair, which makes it again from the documents"
ENCODE = "run capr verify --repair, which drops it, and then capr encode, which makes it again"
RESTORE = "restore library.db from a backup, or remove the document and add it again"


@dataclass
class Check:
    """What was found.

    Attributes:
        documents, passages, sentences, mentions, vectors: how many were compared.
        sentence_vectors: likewise.
        problems: what is wrong, the first hundred; nothing, if all is well.
        notices: what is not wrong, but not finished.
        repaired: derived indexes that were made again, and vectors that were dropped to be made again.
    """

    documents: int = 0
    passages: int = 0
    sentences: int = 0
    mentions: int = 0
    vectors: int = 0
    sentence_vectors: int = 0
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)

    def wrong(self, fact: str, fix: str) -> None:
        """Adds a problem."""
        if len(self.problems) < KEPT:
            self.problems.append(f"{fact}. Fix: {fix}.")


def verify(index: EmbeddedIndex, repair: bool = False, on_progress: Callable[[int, int], None] | None = None) -> Check:
    """Compares texts with their digests, spans with texts, facts and vectors with passages, derived indexes with all.

    The truth cannot be repaired, only restored; the derived indexes can be made again.
    """
    check = Check()
    index.view()  # brings the derived indexes up to date
    with _alone(index.folder) as alone, index.store.reading() as database:
        view = index.view()
        for (said,) in database.execute("PRAGMA integrity_check(10)"):
            if said != "ok":
                check.wrong(f"{index.store.file}: {said}", RESTORE)
        spans = _documents(index, check, on_progress)
        coded = {grain: _vectors(index, check, spans, grain) for grain in Grain}
        dropped = {grain: [n for n, code in codes.items() if code is None] for grain, codes in coded.items()}
        broken = []
        if not alone:
            check.notices.append("another process is writing, so that the derived indexes were not compared")
        elif view.behind:
            check.notices.append("the derived indexes are behind and were not compared")
        else:
            broken = _words(view, check, set(spans))
            for grain, codes in coded.items():
                broken += _derived_vectors(view, check, codes, grain)
    if repair and (broken or any(dropped.values())):
        with index.writing() as writer:
            for grain, some in dropped.items():
                if some:
                    writer.drop_vectors(grain, some)
            writer.commit()
        index.rebuild(*broken)
        again = verify(index, False, on_progress)
        again.repaired = broken + [f"vectors of {grain}" for grain, some in dropped.items() if some]
        return again
    return check


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether nobody changes the library meanwhile."""
    if not os.access(folder, os.W_OK):
        yield True
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(writer_lock(folder))
        except CaprError:
            yield False
        else:
            yield True


def _documents(index: EmbeddedIndex, check: Check, on_progress: Callable[[int, int], None] | None) -> dict[int, Span]:
    """Checks the documents; gives the spans of all passages by their numbers."""
    store = index.store
    (total,) = store.database.execute("SELECT COUNT(*) FROM document").fetchone()
    spans: dict[int, Span] = {}
    facts: Counter[str] = Counter()  # the sums of their checksums
    for number, document in store.documents():
        check.documents += 1
        (saved,) = store.database.execute("SELECT digest FROM document WHERE number = ?", (number,)).fetchone()
        if digest(document) != saved:
            check.wrong(f"the document {document.id!r} is not what was added", RESTORE)
        found = store.passages_of(number)
        facts["document"] += sum(_sum(*fact, number) for fact in document_facts(document))
        for one in found:
            facts["passage"] += sum(_sum(*f, one.number) for f in passage_facts(one.entry.aspect, one.entry.mentions))
        for fact in _spans(document, found, check):
            check.wrong(f"the document {document.id!r}: {fact}", RESTORE)
        spans.update((stored.number, stored.entry.passage.span) for stored in found)
        if on_progress:
            on_progress(check.documents, total)
    for of in ("document", "passage"):
        if sum(_sum(*row) for row in store.database.execute(f"SELECT * FROM {of}_fact")) != facts[of]:
            check.wrong(f"what {of}s are filtered by is not what they say", RESTORE)
    (saved,) = store.database.execute("SELECT COUNT(*) FROM passage").fetchone()
    if saved != len(spans):
        check.wrong(f"{saved - len(spans):,} passages belong to no document", RESTORE)
    return spans


def _sum(name: str, value: str, number: int) -> int:
    return zlib.crc32(f"{name}\t{value}\t{number}".encode())


def _spans(document: Document, found: list[Stored], check: Check) -> Iterator[str]:
    """What is wrong with the passages of a document."""
    position = 0
    for place, stored in enumerate(found):
        entry, passage = stored.entry, stored.entry.passage
        check.passages += 1
        check.sentences += len(passage.sentences)
        check.mentions += len(entry.mentions)
        if passage.index != place or passage.span.begin < position or document[passage.span] != entry.text:
            yield f"passage {place} does not stand at {passage.span.begin}"
        inside = [*passage.sentences, *(mention.span for mention in entry.mentions)]
        if passage.heading_span is not None:
            inside.append(passage.heading_span)
        if any(span.begin > span.end or not passage.span.covers(span) for span in inside):
            yield f"passage {place} has a sentence, heading or mention outside"
        position = passage.span.end
    if document.text[position:].strip():
        yield "there is text after its last passage"


def _vectors(index: EmbeddedIndex, check: Check, spans: dict[int, Span], grain: Grain) -> dict[int, bytes | None]:
    """Checks the vectors of the truth; gives them as their index should hold them, None for what is not sound."""
    store, dimensions = index.store, index.store.dimensions(grain)
    coded: dict[int, bytes | None] = {}
    for number, code in store.codes(grain):
        if number not in spans:
            wrong = "a vector belongs to no passage"
        elif grain is Grain.PASSAGES:
            wrong = _wrong_vector(code, dimensions, check)
        else:
            wrong = _wrong_sentences(code, dimensions, spans[number], check)
        if wrong:
            check.wrong(f"{wrong} (passage {number})", ENCODE)
        coded[number] = None if wrong else store.indexed(grain, code, dimensions)
    if dimensions and len(coded) < len(spans):
        of = "passages have no vector" if grain is Grain.PASSAGES else "passages have no vectors of sentences"
        check.notices.append(f"{len(spans) - len(coded):,} {of} yet; capr encode goes on")
    if unknown := store.unknown(grain):
        fact = f"which model made the vectors of {grain} ({unknown:,} passages) is not known any more"
        check.wrong(fact, f"capr encode {index.folder} --{MODELS[grain]} FOLDER, which makes them again")
    return coded


def _wrong_vector(code: bytes, dimensions: int, check: Check) -> str:
    check.vectors += 1
    length = float(np.linalg.norm(decoded(code))) if len(code) == dimensions + 4 else 0.0
    return "" if 0.9 < length < 1.1 else f"a vector has the length {length:.2f} and not 1"


def _wrong_sentences(code: bytes, dimensions: int, passage: Span, check: Check) -> str:
    try:
        spans = unpacked(code, dimensions).spans
    except ValueError as error:
        return str(error)
    check.sentence_vectors += len(spans)
    inside = all(span.begin < passage.end and passage.begin < span.end for span in spans)
    return "" if inside else "a sentence with a vector lies outside of its passage"


def _words(view: View, check: Check, numbers: set[int]) -> list[str]:
    """Checks the index of words; its name, if it is not what it should be."""
    damaged = view.words.damaged()
    for file in damaged:
        check.wrong(f"words/{file} is damaged", REPAIR)
    try:
        known = Counter(view.words.numbers())
    except DamagedError as error:
        check.wrong(f"the index of words cannot be read ({error})", REPAIR)
        return ["words"]
    if known.keys() != numbers or max(known.values(), default=1) > 1:
        missing, extra = len(numbers - known.keys()), len(known.keys() - numbers)
        check.wrong(f"the index of words lacks {missing:,} passages and has {extra:,} too many", REPAIR)
        return ["words"]
    return ["words"] if damaged else []


def _derived_vectors(view: View, check: Check, coded: dict[int, bytes | None], grain: Grain) -> list[str]:
    """Checks the index of the vectors of a grain; its name, if it is not what it should be."""
    vectors, name = view.vectors.get(grain), FOLDERS[grain]
    if vectors is None:
        if coded:
            check.wrong(f"the index of {name} is missing", REPAIR)
        return [name] if coded else []
    damaged = vectors.damaged()
    for file in damaged:
        check.wrong(f"{name}/{file} is damaged", REPAIR)
    rows = {int(number): row for row, number in enumerate(vectors.numbers)}
    same = len(rows) == len(vectors) and coded.keys() <= rows.keys()
    if same:
        for number, code in coded.items():
            row = rows[number]
            if code is not None and vectors.scales[row].tobytes() + vectors.codes[row].tobytes() != code:
                same = False
                break
    if not same:
        check.wrong(f"the index of {name} differs from the vectors", REPAIR)
    return [] if same and not damaged else [name]
