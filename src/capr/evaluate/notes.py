"""CAPR's MIMIC setting on any clinical notes: a query per passage from its own labels, and 64 candidates at random.

Reference: Grundmann et al. (CAPR), section 4: 63 passages drawn at random and the true one. Only that one counts as
the answer. A passage's heading is hidden from the models, or shown as a library shows it. The entity is a disease that
the passage speaks of, by the name that a user would know (`hypertension`) rather than the words of the note (`HTN`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from capr.annotate.mentions import Annotator, annotator
from capr.documents import CaprError, Document
from capr.evaluate.split import is_test
from capr.evaluate.task import CANDIDATES, Asked, Task
from capr.segment import under
from capr.supervise.labels import Labeller, Labels


def load(
    documents: Iterable[Document], shown: bool = False, part: str = "test", seed: int = 0,
    finder: Annotator | None = None,
) -> Task:  # fmt: skip
    """The test.

    Args:
        documents: notes.
        shown: whether models see a passage's own heading.
        part: `test` for a fifth of the notes, by their ids; `all` for all.
        seed: of the labels and candidates that are drawn.
        finder: of mentions; the vocabulary that ships if None.
    """
    labeller = Labeller(finder or annotator(with_tagger=False), ("mentions",))
    vocabulary = labeller.annotator.gazetteer.vocabulary
    passages: dict[str, str] = {}
    labels: dict[str, Labels] = {}
    diseases: dict[str, list[str]] = {}
    for document in documents:
        if part == "test" and not is_test(document.id):
            continue
        for found in labeller.labels(document):
            id = f"{document.id}:{found.span.begin}"
            named = [vocabulary.by_code(code) for code, _ in found.entities]
            diseases[id] = [concept.name for concept in named if concept is not None and concept.kind == "disease"]
            if not diseases[id]:
                continue
            passages[id] = under(found.text, found.heading) if shown else found.text
            labels[id] = found
    if len(passages) < 2:
        fix = "name more notes with headings, test on all of them, or say with --column what holds their text"
        raise CaprError(f"the notes have {len(passages)} passages to ask for. Fix: {fix}.")
    ids = sorted(passages)
    asked = []
    for id in ids:
        draw = random.Random(f"{seed} {id}")
        entity = draw.choice(diseases[id])
        aspect, heading = draw.choice(labels[id].aspects)
        others = draw.sample([other for other in ids if other != id], min(CANDIDATES - 1, len(ids) - 1))
        listed = [id, *others]
        draw.shuffle(listed)
        groups = {"aspect": aspect}
        asked.append(Asked(id, entity, heading, "", frozenset([id]), tuple(listed), groups))
    return Task(f"notes, heading {'shown' if shown else 'hidden'}", passages, asked)
