"""Verify a library: compare all stored data with its source."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from capr.documents import CaprError, Document, Span
from capr.documents.quantity import quantity
from capr.index.embedded.derived import DamagedError
from capr.index.embedded.lock import writer_lock
from capr.index.embedded.sentences import unpack, without_sum
from capr.index.embedded.space_names import WORDS, names_of
from capr.index.embedded.vectors import decode
from capr.index.filters import document_facts, passage_facts
from capr.index.records import StoredPassage, Verification
from capr.index.spaces import SPACES, Space
from capr.text.digest import digest

if TYPE_CHECKING:
    from capr.index.embedded.engine import EmbeddedIndex
    from capr.index.embedded.views import View

REPAIR = "run capr verify --repair, which rebuilds it from the documents"
ENCODE = "run capr verify --repair, which drops it, and then capr encode, which makes a new one"
RESTORE = "restore library.db from a backup, or remove the document and add it again"


def verify(
    index: EmbeddedIndex, repair: bool = False, on_progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Compare texts with digests, spans with texts, facts and vectors with passages, and derived indexes with all.

    Damaged documents can only be restored from a backup; the derived indexes can be rebuilt.
    """
    check = Verification()
    index.view()  # brings the derived indexes up to date
    with _lock_if_free(index.folder) as locked, index.store.reading() as database:
        view = index.view()
        for (message,) in database.execute("PRAGMA integrity_check(10)"):
            if message != "ok":
                check.wrong(f"{index.store.file}: {message}", RESTORE)
        spans = _documents(index, check, on_progress)
        codes_by_space = {space: _vectors(index, check, spans, space) for space in SPACES.values()}
        invalid = {space: [n for n, code in codes.items() if code is None] for space, codes in codes_by_space.items()}
        broken = []
        if not locked:
            check.notices.append("another process is writing, so the derived indexes were not compared")
        elif view.behind:
            check.notices.append("the derived indexes are behind and were not compared")
        else:
            broken = _words(view, check, set(spans))
            for space, codes in codes_by_space.items():
                broken += [] if space.is_packed else _derived_vectors(view, check, codes, space)
    if repair and (broken or any(invalid.values())):
        with index.writing() as writer:
            for space, numbers in invalid.items():
                if numbers:
                    writer.drop_vectors(space, numbers)
            writer.commit()
        index.rebuild(*broken)
        check = verify(index, False, on_progress)
        check.repaired = broken + [f"vectors of {space.name}" for space, numbers in invalid.items() if numbers]
    return check


@contextmanager
def _lock_if_free(folder: Path) -> Iterator[bool]:
    """Hold the write lock if possible; yield whether no other process can change the library meanwhile."""
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


def _documents(
    index: EmbeddedIndex, check: Verification, on_progress: Callable[[int, int], None] | None
) -> dict[int, Span]:
    """Check the documents; return the spans of all passages by number."""
    store = index.store
    (total,) = store.database.execute("SELECT COUNT(*) FROM document").fetchone()
    spans: dict[int, Span] = {}
    facts: Counter[str] = Counter()  # sums of checksums
    cuttings = store.cuttings()[::-1]  # most documents were cut in the last way
    for number, document in store.documents():
        check.documents += 1
        (saved,) = store.database.execute("SELECT digest FROM document WHERE number = ?", (number,)).fetchone()
        if saved not in (digest(document, cutting.as_json()) for cutting in cuttings):
            check.wrong(f"the document {document.id!r} differs from the document that was added", RESTORE)
        passages = store.passages_of(number)
        facts["document"] += sum(_sum(*fact, number) for fact in document_facts(document))
        for stored in passages:
            passage = passage_facts(stored.entry.aspect, stored.entry.mentions)
            facts["passage"] += sum(_sum(*fact, stored.order) for fact in passage)
        for fault in _spans(document, passages, check):
            check.wrong(f"the document {document.id!r}: {fault}", RESTORE)
        spans.update((stored.order, stored.entry.passage.span) for stored in passages)
        if on_progress:
            on_progress(check.documents, total)
    for kind in ("document", "passage"):
        if sum(_sum(*row) for row in store.database.execute(f"SELECT * FROM {kind}_fact")) != facts[kind]:
            check.wrong(f"the values that {kind}s are filtered by differ from the {kind}s", RESTORE)
    (saved,) = store.database.execute("SELECT COUNT(*) FROM passage").fetchone()
    if saved != len(spans):
        check.wrong(f"{quantity(saved - len(spans), 'passage')} without a document", RESTORE)
    return spans


def _sum(name: str, value: str, number: int) -> int:
    return zlib.crc32(f"{name}\t{value}\t{number}".encode())


