"""Filters as users write them."""

import pytest

from capr.annotate import Concept, Mention
from capr.annotate.context import FLAGS, Cue
from capr.documents import CaprError, Document, Span
from capr.index import Filters
from capr.index.filters import ASPECT, DAY, ENTITY, ID, comparable, day_of, document_facts, passage_facts


def describe(user_filters):
    filters = Filters.of(user_filters)
    conditions = [(c.name, *sorted(c.values), *(["not"] if c.exclude else [])) for c in filters.conditions]
    return conditions, filters.since, filters.until


@pytest.mark.parametrize(
    ("user_filters", "expected"),
    [
        (None, []),
        ({}, []),
        ("patient=p1", [("patient", "p1")]),
        (["patient=p1", "patient=p2"], [("patient", "p1", "p2")]),
        ({"patient": ["p1", "p2"]}, [("patient", "p1", "p2")]),
        ({"patient": ("p1", "p2")}, [("patient", "p1", "p2")]),
        ({"patient": 7}, [("patient", "7")]),
        (["patient!=p1"], [("patient", "p1", "not")]),
        (["patient=p1", "patient!=p2"], [("patient", "p1"), ("patient", "p2", "not")]),
        ("type=Discharge Summary", [("type", "discharge summary")]),
        ("Type=x", [("type", "x")]),
        (" type = x ", [("type", "x")]),
        ("type=a=b", [("type", "a=b")]),
        ("Ward=North", [("ward", "north")]),
        ("patient=P1", [("patient", "P1")]),
        ("id=N1", [(ID, "N1")]),
        ("section=PMHx", [(ASPECT, "past medical history")]),
        ("aspect=Physical Exam", [(ASPECT, "physical examination")]),
        ("date=yesterday", [("date", "yesterday")]),
        ("date=2024-13", [("date", "2024-13")]),
        ("date=2024-01-32", [("date", "2024-01-32")]),
    ],
)
def test_conditions(user_filters, expected):
    assert describe(user_filters) == (expected, "", "")


@pytest.mark.parametrize(
    ("date", "since", "until"),
    [
        ("2023-01-31", "2023-01-31", "2023-01-31"),
        ("2023-02", "2023-02-01", "2023-02-31"),
        ("2023", "2023-01-01", "2023-12-31"),
        ("2023..", "2023-01-01", ""),
        ("..2023-06", "", "2023-06-31"),
        (" 2023-02-03 .. 2024 ", "2023-02-03", "2024-12-31"),
    ],
)
def test_dates(date, since, until):
    assert describe({"date": date}) == ([], since, until)
    assert describe([f"date={date}"]) == ([], since, until)


def test_several_dates_are_alternatives():
    filters = Filters.of({"date": ["2023-01", "2024.."]})
    assert filters
    assert filters.periods == (("2023-01-01", "2023-01-31"), ("2024-01-01", "9999-99-99"))
    within = filters & Filters.of("date=2023-01-15..2024-06")
    assert within.periods == (("2023-01-15", "2023-01-31"), ("2024-01-01", "2024-06-31"))


def test_values_can_be_read_from_a_file(tmp_path):
    file = tmp_path / "patients.txt"
    file.write_text("\ufeffp1\n\n  p2  \r\np3", "utf-8")
    assert describe([f"patient=@{file}", "patient=p9"])[0] == [("patient", "p1", "p2", "p3", "p9")]
    assert describe([f"patient!=@{file}"])[0] == [("patient", "p1", "p2", "p3", "not")]
    assert describe({"patient": f"@{file}"})[0] == [
        ("patient", f"@{file}")
    ]  # a mapping comes from a program, for which capr reads no file


def test_dates_can_be_excluded():
    filters = Filters.of(["date!=2023", "date!=2024-02.."])
    assert filters
    assert (filters.periods, filters.not_days) == ((), (("2023-01-01", "2023-12-31"), ("2024-02-01", "9999-99-99")))


@pytest.mark.parametrize("content", [None, b"", b" \n\n", b"\xff\xfe\xff"])
def test_a_file_without_values_is_an_error(tmp_path, content):
    file = tmp_path / "patients.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CaprError, match=rf"{file}: .*Fix: "):
        Filters.of(f"patient=@{file}")


