"""The first hits are the same for every k."""

import random

import pytest
from reference import encoder_folder, late_folder, ranker_folder

from capr.documents import Document

WORDS = "fever cough rash gout asthma pain wheeze edema stroke angina nausea sepsis".split()
QUERIES = ("fever and cough", "gout pain", "sepsis", "no such words")


@pytest.fixture(scope="module")
def notes():
    """700 passages of 350 documents of 40 patients."""
    rng = random.Random(0)
    notes = []
    for number in range(350):
        text = "\n\n".join(f"{heading}: {' '.join(rng.choices(WORDS, k=6))}." for heading in ("HISTORY", "PLAN"))
        notes.append(Document(f"n{number}", text, "Note", {"patient": f"p{number % 40}"}))
    return notes


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        "plain": encoder_folder(folder / "plain"),
        "late": late_folder(folder / "late"),
        "ranker": ranker_folder(folder / "ranker"),
    }


@pytest.mark.parametrize("group", [None, "document", "patient"])
@pytest.mark.parametrize("encoder", ["plain", "late"])
def test_the_first_hits_do_not_depend_on_k(opened, models, notes, encoder, group):
    library = opened(encoder=models[encoder], ranker=models["ranker"])
    library.add(notes)
    for mode in ("hybrid", "lexical", "dense"):
        for rerank in (False, True):
            for query in QUERIES:
                all_hits = list(library.search(query, 700, mode=mode, rerank=rerank, group=group))
                assert [hit.score for hit in all_hits] == sorted((hit.score for hit in all_hits), reverse=True)
                keys = [(hit.document, hit.passage.index) for hit in all_hits]
                assert len(set(keys)) == len(keys)
                for k in (1, 3, 10, 60, 150, 400):
                    assert list(library.search(query, k, mode=mode, rerank=rerank, group=group)) == all_hits[:k]


def test_many_hits_come_from_deeper_stages(opened, models, notes):
    library = opened(encoder=models["plain"], ranker="none")
    library.add(notes)
    assert len(library.search("fever", 700, mode="dense")) == 700
    assert len(library.search("fever", 350, mode="dense", group="document")) == 350
    hits = list(library.search("fever", 350, mode="hybrid"))
    assert len(hits) == 350
    assert all(hit.stages.keys() - {"fusion"} for hit in hits)
    assert max(hit.stages["dense"].rank for hit in hits if "dense" in hit.stages) > 100
