import json
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import capr
from capr.annotate import Concept, Mention, Vocabulary, annotate
from capr.annotate.mentions import Annotator, annotator, merge_mentions
from capr.documents import Document, Span
from capr.runtime.tagger import TaggedSpan

FLAGS = ("negated", "possible", "hypothetical", "historical", "family")


def mentions(text: str, tagger: bool = False) -> list[Mention]:
    return annotate(Document("n1", text), tagger)


def names_in(text: str, tagger: bool = False) -> list[tuple[str, str]]:
    """Return the text of each mention and the name of its concept."""
    return [(m.span.of(text), m.concept.name if m.concept else "") for m in mentions(text, tagger)]


def assert_valid_mentions(text: str, tagger: bool) -> None:
    end = 0
    for mention in mentions(text, tagger):
        assert end <= mention.span.begin < mention.span.end <= len(text)
        assert mention.span.of(text) == mention.span.of(text).strip()
        assert mention.found_by in (("vocabulary",), ("tagger",), ("vocabulary", "tagger"))
        assert mention.concept or mention.found_by == ("tagger",)
        assert {*mention.context} <= {*FLAGS}
        for cue in mention.context.values():
            assert cue.span is None or cue.span.of(text) == cue.words
        end = mention.span.end


PARTS = st.sampled_from(
    [
        "heart attack",
        "No",
        "fever",
        "Lasix 40 mg",
        "lactic acidosis",
        "Allergies:",
        "Family History:",
        "PE",
        "MI",
        ",",
        ".",
        "acute kidney injury (AKI)",
        "\n",
        "\n\n",
        "\r\n",
        "\x0c",
        "mother had",
        "zorblitis",
        "🩺",
        "\u200b",
        "İ",
        "(PE)",
    ]
)


@given(st.lists(PARTS).map(" ".join) | st.text())
@example("İ heart attack (HA) HA")
def test_spans_are_valid_in_any_text(text):
    assert_valid_mentions(text, tagger=False)


@given(st.lists(PARTS, max_size=15).map(" ".join) | st.text(max_size=50))
@settings(max_examples=40)
@example("lactic\u200b acidosis")
def test_spans_of_the_tagger_are_valid_in_any_text(text):
    assert_valid_mentions(text, tagger=True)


def test_mention_has_kind_concept_and_finder():
    text = "Cough and asthma, takes Lasix."
    actual = [(m.span.of(text), m.kind, m.concept.code, m.found_by) for m in mentions(text)]
    assert actual == [
        ("Cough", "symptom", "MESH:D003371", ("vocabulary",)),
        ("asthma", "disease", "MESH:D001249", ("vocabulary",)),
        ("Lasix", "drug", "MESH:D005665", ("vocabulary",)),
    ]


def test_tagger_finds_entities_outside_the_vocabulary():
    text = "Methotrexate was stopped because of zorblitis."
    (drug, disease) = mentions(text, tagger=True)
    assert (drug.found_by, drug.kind) == (("vocabulary", "tagger"), "drug")
    assert (disease.span.of(text), disease.kind, disease.concept, disease.found_by) == (
        "zorblitis",
        "disease",
        None,
        ("tagger",),
    )
    assert [m.span.of(text) for m in mentions(text)] == ["Methotrexate"]


def test_without_tagger_all_mentions_are_in_the_vocabulary():
    for document in list(capr.samples.documents())[:20]:
        assert {m.found_by for m in annotate(document, tagger=False)} <= {("vocabulary",)}
        assert all(m.concept is not None for m in annotate(document, tagger=False))
    assert annotator(False).tagger is None
    assert annotator(False) is annotator(False)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("Asthma.", set()),
        ("Denies asthma.", {"negated"}),
        ("Possible asthma.", {"possible"}),
        ("Return if asthma recurs.", {"hypothetical"}),
        ("History of asthma.", {"historical"}),
        ("Father had asthma.", {"family"}),
        ("No family history of asthma.", {"negated", "family"}),
        ("Family History:\nAsthma", {"family"}),
        ("FHx: asthma", {"family"}),
        ("Past Medical History:\nAsthma", {"historical"}),
        ("Family History: none.\n\nAssessment: asthma", set()),
        ("No fever. Has asthma.", set()),
        ("No fever.\nAsthma", set()),
    ],
)
def test_context_by_cue_and_by_heading(text, flags):
    mention = mentions(text)[-1]
    assert mention.span.of(text).lower() == "asthma"
    assert {flag for flag in FLAGS if getattr(mention, flag)} == {*mention.context} == flags


