"""CAPR's MIMIC setting on any clinical notes: each passage gives a query with 64 candidates.

The labels of a passage give its query. The candidates are this passage, which alone is relevant, and 63 random others.
A passage's heading is hidden from the models, or shown as a library shows it. The entity is a disease that the passage
mentions, by its usual name (`hypertension`), not by the words of the note (`HTN`).

Reference: Grundmann et al. (CAPR), section 4.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from capr.annotate.mentions import Annotator, annotator
from capr.documents import CaprError, Document
from capr.documents.quantity import quantity
from capr.evaluate.protocol import CandidateProtocol, ReadDocuments
from capr.evaluate.task import CANDIDATES, Task, TaskQuery
from capr.models.family import option
from capr.segment import with_labels
from capr.supervise.labels import Labeller, Labels
from capr.supervise.split import is_test


@dataclass(frozen=True, kw_only=True)
class Notes(CandidateProtocol):
    """Clinical notes as in CAPR: a query per passage from its own labels, with that passage and 63 random others.

    --data is notes in any format. bm25-top and tfidf-top drop candidates outside the best 64 of all passages.

    Example: capr evaluate notes --data notes.jsonl --model bm25
    """

    shown: bool = option(False, "Whether models see a passage's heading.", name="--shown/--hidden")
    part: str = option("test", "test (a fifth of the notes) or all.", choices=("test", "all"))
    seed: int = option(0, "The seed of the random queries and candidates.")
    format: str | None = option(None, "Default: recognised by content and name; see capr read.", metavar="FORMAT")
    column: tuple[str, ...] = option((), "For tables and JSON Lines: see capr read.", metavar="FIELD=NAME")

    def task(self, read: ReadDocuments) -> Task:
        return load(read(self.data, self.format, self.column), self.shown, self.part, self.seed)


def load(
    documents: Iterable[Document],
    shown: bool = False,
    part: str = "test",
    seed: int = 0,
    finder: Annotator | None = None,
) -> Task:
    """Make the test from notes.

    Args:
        documents: the notes.
        shown: whether models see a passage's own heading.
        part: `test` for a fifth of the notes, by their ids; `all` for all.
        seed: the seed of the random labels and candidates.
        finder: the annotator that finds mentions; the default uses the built-in vocabulary.
    """
    labeller = Labeller(finder or annotator(with_tagger=False), ("mentions",))
    vocabulary = labeller.annotator.gazetteer.vocabulary
    passages: dict[str, str] = {}
    labels: dict[str, Labels] = {}
    diseases: dict[str, list[str]] = {}
    for document in documents:
        if part == "test" and not is_test(document.id):
            continue
        for passage_labels in labeller.labels(document):
            id = f"{document.id}:{passage_labels.span.begin}"
            concepts = [vocabulary.by_code(code) for code, _ in passage_labels.entities]
            diseases[id] = [concept.name for concept in concepts if concept is not None and concept.kind == "disease"]
            if not diseases[id]:
                continue
            passages[id] = with_labels(passage_labels.text, passage_labels.heading) if shown else passage_labels.text
            labels[id] = passage_labels
    if len(passages) < 2:
        fix = "name more notes with headings, use --part all, or name the column of the text with --column"
        fact = f"the notes have {quantity(len(passages), 'passage')} with a query, and the test needs 2"
        raise CaprError(f"{fact}. Fix: {fix}.")
    ids = sorted(passages)
    queries = []
    for id in ids:
        rng = random.Random(f"{seed} {id}")
        entity = rng.choice(diseases[id])
        aspect, heading = rng.choice(labels[id].aspects)
        other_ids = rng.sample([other_id for other_id in ids if other_id != id], min(CANDIDATES - 1, len(ids) - 1))
        candidates = [id, *other_ids]
        rng.shuffle(candidates)
        groups = {"aspect": aspect}
        queries.append(TaskQuery(id, entity, heading, "", frozenset([id]), tuple(candidates), groups))
    return Task(f"notes, heading {'shown' if shown else 'hidden'}", passages, queries)
