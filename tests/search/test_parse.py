"""The query language: operators, filters, entities, and any other text."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capr.annotate import Query
from capr.annotate.mentions import annotator
from capr.index.filters import ASPECT, ID, Condition
from capr.search.parse import EVERYWHERE, MOST, Parser
from capr.text.stopwords import stopwords

ATTACK = "MESH:D009203"
FEVER = "MESH:D005334"


@pytest.fixture(scope="module")
def parser():
    return Parser(
        annotator(with_tagger=False).gazetteer, {"ward", "tags"}.__contains__, lambda words: [0.0] * len(words)
    )


@pytest.fixture(scope="module")
def parse(parser):
    return lambda text: parser.parse(Query(text))


def words(parsed, occur="should"):
    """Return the words of the clauses on all fields."""
    return [c.words for c in parsed.clauses if c.fields == EVERYWHERE and c.occur == occur]


def conditions(parsed):
    return [(c.name, *sorted(c.values), *(["not"] if c.exclude else [])) for c in parsed.filters.conditions]


def test_each_plain_word_is_searched_for_once_in_all_fields(parse):
    parsed = parse("Purple zebra, purple STRIPES!")
    assert words(parsed) == ["purple", "zebra", "stripes"]
    assert parsed.text == "Purple zebra, purple STRIPES!"
    assert (parsed.entities, bool(parsed.filters), parsed.notices) == ({}, False, [])


def test_stop_words_are_left_out(parse):
    assert words(parse("what is the zebra of it")) == ["zebra"]


def test_a_query_of_only_stop_words_keeps_them(parse):
    assert {"the", "of", "what"} <= stopwords()
    assert words(parse("what of the")) == ["what", "of", "the"]


def test_an_entity_is_searched_for_by_its_code(parse):
    parsed = parse("treatment of heart attack")
    assert {name: concept.code for name, concept in parsed.entities.items()} == {"heart attack": ATTACK}
    assert [c.words for c in parsed.clauses if "entities" in c.fields] == [ATTACK]
    assert "myocardial infarction" in {name.lower() for name in parsed.expanded["heart attack"]}
    assert "heart attack" not in {name.lower() for name in parsed.expanded["heart attack"]}
    assert words(parsed) == ["treatment", "heart", "attack"]


def test_two_names_of_an_entity_are_one_clause(parse):
    parsed = parse("heart attack or myocardial infarction")
    assert [c.words for c in parsed.clauses if "entities" in c.fields] == [ATTACK]


def test_plus_requires_and_minus_excludes_a_word(parse):
    parsed = parse("zebra +stripes -spots")
    assert words(parsed, "must") == ["stripes"]
    assert words(parsed, "not") == ["spots"]
    assert parsed.text == "zebra stripes"
    assert words(parsed) == ["zebra", "stripes"]


def test_a_phrase_is_required(parse):
    parsed = parse('zebra "black and white" -"red stripes" +"big ears"')
    assert words(parsed, "must") == ["black and white", "big ears"]
    assert words(parsed, "not") == ["red stripes"]
    assert parsed.text == "zebra black and white big ears"


def test_an_excluded_word_is_not_an_entity_of_the_query(parse):
    parsed = parse("cough -fever")
    assert FEVER not in {concept.code for concept in parsed.entities.values()}
    assert words(parsed, "not") == ["fever"]


def test_hyphens_within_words_are_not_signs(parse):
    parsed = parse("non-small x-ray 5-10")
    assert words(parsed, "not") == []
    assert words(parsed) == ["non", "small", "x", "ray", "5", "10"]


@pytest.mark.parametrize(
    ("text", "field", "words_or_code", "occur"),
    [
        ("title:zebra", "title", "zebra", "must"),
        ('heading:"past history"', "heading", "past history", "must"),
        ("text:zebra", "text", "zebra", "must"),
        ("TITLE:zebra", "title", "zebra", "must"),
        ("-title:zebra", "title", "zebra", "not"),
        ("+text:zebra", "text", "zebra", "must"),
        ('entity:"heart attack"', "entities", ATTACK, "must"),
        ("-entity:fever", "entities", FEVER, "not"),
    ],
)
def test_a_field_restricts_a_clause(parse, text, field, words_or_code, occur):
    parsed = parse(text)
    assert [(c.words, dict(c.fields), c.occur) for c in parsed.clauses] == [(words_or_code, {field: 1.0}, occur)]
    assert not parsed.filters


def test_an_unknown_entity_becomes_words(parse):
    parsed = parse("entity:zorblitis")
    assert words(parsed, "must") == ["zorblitis"]
    assert parsed.entities == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zebra patient:p1", [("patient", "p1")]),
        ("zebra patient:P1", [("patient", "P1")]),
        ('zebra type:"Discharge Summary"', [("type", "discharge summary")]),
        ("zebra -patient:p1", [("patient", "p1", "not")]),
        ("zebra ward:North", [("ward", "north")]),
        ("zebra -tags:x", [("tags", "x", "not")]),
        ("zebra section:PMHx", [(ASPECT, "past medical history")]),
        ("zebra id:n1", [(ID, "n1")]),
        ("zebra patient:p1 ward:b", [("patient", "p1"), ("ward", "b")]),
    ],
)
def test_known_fields_are_filters(parse, text, expected):
    parsed = parse(text)
    assert conditions(parsed) == expected
    assert (parsed.text, words(parsed)) == ("zebra", ["zebra"])


def test_dates_are_filters(parse):
    filters = parse("zebra date:2023-01..2023-06").filters
    assert (filters.since, filters.until) == ("2023-01-01", "2023-06-31")
    assert parse("zebra date:2023..").filters.since == "2023-01-01"
    assert parse("zebra without:negated").filters.without == {"negated"}


@pytest.mark.parametrize("text", ["ratio:high", "BP:120/80", "http://zebra.org", "note: zebra", "wards:north"])
def test_unknown_fields_are_words(parse, text):
    parsed = parse(text)
    assert (parsed.text, conditions(parsed)) == (text, [])
    assert parsed.clauses


def test_a_query_never_reads_a_file(parse, tmp_path):
    (tmp_path / "values").write_text("p1")
    parsed = parse(f'zebra patient:"@{tmp_path}/values"')
    assert conditions(parsed) == []
    assert "zebra" in words(parsed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"zebra stripes', ["zebra", "stripes"]),
        ('zebra "stripes', ["zebra", "stripes"]),
        ('zebra stripes"', ["zebra", "stripes"]),
        ('zebra"stripes', ["zebra", "stripes"]),
        ('zebra "" stripes', ["zebra", "stripes"]),
        ('zebra "..." stripes', ["zebra", "stripes"]),
        ("zebra + stripes -", ["zebra", "stripes"]),
        ("zebra -- stripes ++", ["zebra", "stripes"]),
        ("zebra title: stripes", ["zebra", "title", "stripes"]),
        ("zebra : stripes", ["zebra", "stripes"]),
        ('zebra -" stripes', ["zebra", "stripes"]),
        ('zebra patient:"" stripes', ["zebra", "stripes"]),
        ('zebra title:"" stripes', ["zebra", "stripes"]),
        ('zebra date:"" stripes', ["zebra", "stripes"]),
        ("(zebra) [stripes]", ["zebra", "stripes"]),
    ],
)
def test_broken_operators_lose_no_word(parse, text, expected):
    parsed = parse(text)
    assert words(parsed) == expected
    assert [c for c in parsed.clauses if c.occur != "should"] == []
    assert conditions(parsed) == []


@pytest.mark.parametrize(
    "text", ["without:pain", "date:early..late", "date:..", 'patient:" "', "date:2023..2022", "patient:..", "date:now"]
)
def test_invalid_filters_are_not_errors(parse, text):
    assert "zebra" in words(parse(f"zebra {text}"))


@pytest.mark.parametrize("text", ["?", "...", "- + :", '"', '""', "🩺", "\u200b", '-"!" +"?"', "_"])
def test_punctuation_has_no_clauses(parse, text):
    parsed = parse(text)
    assert (parsed.clauses, bool(parsed.filters)) == ([], False)


def test_chinese_words_are_searched_for(parse):
    assert words(parse("高血压 治疗")) == ["高血压", "治疗"]
    assert words(parse('"高血压"'), "must") == ["高血压"]


def test_the_rarest_of_very_many_words_are_searched_for():
    rarity = {f"w{i}": float(i) for i in range(200)}
    parser = Parser(annotator(with_tagger=False).gazetteer, lambda _: False, lambda words: [rarity[w] for w in words])
    parsed = parser.parse(Query(" ".join(rarity)))
    assert words(parsed) == [f"w{i}" for i in range(199, 199 - MOST, -1)]
    assert parsed.notices == [f"the query has 200 words; the search uses the {MOST} rarest"]


@pytest.mark.parametrize("part", ["a", "word ", '"', '"a" ', "+a -b ", "a:b ", "高", "-", "a.", 'a:"', "patient:p1 "])
def test_a_query_of_a_hundred_thousand_characters_is_parsed(parse, part):
    parsed = parse((part * 100_000)[:100_000])
    assert len(words(parsed)) <= MOST


PARTS = ['"', "+", "-", ":", " ", "zebra", "fever", "2023", "..", " patient:", " date:", " without:", " title:", '""']


@given(st.lists(st.sampled_from(PARTS)).map("".join).filter(str.strip))
@settings(max_examples=300)
def test_no_combination_of_operators_is_an_error(parser, text):
    parser.parse(Query(text))


@given(st.text(alphabet=string.printable + "é高🩺\u200b", min_size=1).filter(str.strip))
def test_no_text_is_an_error(parser, text):
    parser.parse(Query(text))


def test_a_pair_has_clauses_for_its_entity_and_its_aspect(parser):
    parsed = parser.parse(Query(entity="heart attack", aspect="PMHx"))
    fields = {c.words: [*c.fields] for c in parsed.clauses}
    assert fields[ATTACK] == ["entities"]
    assert fields["past medical history"] == ["aspect", "heading"]
    assert {"heart", "attack", "medical", "history"} <= {*words(parsed)}
    assert parsed.text == "Did the patient have heart attack in the past?"
    assert {c.occur for c in parsed.clauses} == {"should"}


def test_a_pair_may_lack_a_half_or_be_unknown(parser):
    only_entity = parser.parse(Query(entity="zorblitis"))
    assert (words(only_entity), only_entity.entities) == (["zorblitis"], {})
    only_aspect = parser.parse(Query(aspect="Dawn song"))
    assert [c.words for c in only_aspect.clauses if "aspect" in c.fields] == ["dawn song"]
    assert words(only_aspect) == ["dawn", "song"]


def test_operators_are_words_in_a_pair(parser):
    parsed = parser.parse(Query(entity='-fever "patient:p1'))
    assert not parsed.filters
    assert {c.occur for c in parsed.clauses} == {"should"}


def test_a_filter_becomes_a_condition(parse):
    assert parse("zebra patient:p1").filters.conditions == (Condition("patient", frozenset({"p1"})),)
