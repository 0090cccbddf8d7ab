"""Notices and errors about filters, entities and aspects that a library does not have."""

import pytest
from notes import ids

from capr.annotate import Query
from capr.documents import CaprError, Document


@pytest.fixture
def many(library):
    """Return the library with 30 patients, and with a document whose date has another form."""
    documents = [Document(f"m{i:02}", "PLAN: Zinc.", metadata={"patient": f"p{i:02}"}) for i in range(30)]
    library.add([*documents, Document("odd", "PLAN: Zinc.", metadata={"date": "03/2024", "ward": "North"})])
    return library


def notices(library, query, filters=None):
    return library.search(query, filters=filters, mode="lexical").notices


@pytest.mark.parametrize("date", ["04/2024", "2024-13", "yesterday", "2024-01-45"])
@pytest.mark.parametrize("name", ["date", "date!"])
def test_an_invalid_date_is_an_error(many, date, name):
    fix = r"Fix: write 2024, 2024-03, 2024-03-18 or 2024-01\.\.2024-06\."
    with pytest.raises(CaprError, match=rf"'{date}' is not a date\. {fix}"):
        many.search("zinc", filters={name: date})
    with pytest.raises(CaprError, match="is not a date"):
        many.ids({name: date})


def test_dates_in_another_form_can_be_matched(many):
    assert many.ids({"date": "03/2024"}) == ["odd"]
    assert many.ids({"date": "*/2024"}) == ["odd"]
    assert ids(many.search("zinc date:03/2024", mode="lexical")) == ["odd"]
    (notice,) = notices(many, "zinc date:04/2024")
    assert notice.startswith("no document has date=04/2024, which is not a date; write 2024, 2024-03")


def test_a_period_that_ends_before_it_begins(many):
    with pytest.raises(CaprError, match=r"the period ends before it begins\. Fix: write 2024-01\.\.2024-06\."):
        many.search("zinc", filters="date=2024-06..2024-01")
    (left_out, *_) = notices(many, "zinc date:2024-06..2024-01")
    assert "was left out" in left_out


def test_an_unknown_field_has_a_suggestion(many):
    assert notices(many, "zinc", "patiant=p01") == (
        "no document has patiant=p01; the library has no field 'patiant'. Did you mean patient? "
        "capr stats LIBRARY lists the fields",
    )
    assert notices(many, "zinc", "qqq=p01") == (
        "no document has qqq=p01; the library has no field 'qqq'. capr stats LIBRARY lists the fields",
    )
    (notice,) = notices(many, "zinc", "patiant!=p01")
    assert notice.startswith("patiant!=p01 excludes nothing; the library has no field 'patiant'. Did you mean patient?")
    assert notices(many, "zinc", "aspect!=allergies") == ()


def test_an_unknown_value_tells_how_many_others_there_are(many):
    (notice,) = notices(many, "zinc", "patient=p99")
    assert notice.startswith("no document has patient=p99; there are ")
    assert notice.endswith(f" ... and {len(many.facets(names=['patient']).fields['patient'].values) - 8} more")
    (notice,) = notices(many, "zinc", "patient=P01")
    assert notice.endswith(" more. Did you mean p01?")


def test_a_filter_among_the_words_has_a_suggestion(many):
    query = "zinc patient=p01"
    assert notices(many, query) == ("capr searched for patient=p01 as plain words. Did you mean --filter patient=p01?",)
    (notice,) = notices(many, "zinc ward=North*")
    assert notice == "capr searched for ward=North* as plain words. Did you mean --filter 'ward=North*'?"
    assert notices(many, "zinc ph=7") == ()


@pytest.mark.parametrize("query", ["zinc entity:zzyzx", Query(entity="zzyzx")])
def test_an_unknown_entity_is_searched_as_words(many, query):
    notice = "the vocabulary has no entity 'zzyzx', so capr searched for it as plain words; capr suggest zzyzx lists similar names"
    assert notice in notices(many, query)
    assert not any("entity" in notice for notice in notices(many, "zinc entity:aspirin"))
    assert not any("entity" in notice for notice in notices(many, Query(entity="aspirin")))


def test_an_entity_without_quotation_marks_has_a_suggestion(many):
    fact = "the vocabulary has no entity 'atrial', so capr searched for it as plain words"
    for query in ("entity:atrial fibrillation", "zinc entity:atrial fibrillation? with aspirin"):
        assert f'{fact}. Did you mean entity:"atrial fibrillation"?' in notices(many, query)
    for query in ("entity:atrial", "entity:atrial -fibrillation", "fibrillation entity:atrial", "entity:atrial zinc"):
        assert f"{fact}; capr suggest atrial lists similar names" in notices(many, query)


def test_a_misspelt_field_has_a_suggestion(many):
    assert notices(many, "zinc entty:stroke") == (
        "capr searched for entty:stroke as plain words. Did you mean entity:stroke?",
    )
    assert notices(many, 'zinc headin:"the plan"') == (
        'capr searched for headin:"the plan" as plain words. Did you mean heading:"the plan"?',
    )
    assert notices(many, "zinc Patiant:p01") == (
        "capr searched for Patiant:p01 as plain words. Did you mean patient:p01?",
    )
    assert notices(many, "zinc BP:120/80 test:positive 12:30 entity:aspirin ward:North") == ()


def test_an_unknown_aspect_is_searched_as_words(many):
    many.add(Document("h", "ZZYZX:\nZinc.\n\nPLAN:\nRest."))
    (notice, *_) = notices(many, Query(entity="aspirin", aspect="familly history"))
    assert (
        notice
        == "there is no aspect 'familly history', so capr searched for it as plain words. Did you mean family history?"
    )
    (notice, *_) = notices(many, Query(entity="aspirin", aspect="wwww"))
    assert "there is no aspect 'wwww', so capr searched for it as plain words; leave it out" in notice
    for aspect in ("family history", "plan", "zzyzx"):
        assert not any("aspect" in notice for notice in notices(many, Query(entity="aspirin", aspect=aspect)))


def test_a_mistyped_value_among_others_is_named(many):
    patients = [value for value, _ in many.facets(names=["patient"]).fields["patient"].values]
    known, other = patients[:2]
    assert notices(many, "zinc", {"patient": [known, other]}) == ()
    (notice,) = notices(many, "zinc", {"patient": [known, "zz", other.upper()]})
    assert notice.startswith(f"no document has patient={', '.join(sorted(['zz', other.upper()]))}; there are ")
    assert notice.endswith(f". Did you mean {other}?")
    assert notices(many, "zinc", {"patient": [known, f"{other[:-1]}*"]}) == ()
    (notice,) = notices(many, "zinc", {"patient": [known, "zz*"]})
    assert notice.startswith("no document has patient=zz*; there are ")
