import pytest

from capr.segment.aspects import aspect_of, aspects, keys
from capr.segment.headings import lexicon

# The representative headings of WikiSection's 27 aspects in CDV's released code.
WIKISECTION = {
    "information": "description",
    "cause": "causes and pathogenesis",
    "classification": "classification and types",
    "complication": "complications",
    "culture": "society and culture",
    "diagnosis": "diagnosis",
    "epidemiology": "epidemiology",
    "etymology": "terminology and etymology",
    "fauna": "animals",
    "genetics": "genetic mechanism",
    "geography": "geography",
    "history": "history",
    "infection": "infection and transmission",
    "management": "management",
    "mechanism": "mechanism",
    "medication": "medication and drugs",
    "pathology": "pathology",
    "pathophysiology": "pathophysiology",
    "prevention": "prevention",
    "prognosis": "prognosis",
    "research": "research directions and trials",
    "risk": "risk factors",
    "screening": "screening tests",
    "surgery": "surgical procedures",
    "symptom": "signs and symptoms",
    "tomography": "tomography",
    "treatment": "treatment",
}


def test_the_aspects_of_wikisection_have_their_published_headings():
    assert {name: aspects()[name].heading for name in WIKISECTION} == WIKISECTION


def test_the_table_has_aspects_for_clinical_notes():
    assert sum(aspect.domain != "article" for aspect in aspects().values()) >= 60
    note_aspects = ("chief complaint", "past medical history", "discharge medications", "hospital course", "follow-up")
    assert set(note_aspects) <= set(aspects())


@pytest.mark.parametrize(
    ("heading", "aspect"),
    [
        ("HISTORY OF PRESENT ILLNESS:", "history of present illness"),
        ("HPI", "history of present illness"),
        ("Signs and symptoms", "symptom"),
        ("FHx", "family history"),
        ("Brief Hospital Course", "hospital course"),
        ("2. Follow up", "follow-up"),
        ("Treatment | Colchicine", "treatment"),
        ("Dawn song", "dawn song"),
        ("", ""),
    ],
)
def test_an_unknown_heading_is_its_own_aspect(heading, aspect):
    assert aspect_of(heading) == aspect


def test_most_headings_of_the_lexicon_have_an_aspect():
    headings = [heading for heading, level in lexicon().items() if level == 1]
    known = sum(aspect_of(heading) in aspects() for heading in headings)
    assert known / len(headings) > 0.95


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Causes & mechanism/types", ["causes", "mechanism", "types"]),
        ("Symptome: Übelkeit", ["symptome_uebelkeit"]),
        ("Diagnosis | Laboratory-tests", ["diagnosis", "laboratory_tests"]),
        ("Type 2", ["type_#"]),
        (" | ", []),
    ],
)
def test_a_heading_has_the_keys_of_cdv(heading, expected):
    assert keys(heading) == expected
