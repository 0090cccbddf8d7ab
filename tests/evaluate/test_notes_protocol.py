"""CAPR's setting on clinical notes."""

import pytest

from capr.annotate.mentions import annotator
from capr.documents import CaprError, read
from capr.evaluate.notes import load
from capr.evaluate.task import CANDIDATES
from capr.supervise.split import is_test

DISEASES = ("HTN", "asthma", "pneumonia", "gout", "migraine", "psoriasis", "epilepsy", "anemia")
NAMES = {"hypertension", *DISEASES[1:]} - {"HTN"}


@pytest.fixture(scope="module")
def finder():
    return annotator(with_tagger=False)


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """50 notes with two sections that name a disease each."""
    folder = tmp_path_factory.mktemp("notes")
    for number in range(50):
        disease, other_disease = DISEASES[number % 8], DISEASES[(number // 8 + 1) % 8]
        (folder / f"note{number}.txt").write_text(
            f"PAST MEDICAL HISTORY:\nThe patient number {number} has had {disease} for the last ten years.\n\n"
            f"ASSESSMENT AND PLAN:\nWe treat the {other_disease} of number {number} with the usual care at home.\n"
        )
    return folder


@pytest.fixture(scope="module")
def task(notes, finder):
    return load(read(notes), part="all", finder=finder)


def test_every_passage_has_a_query_and_only_it_is_relevant(task):
    assert len(task.passages) == len(task.queries) == 100
    for query in task.queries:
        assert query.relevant == {query.id}
        assert query.id in query.candidates
        assert len(query.candidates) == len({*query.candidates}) == CANDIDATES
        assert {*query.candidates} <= task.passages.keys()


def test_the_relevant_passage_is_at_a_random_position(task):
    positions = {query.candidates.index(query.id) for query in task.queries}
    assert len(positions) > 20


def test_the_same_seed_gives_the_same_candidates(notes, task, finder):
    assert load(read(notes), part="all", finder=finder).queries == task.queries
    other = load(read(notes), part="all", seed=1, finder=finder)
    assert [query.candidates for query in other.queries] != [query.candidates for query in task.queries]
    assert {query.id for query in other.queries} == {query.id for query in task.queries}


def test_different_queries_have_different_candidates(task):
    assert len({frozenset(query.candidates) for query in task.queries}) == 100


def test_the_entity_is_the_usual_name(task):
    assert "hypertension" in task.entities
    assert "HTN" not in task.entities
    query = next(query for query in task.queries if "HTN" in task.passages[query.id])
    assert query.entity == "hypertension"


def test_the_heading_is_hidden_or_shown(notes, task, finder):
    shown = load(read(notes), shown=True, part="all", finder=finder)
    assert (task.name, shown.name) == ("notes, heading hidden", "notes, heading shown")
    assert not any("MEDICAL HISTORY" in text.upper() for text in task.passages.values())
    assert sum(text.upper().startswith("PAST MEDICAL HISTORY | ") for text in shown.passages.values()) == 50
    for id, text in shown.passages.items():
        assert text.endswith(" | " + task.passages[id])
    assert [query.candidates for query in shown.queries] == [query.candidates for query in task.queries]


def test_a_fifth_of_the_notes_is_the_test(notes, task, finder):
    tested = load(read(notes), finder=finder)
    assert tested.passages.keys() == {id for id in task.passages if is_test(id.rpartition(":")[0])}
    assert 0 < len(tested.passages) < 100
    for query in tested.queries:
        assert len(query.candidates) == min(CANDIDATES, len(tested.passages))


def test_too_few_notes_are_reported(tmp_path, finder):
    (tmp_path / "a.txt").write_text("Nothing is the matter.")
    with pytest.raises(CaprError, match=r"have 0 passages with a query, and the test needs 2\. Fix: "):
        load(read(tmp_path), part="all", finder=finder)


@pytest.mark.data
def test_mtsamples(data, finder):
    """The tagger would take two minutes and give 957 queries."""
    task = load(read(data / "mtsamples"), finder=finder)
    assert len(task.queries) == 958
    for query in task.queries:
        assert len(query.candidates) == CANDIDATES
        assert query.id in query.candidates
