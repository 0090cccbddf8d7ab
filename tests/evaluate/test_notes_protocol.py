"""CAPR's setting on clinical notes."""

import pytest

from capr.annotate.mentions import annotator
from capr.documents import CaprError, read
from capr.evaluate.notes import load
from capr.evaluate.split import is_test
from capr.evaluate.task import CANDIDATES

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
        one, other = DISEASES[number % 8], DISEASES[(number // 8 + 1) % 8]
        (folder / f"note{number}.txt").write_text(
            f"PAST MEDICAL HISTORY:\nThe patient number {number} has had {one} for the last ten years.\n\n"
            f"ASSESSMENT AND PLAN:\nWe treat the {other} of number {number} with the usual care at home.\n"
        )
    return folder


@pytest.fixture(scope="module")
def task(notes, finder):
    return load(read(notes), part="all", finder=finder)


def test_every_passage_is_asked_for_and_alone_answers(task):
    assert len(task.passages) == len(task.asked) == 100
    for asked in task.asked:
        assert asked.relevant == {asked.id}
        assert asked.id in asked.candidates
        assert len(asked.candidates) == len({*asked.candidates}) == CANDIDATES
        assert {*asked.candidates} <= task.passages.keys()


def test_the_true_passage_is_not_known_by_its_place(task):
    places = {asked.candidates.index(asked.id) for asked in task.asked}
    assert len(places) > 20


def test_candidates_are_the_same_by_the_same_seed(notes, task, finder):
    assert load(read(notes), part="all", finder=finder).asked == task.asked
    other = load(read(notes), part="all", seed=1, finder=finder)
    assert [a.candidates for a in other.asked] != [a.candidates for a in task.asked]
    assert {a.id for a in other.asked} == {a.id for a in task.asked}


def test_different_queries_have_different_candidates(task):
    assert len({frozenset(asked.candidates) for asked in task.asked}) == 100


def test_the_entity_is_the_usual_name(task):
    assert "hypertension" in task.entities
    assert "HTN" not in task.entities
    asked = next(a for a in task.asked if "HTN" in task.passages[a.id])
    assert asked.entity == "hypertension"


def test_the_heading_is_hidden_or_shown(notes, task, finder):
    shown = load(read(notes), shown=True, part="all", finder=finder)
    assert (task.name, shown.name) == ("notes, heading hidden", "notes, heading shown")
    assert not any("MEDICAL HISTORY" in text.upper() for text in task.passages.values())
    assert sum(text.upper().startswith("PAST MEDICAL HISTORY | ") for text in shown.passages.values()) == 50
    for id, text in shown.passages.items():
        assert text.endswith(" | " + task.passages[id])
    assert [a.candidates for a in shown.asked] == [a.candidates for a in task.asked]


def test_a_fifth_of_the_notes_is_the_test(notes, task, finder):
    tested = load(read(notes), finder=finder)
    assert tested.passages.keys() == {id for id in task.passages if is_test(id.rpartition(":")[0])}
    assert 0 < len(tested.passages) < 100
    for asked in tested.asked:
        assert len(asked.candidates) == min(CANDIDATES, len(tested.passages))


def test_too_few_notes_are_told(tmp_path, finder):
    (tmp_path / "a.txt").write_text("Nothing is the matter.")
    with pytest.raises(CaprError, match=r"have 0 passages to ask for\. Fix: "):
        load(read(tmp_path), part="all", finder=finder)


@pytest.mark.data
def test_mtsamples(data, finder):
    """957 with the tagger, which takes two minutes."""
    task = load(read(data / "mtsamples"), finder=finder)
    assert len(task.asked) == 958
    for asked in task.asked:
        assert len(asked.candidates) == CANDIDATES
        assert asked.id in asked.candidates