@pytest.mark.parametrize(
    "user_filters",
    [
        "patient",
        "=p1",
        "!=p1",
        "patient=",
        "patient= ",
        "date=a..b",
        "date=..",
        "date=2024-01..2024-13",
        "without=tall",
        {"without": 1},
    ],
)
def test_invalid_filters_are_errors(user_filters):
    with pytest.raises(CaprError, match=r"Fix: "):
        Filters.of(user_filters)


def test_a_period_must_not_end_before_it_begins():
    with pytest.raises(CaprError, match=r"the period ends before it begins\. Fix: write 2024-01\.\.2024-06\."):
        Filters.of("date=2024-06..2024-01")
    assert Filters.of({"date": "2024-06..2024-01"}, strict=False).since == "2024-06-01"
    assert Filters.of("date=2024-06..2024").until == "2024-12-31"


def test_without_excludes_properties_of_a_mention():
    assert Filters.of(["without=negated", "without=family"]).without == {"negated", "family"}
    assert Filters.of({"without": FLAGS}).without == {*FLAGS}
    assert not Filters.of("without=negated")
    assert Filters.of("without=negated").about(["C1"])


def test_filters_of_filters_are_the_same():
    for user_filters in (["patient=p1", "date=2023", "without=negated"], ["without=negated"], ["date=2023"], []):
        filters = Filters.of(user_filters)
        assert Filters.of(filters) == filters


def test_joined_filters_require_both():
    joined = Filters.of(["patient=p1", "date=2023"]) & Filters.of(["patient=p2", "date=2023-06..", "without=negated"])
    assert [sorted(c.values) for c in joined.conditions] == [["p1"], ["p2"]]
    assert (joined.since, joined.until, joined.without) == ("2023-06-01", "2023-12-31", {"negated"})
    assert Filters() & joined == joined & Filters() == joined


def test_the_values_of_an_entity_cover_all_combinations_of_properties():
    assert len(Filters(entities=("C1",)).entity_values) == 2 ** len(FLAGS)
    assert len(Filters(entities=("C1", "C2"), without=frozenset({"negated"})).entity_values) == 2 ** len(FLAGS)
    assert Filters(entities=("C1",), without=frozenset(FLAGS)).entity_values == {"C1 0"}


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("2023-05-06", "2023-05-06"),
        ("2023-05-06T10:00:00Z", "2023-05-06"),
        ("2023-05", "2023-05-01"),
        ("2023", "2023-01-01"),
        ("", ""),
        ("May 2023", ""),
        ("12345", ""),
        ("20230506", ""),
    ],
)
def test_the_day_of_a_date(date, day):
    assert day_of(date) == day


def test_the_facts_of_a_document_are_its_metadata_its_id_and_its_day():
    metadata = {
        "patient": " P1 ",
        "type": "Letter",
        "tags": ["X", "y", "X"],
        "age": 7,
        "none": None,
        "nested": {"a": 1},
    }
    assert set(document_facts(Document("N1", "", "", metadata | {"date": "2023-05", "empty": " "}))) == {
        (ID, "N1"),
        ("patient", "P1"),
        ("type", "letter"),
        ("tags", "x"),
        ("tags", "y"),
        ("age", "7"),
        ("date", "2023-05"),
        (DAY, "2023-05-01"),
    }


def test_facts_and_filters_have_the_same_comparable_values():
    for name, value in [("type", " Straße "), ("patient", " P1 "), ("section", "PMHx:"), ("größe", "İ")]:
        (condition,) = Filters.of({name: value}).conditions
        assert condition.values == {comparable(condition.name, value)}


def test_facts_of_a_passage_are_its_aspect_and_its_entities():
    concept = Concept("C1", "disease", "Gout")
    cue = {"family": Cue("family", "father", None, Span(0, 9))}
    mentions = [Mention(Span(0, 4), "disease", concept, ("vocabulary",), cue), Mention(Span(5, 9), "disease", None, ())]
    assert set(passage_facts("plan", mentions)) == {(ASPECT, "plan"), (ENTITY, f"C1 {1 << FLAGS.index('family')}")}
    assert list(passage_facts("", [])) == []
