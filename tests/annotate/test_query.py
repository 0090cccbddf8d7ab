import pytest
from hypothesis import given
from hypothesis import strategies as st

from capr.annotate import Concept, Query, Vocabulary
from capr.documents import CaprError
from capr.segment.aspects import heading


def test_wording_for_search():
    assert Query("What helps?").wording == "What helps?"
    assert Query(entity="gout").wording == "gout"
    assert Query(entity="gout", aspect="risk").wording == "What are the risk factors of gout?"
    assert Query(entity="gout", aspect="Dawn Song").wording == "What are the dawn song of gout?"
    assert Query(aspect="PMHx").wording == "past medical history"


def test_all_wordings():
    wordings = Query(entity="gout", aspect="Risk").wordings()
    assert len(wordings) == len({*wordings})
    assert wordings[0] == Query(entity="gout", aspect="risk").wording
    assert {"gout ; risk factors", "gout: risk", "risk of gout"} <= {*wordings}
    assert Query(entity="gout", aspect="treatment").wordings() == [
        "What are the treatments of gout?",
        "How is gout treated?",
        "What are the treatment of gout?",
        "gout ; treatment",
        "treatment of gout",
        "gout: treatment",
        "gout treatment",
    ]
    assert Query("x").wordings() == ["x"]
    assert Query(entity="{aspect}", aspect="{entity}").wording == "What are the {entity} of {aspect}?"


@pytest.mark.parametrize(
    ("query", "wordings"),
    [
        (Query(text=" ", entity="gout"), ["gout"]),
        (Query(text="\n", aspect="risk"), ["risk factors"]),
        (Query(entity=" ", aspect="risk"), ["risk factors"]),
        (Query(entity="gout", aspect=" "), ["gout"]),
        (Query(" what helps? "), ["what helps?"]),
    ],
)
def test_blank_fields_count_as_empty(query, wordings):
    assert query.wordings() == wordings


@pytest.mark.parametrize(
    "arguments",
    [{}, {"text": " "}, {"text": "a", "entity": "b"}, {"text": "a", "aspect": "b"}, {"entity": " ", "aspect": "\t"}],
)
def test_query_needs_either_a_text_or_a_pair(arguments):
    with pytest.raises(CaprError, match=r"either a text or an entity .*\. Fix: give a text, or an entity"):
        Query(**arguments)


@given(st.text(), st.text(), st.text())
def test_every_query_has_a_wording(text, entity, aspect):
    if bool(text.strip()) != bool(entity.strip() or aspect.strip()):
        query = Query(text, entity, aspect)
        assert query.wording == query.wordings()[0]
        assert all(words.strip() for words in query.wordings())


def test_synonyms_of_the_entity():
    assert Query(entity="heart attack").synonyms()[0] == "myocardial infarction"
    assert (
        Query(entity="zorblax").synonyms() == Query("heart attack").synonyms() == Query(aspect="risk").synonyms() == []
    )
    assert Query(entity="a").synonyms(Vocabulary(added=[Concept("L:1", "t", "a", ("b",))])) == ["b"]


def test_usual_headings():
    assert (heading("risk"), heading("Risk Factors:"), heading("ABC")) == ("risk factors", "risk factors", "abc")