def _spans(document: Document, passages: list[StoredPassage], check: Verification) -> Iterator[str]:
    """Yield the faults of a document's passages."""
    position = 0
    for index, stored in enumerate(passages):
        entry, passage = stored.entry, stored.entry.passage
        check.passages += 1
        check.sentences += len(passage.sentences)
        check.mentions += len(entry.mentions)
        if passage.index != index or passage.span.begin < position or document[passage.span] != entry.text:
            yield f"passage {index} does not begin at {passage.span.begin}"
        inside = [*passage.sentences, *(mention.span for mention in entry.mentions)]
        if passage.heading_span is not None:
            inside.append(passage.heading_span)
        if any(span.begin > span.end or not passage.span.covers(span) for span in inside):
            yield f"passage {index} has a sentence, heading or mention outside"
        position = passage.span.end
    if document.text[position:].strip():
        yield "there is text after its last passage"


def _vectors(
    index: EmbeddedIndex, check: Verification, spans: dict[int, Span], space: Space
) -> dict[int, bytes | None]:
    """Check the vectors in the database; return their codes for the vector index, None for an invalid vector.

    A packed space has no vector index; its codes are returned as they are.
    """
    store, dimensions = index.store, index.store.dimensions(space)
    codes: dict[int, bytes | None] = {}
    for number, code in store.codes(space):
        if number not in spans:
            fault = "a vector belongs to no passage"
        elif not space.aggregation:
            fault = _vector_fault(code, dimensions, check)
        elif space.is_packed:
            fault = _packed_fault(code, dimensions, check)
        else:
            fault = _parts_fault(code, dimensions, spans[number], check)
        if fault:
            check.wrong(f"{fault} (passage {number})", ENCODE)
        codes[number] = None if fault else code if space.is_packed else store.index_code(space, code, dimensions)
    if dimensions and len(codes) < len(spans):
        kind = f"there are no vectors of {space.name}" if space.aggregation else "there is no vector"
        passages = quantity(len(spans) - len(codes), "passage")
        check.notices.append(f"{kind} for {passages} yet; capr encode adds them")
    if unknown := store.unknown(space):
        fact = f"the model of the vectors of {space.name} ({quantity(unknown, 'passage')}) is not known"
        check.wrong(fact, f"run capr encode {index.folder} --{space.model} FOLDER, which makes new ones")
    return codes


def _vector_fault(code: bytes, dimensions: int, check: Verification) -> str:
    check.vectors += 1
    length = float(np.linalg.norm(decode(code))) if len(code) == dimensions + 4 else 0.0
    return "" if 0.9 < length < 1.1 else f"a vector has the length {length:.2f} instead of 1"


def _parts_fault(code: bytes, dimensions: int, passage: Span, check: Verification) -> str:
    try:
        spans = unpack(code, dimensions).spans
    except ValueError as error:
        return str(error)
    check.sentence_vectors += len(spans)
    inside = all(span.begin < passage.end and passage.begin < span.end for span in spans)
    return "" if inside else "a sentence with a vector lies outside its passage"


def _packed_fault(code: bytes, dimensions: int, check: Verification) -> str:
    try:
        vectors = len(without_sum(code)) / (dimensions // 2)
    except ValueError as error:
        return str(error)
    check.piece_vectors += int(vectors)
    return "" if vectors == int(vectors) else f"a code has {len(code)} bytes, which no vectors of its model have"


def _words(view: View, check: Verification, numbers: set[int]) -> list[str]:
    """Check the word index; return its name if it has to be rebuilt."""
    damaged = view.words.damaged()
    for file in damaged:
        check.wrong(f"words/{file} is damaged", REPAIR)
    try:
        indexed = Counter(view.words.numbers())
    except DamagedError as error:
        check.wrong(f"the word index cannot be read ({error})", REPAIR)
        return [WORDS]
    if indexed.keys() != numbers or max(indexed.values(), default=1) > 1:
        missing, extra = len(numbers - indexed.keys()), len(indexed.keys() - numbers)
        check.wrong(f"the word index lacks {quantity(missing, 'passage')} and has {extra:,} too many", REPAIR)
        return [WORDS]
    return [WORDS] if damaged else []


def _derived_vectors(view: View, check: Verification, codes: dict[int, bytes | None], space: Space) -> list[str]:
    """Check the vector index of a space; return its name if it has to be rebuilt."""
    vectors, name = view.vectors.get(space), names_of(space).folder
    if vectors is None:
        if codes:
            check.wrong(f"the index of {name} is missing", REPAIR)
        return [name] if codes else []
    damaged = vectors.damaged()
    for file in damaged:
        check.wrong(f"{name}/{file} is damaged", REPAIR)
    rows = {int(number): row for row, number in enumerate(vectors.numbers)}
    same = len(rows) == len(vectors) and codes.keys() <= rows.keys()
    if same:
        for number, code in codes.items():
            row = rows[number]
            if code is not None and vectors.scales[row].tobytes() + vectors.codes[row].tobytes() != code:
                same = False
                break
    if not same:
        check.wrong(f"the index of {name} differs from the vectors", REPAIR)
    return [] if same and not damaged else [name]