def test_section_annotation_sets_the_context():
    section = capr.documents.Annotation("section", Span(0, 7), {"heading": "Family History"})
    (mention,) = annotate(Document("1", "Asthma.", annotations=(section,)), tagger=False)
    assert mention.family


def test_heading_is_not_a_mention():
    assert names_in("Allergies: penicillin") == [("penicillin", "penicillin")]
    assert names_in("ALLERGIES:\nnone\n\nSymptoms:\ncough") == [("cough", "cough")]
    assert names_in("He has allergies.")[0][0] == "allergies"


def test_as_json():
    text = "🩺 No asthma.\nFamily History:\nstroke"
    document = Document("n1", text)
    first, second = (m.as_json(document) for m in annotate(document, tagger=False))
    assert first == {
        "document": "n1",
        "begin": 5,
        "end": 11,
        "text": "asthma",
        "kind": "disease",
        "concept": {"system": "MESH", "code": "MESH:D001249", "name": "asthma"},
        "found_by": ["vocabulary"],
        "negated": True,
        "possible": False,
        "hypothetical": False,
        "historical": False,
        "family": False,
        "cues": {"negated": {"text": "No", "begin": 2, "end": 4}},
        "cue": {"negated": {"text": "No", "begin": 2, "end": 4}},  # the name of "cues" before 0.2
    }
    assert second["family"] is True
    assert second["cues"]["family"]["begin"] is None
    assert second["cues"]["family"]["end"] is None
    assert second["cues"]["family"]["text"].startswith("Family History")
    assert json.loads(json.dumps([first, second])) == [first, second]
    assert Mention(Span(5, 11), "disease", None, ("tagger",)).as_json(document)["concept"] is None


@pytest.mark.parametrize(
    "text",
    [
        "Physical examination (PE) was normal. PE repeated.",
        "PE normal. The physical examination (PE) is below.",
        "Pain evaluation (PE) was done. The PE was repeated.",
        "PE (physical examination) was normal. PE repeated.",
    ],
)
def test_definition_in_the_note_overrides_the_vocabulary(text):
    assert "pulmonary embolism" not in [name for _, name in names_in(text)]


def test_defined_abbreviation_has_the_concept_of_its_long_form():
    text = "Type 2 diabetes mellitus (TDME). Now TDME is worse. TDMEs"
    assert [name for _, name in names_in(text)] == ["type 2 diabetes mellitus"] * 4
    text = "Wegener's zorblax findings (WZF). WZF again. PE."
    assert names_in(text) == [("PE", "pulmonary embolism")]
    text = "severe acute pancreatitis (SAP) and SAP"
    assert [name for _, name in names_in(text)] == ["acute pancreatitis"] * 3


def test_letters_that_lengthen_in_lower_case_do_not_hide_an_abbreviation():
    assert [name for _, name in names_in("İ acute kidney injury (AKI), AKI")] == ["acute kidney injury"] * 3


def test_items_of_a_list_are_separate_names():
    assert [text for text, _ in names_in("Problems:\nAnxiety\nDepression\nAsthma\n")] == [
        "Anxiety",
        "Depression",
        "Asthma",
    ]
    assert names_in("Diabetes\nType 2 MI")[0] == ("Diabetes", "diabetes mellitus")


@pytest.mark.parametrize("end", ["\n", "\n   ", "\r\n"])
def test_name_may_continue_on_the_next_line(end):
    text = f"The patient was admitted with an acute myocardial{end}infarction yesterday."
    assert names_in(text) == [(f"acute myocardial{end}infarction", "myocardial infarction")]


@pytest.mark.parametrize("text", ["heart, attack", "heart. Attack", "heart\n\nattack"])
def test_name_does_not_cross_a_border(text):
    assert "myocardial infarction" not in [name for _, name in names_in(text)]
    assert "myocardial infarction" not in [name for _, name in names_in(text, tagger=True)]


@pytest.mark.parametrize("tagger", [False, True])
@pytest.mark.parametrize("text", ["", " \n", "\x00\x07\x1b", "....,,,;;;---", "\u200b\ufeff", "a", "()", "(AB)"])
def test_text_without_words_has_no_mentions(text, tagger):
    assert mentions(text, tagger) == []


def test_disease_named_after_a_drug_is_not_that_drug():
    class Certain:
        def tag(self, text, cut):
            return [TaggedSpan(Span(22, 38), "Disease", 0.99)]

    document = Document("1", "She was admitted with lithium toxicity.")
    (mention,) = Annotator(Vocabulary.load(), Certain()).annotate(document)
    assert (document[mention.span], mention.kind, mention.concept) == ("lithium toxicity", "disease", None)


def mention(begin: int, end: int, finder: str, kind: str = "disease") -> Mention:
    return Mention(Span(begin, end), kind, Concept("L:1", kind, "x"), (finder,))


@pytest.mark.parametrize(
    ("overlapping", "expected"),
    [
        ([], []),
        ([(0, 5, "vocabulary"), (5, 9, "tagger")], [(0, 5, "vocabulary"), (5, 9, "tagger")]),
        ([(0, 5, "vocabulary"), (0, 5, "tagger")], [(0, 5, "vocabulary tagger")]),
        ([(3, 8, "vocabulary"), (0, 8, "tagger")], [(0, 8, "vocabulary tagger")]),
        ([(0, 9, "vocabulary"), (2, 5, "tagger")], [(0, 9, "vocabulary tagger")]),
        ([(0, 9, "tagger", "drug"), (0, 4, "vocabulary", "drug")], [(0, 4, "vocabulary tagger")]),
        ([(0, 9, "tagger"), (0, 4, "vocabulary", "drug")], [(0, 9, "vocabulary tagger")]),
        (
            [(0, 9, "tagger", "drug"), (0, 4, "vocabulary", "drug"), (5, 9, "vocabulary", "drug")],
            [(0, 4, "vocabulary tagger"), (5, 9, "vocabulary")],
        ),
        ([(0, 5, "vocabulary"), (3, 12, "tagger")], [(3, 12, "vocabulary tagger")]),
    ],
)
def test_longer_of_two_overlapping_mentions_stays(overlapping, expected):
    merged_mentions = merge_mentions(mention(*arguments) for arguments in overlapping)
    assert [(*m.span, " ".join(m.found_by)) for m in merged_mentions] == expected


MENTIONS = st.builds(
    lambda begin, length, finder, kind: mention(begin, begin + length, finder, kind),
    st.integers(0, 30),
    st.integers(1, 10),
    st.sampled_from(["vocabulary", "tagger"]),
    st.sampled_from(["drug", "disease"]),
)


@given(st.lists(MENTIONS))
def test_merged_mentions_do_not_overlap(overlapping):
    result = merge_mentions(overlapping)
    assert all(previous.span.end <= following.span.begin for previous, following in pairwise(result))
    assert {m.span for m in result} <= {m.span for m in overlapping}
    assert bool(result) == bool(overlapping)


def test_vocabulary_of_a_user():
    own = Vocabulary(added=[Concept("L:1", "sign", "zorblax sign")])
    document = Document("1", "No Zorblax signs.")
    (mention,) = Annotator(own, None).annotate(document)
    assert (mention.kind, mention.concept.code, mention.negated) == ("sign", "L:1", True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a" * 1_000_000, 0, id="a long word"),
        pytest.param("." * 1_000_000, 0, id="only signs"),
        pytest.param("no fever, " * 2000, 2000, id="a sentence with many cues"),
        pytest.param("fever, " * 5000, 5000, id="a sentence with many mentions"),
        pytest.param("ALLERGIES:\nfever and cough.\n\n" * 2000, 4000, id="many sections"),
        pytest.param("Diabetes\ntype 2\n\n" * 400, 400, id="many names across lines"),
    ],
)
def test_large_text_is_annotated(text, expected):
    assert len(mentions(text)) == expected


def test_text_instead_of_a_document():
    (mention,) = capr.annotate("No fever.", tagger=False)
    assert (mention.span, mention.negated) == (Span(3, 8), True)
