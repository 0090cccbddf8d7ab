"""De-identification: no name leaves, no offset moves."""

import gzip
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import Client, wait

from capr import samples
from capr.documents import CaprError, Span
from capr.search import Library
from capr.serve.deidentify import HIDDEN, Rules, deidentifier, masked, masked_metadata

NOTE = {
    "id": "d1",
    "title": "Letter to Dr. Okafor of 3/18/2024",
    "text": (
        "Dr. Okafor Clinic 2024:\nSeen 2024-03-18 by Wilma Stratmore for Mr. Vance (MRN: 4471902, tel. (617) 555-0134, "
        "v.vance@mail.example).\n\nFAMILY HISTORY: Stratmore notes that his father, seen March 3, 2020, had asthma.\n\n"
        "PLAN: Lasix 40 mg. Vance's wife calls +44 20 7946 0958."
    ),
    "metadata": {
        "patient": "V7", "patient_name": "Albert Vance", "author": "Wilma Stratmore, MD", "date": "2024-03-18",
        "mrn": "4471902", "born": 1950, "type": "Letter",
    },
}  # fmt: skip
NAMES = (
    "Okafor",
    "Stratmore",
    "Vance",
    "Wilma",
    "Albert",
    "4471902",
    "555-0134",
    "mail.example",
    "7946",
    "2024-03-18",
    "3/18/2024",
    "March 3",
)


@pytest.fixture
def removed_after(monkeypatch):
    """Removes a document right after it was found, before it is masked."""

    def arrange(method, id):
        original = getattr(Library, method)

        def found_then_removed(self, *arguments, **options):
            found = original(self, *arguments, **options)
            assert self.remove(id) == 1
            return found

        monkeypatch.setattr(Library, method, found_then_removed)

    return arrange


@pytest.fixture
def client(serve):
    client = serve(deidentify="rules")
    job = client.post("/api/documents", json={"documents": [NOTE]}).json()["job"]
    assert wait(client, job)["added"] == 1
    return client


def hidden(reply):
    assert reply.status_code < 300, reply.text
    for name in NAMES:
        assert name.lower() not in reply.text.lower(), (name, reply.text)
    return reply


def test_nothing_that_leaves_names_anybody(client):
    asked = {"query": "lasix asthma seen", "filters": {"patient": "V7"}, "neighbours": 2, "k": 20}
    found = hidden(client.post("/api/search", json=asked)).json()
    assert found["hits"]
    hidden(client.post("/api/search", json={**asked, "group": "document"}))
    hidden(client.post("/api/export", json={**asked, "format": "csv"}))
    hidden(client.post("/api/export", json={**asked, "format": "json"}))
    hidden(client.get("/api/documents/d1"))
    for index in range(client.get("/api/documents/d1").json()["passages"][-1]["index"] + 1):
        hidden(client.get(f"/api/documents/d1/passages/{index}"))
    hidden(client.get("/api/documents?patient=V7"))
    body = {"question": "Stratmore/Vance/40 mg/asthma?", "document": "d1", "top": 20}
    answers = client.post("/api/ask", json=body).json()
    assert len(answers["answers"]) > 2
    assert not any(name in json.dumps(answers["answers"]) for name in NAMES)
    hidden(client.post("/api/documents/d1/scores", json={"query": "asthma"}))
    hidden(client.post("/api/facets", json={"filters": {"patient": "V7"}}))
    hidden(client.get("/api/aspects?k=100"))
    hidden(client.get("/api/patients?typed=V"))
    body = {"query": "lasix", "document": "d1", "begin": 0, "end": len(NOTE["text"]), "answers": True}
    assert client.post("/api/feedback", json=body).status_code == 201
    pairs = client.get("/api/feedback/export").content
    assert not any(name in gzip.decompress(pairs).decode() for name in NAMES)
    assert client.get("/api/me").json()["features"]["deidentified"]


def test_every_offset_still_fits(client):
    whole = client.get("/api/documents/d1").json()
    assert len(whole["text"]) == len(NOTE["text"])
    for mine, theirs in zip(whole["text"], NOTE["text"], strict=True):
        assert mine in (theirs, HIDDEN)
    assert "Lasix 40 mg" in whole["text"]
    for mention in whole["mentions"]:
        assert mention["text"] == whole["text"][mention["begin"] : mention["end"]]
    for hit in client.hits("asthma lasix", filters={"patient": "V7"}):
        for part in (hit, *hit["sentences"], *hit["mentions"]):
            assert part["text"] == whole["text"][part["begin"] : part["end"]]


def test_what_is_hidden_is_not_highlighted(client):
    for hit in client.hits("Stratmore Vance asthma", filters={"patient": "V7"}):
        words = [NOTE["text"][begin:end] for begin, end in hit["highlights"]]
        assert not {"Stratmore", "Vance"} & set(words)


def test_a_hit_whose_document_was_just_removed_is_left_out(client, removed_after, trail):
    before = client.documents_of("lasix")
    assert {"a2", "d1"} < set(before)
    removed_after("search", "a2")
    assert client.documents_of("lasix") == [id for id in before if id != "a2"]
    assert trail()[-1]["documents"] == [id for id in before if id != "a2"]


@pytest.mark.parametrize("gone", ["a1", "a2"])
def test_a_group_of_which_a_document_was_just_removed(client, removed_after, gone):
    asked = {"query": "plan lasix aspirin", "group": "patient", "filters": {"patient": "A"}}
    (group,) = client.hits(**asked)
    assert {group["document"], *(one["document"] for one in group["others"])} == {"a1", "a2"}
    removed_after("search", gone)
    (group,) = client.hits(**asked)
    assert group["group"] == "A"
    assert {group["document"], *(one["document"] for one in group["others"])} == {"a1", "a2"} - {gone}


def test_an_answer_whose_document_was_just_removed_is_left_out(client, removed_after, trail):
    body = {"question": "Lasix?", "filters": {"patient": "A"}}
    found = client.post("/api/ask", json=body).json()
    assert found["found"]
    assert [answer["document"] for answer in found["answers"]] == ["a2"]
    removed_after("ask", "a2")
    found = client.post("/api/ask", json=body).json()
    assert (found["found"], found["answers"]) == (False, [])
    assert not trail()[-1].get("documents")


def test_a_place_of_an_answer_whose_document_was_just_removed_is_left_out(client, removed_after):
    body = {"question": "Lasix?", "filters": {"patient": "A"}}
    copied = {"id": "a3", "text": "PLAN: Lasix 40 mg daily.", "metadata": {"patient": "A"}}
    assert wait(client, client.post("/api/documents", json={"documents": [copied]}).json()["job"])["added"] == 1
    (answer,) = client.post("/api/ask", json=body).json()["answers"]
    (place,) = answer["places"]
    removed_after("ask", place["document"])
    found = client.post("/api/ask", json=body).json()
    assert found["found"]
    assert [(one["document"], one["places"]) for one in found["answers"]] == [(answer["document"], [])]


def test_metadata():
    found = masked_metadata(NOTE["metadata"], Rules())
    assert found["patient"] == "V7"
    assert found["type"] == "Letter"
    assert found["date"] == "2024██████"
    assert found["author"] == "█████ ██████████ ██"
    assert set(found["mrn"]) == {HIDDEN}
    assert masked_metadata({"x": {"name": ["Ann"], "n": None, "b": True}}, Rules()) == {
        "x": {"name": ["███"], "n": None, "b": True}
    }


@pytest.mark.parametrize(
    "text",
    ["2024-03-18", "18/03/2024", "3/18/24", "18.3.2024", "March 18, 2024", "18 March 2024", "Mar 2024", "18th of", "617-555-0134",
     "617.555.0134", "(617) 555-0134", "+1 617 555 0134", "MRN 4471902", "MRN#: A-447190", "MRN no. 447190", "MRN No.: 447190", "account # 4471-90", "medical record number: 447190",
     "Dr. Ames", "Mrs Lee", "Prof. van", "a.b-c@d.example.org", "123-45-6789", "[**2025-1-17**]", "18-Mar-2024", "18-MAR-24",
     "2024/03/18", "2024.3.18", "20240318", "20240318093000", "18th of March 2024", "Mar-18-2024", "6175550134", "16175550134",
     "0171 1234567", "0171/1234567", "020 7946 0958", "07700 900123"],
)  # fmt: skip
def test_rules(text):
    found = masked(f"On {text}, seen", Rules().find(f"On {text}, seen", {}))
    wanted = text not in ("18th of", "Prof. van")
    assert (HIDDEN in found) == wanted, found
    if wanted:
        assert not re.search(r"\d", found)


@pytest.mark.parametrize(
    "name",
    ["DR. SMITH", "MR. JOHN SMITH", "Dr. van der Berg", "Miss Lee", "MISS LEE", "Mr D Hartnell", "Dr. J.R. Smith", "Dr.Smith",
     "Mr. John Q. Smith", "Ms de la Cruz", "Dr.\nSmith", "Prof. Łukasz O’Brien"],
)  # fmt: skip
def test_names_after_a_title(name):
    found = masked(f"Seen by {name}, who agrees", Rules().find(f"Seen by {name}, who agrees", {}))
    assert re.fullmatch(r"Seen by [█\s]+, who agrees", found), found


def test_no_day_of_the_samples_is_seen():
    days = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}")
    assert sum(len(days.findall(document.text)) for document in samples.documents()) == 98
    for document in samples.documents():
        assert not days.search(masked(document.text, Rules().find(document.text, document.metadata))), document.id


def test_names_within_what_is_filtered_by():
    metadata = {"patient": {"name": "Ann Lee", "id": "p1"}, "source": [{"author": "Bo Ek"}], "type": ["Letter"]}
    assert masked_metadata(metadata, Rules()) == {
        "patient": {"name": "███ ███", "id": "p1"}, "source": [{"author": "██ ██"}], "type": ["Letter"]
    }  # fmt: skip
    assert masked("Lee saw Ek.", Rules().find("Lee saw Ek.", metadata)) == "███ saw ██."


def test_notices_tell_no_values(client):
    for field in ("author", "patient_name", "mrn", "date"):
        for body in ({"query": "lasix", "filters": {field: "zz"}}, {"query": f"lasix {field}:zz"}):
            (notice,) = hidden(client.post("/api/search", json=body)).json()["notices"]
            assert notice == f"no document has {field}=zz"
        hidden(client.post("/api/ask", json={"question": "Lasix?", "filters": {field: "zz"}}))


@pytest.mark.parametrize(
    "text", ["MRN " + "no." * 5000 + "x", "a.-" * 20_000, "account" + " " * 50_000 + "x", "May" + " " * 50_000, "Dr. " * 20_000,
             "Dr. van der " * 10_000, "Dr. " + "A." * 50_000, "Dr." + " " * 50_000, "18-Mar-" * 20_000, "0171 " * 20_000, "2024-" * 20_000,
             "1" * 100_000, "617 " * 20_000, "3rd of " * 20_000]
)  # fmt: skip
def test_no_text_takes_long(text):
    begun = time.perf_counter()
    list(Rules().find(text, {}))
    assert time.perf_counter() - begun < 2


@pytest.mark.parametrize(
    "text",
    ["BP 120/80, HR 72", "1.5 mg", "Lasix 40 mg", "WBC 11.2", "T 38.5", "5/5 strength", "in May we", "T 98.6", "over 60 may need",
     "for 2 decades", "3 marked lesions", "Octreotide 50 mcg", "K 3 decreased", "given 0600 1200 1800", "E11.9, I50.22, 410.11",
     "HCV RNA 1,240,000 IU/mL", "viral load 1240000", "4500000000 cells/L", "10000000 CFU", "Plt 150-400", "co-careldopa 25/100",
     "sacubitril-valsartan 24-26 mg", "50/600/300 mg", "G2, P0-0-1-0", "Na 131 133 136 134 133", "INR 2.1 1.8 1.9", "pH 7.31",
     "EF 55-60%", "methadone 2019-2021", "SNOMED 22298006", "LOINC 2160-0", "CARDIAC MR STUDY", "MS PATIENTS", "DO NOT MISS DOSES",
     "QRS 94 ms, QTc 440 ms", "heparin 5000 units", "Mesalazine MR 2.4 g"],
)  # fmt: skip
def test_what_no_rule_hides(text):
    assert masked(text, Rules().find(text, {})) == text


@given(st.text(), st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50))))
def test_masking_keeps_the_length(text, spans):
    found = masked(text, [Span(*span) for span in spans])
    assert len(found) == len(text)
    assert all(mine in (theirs, HIDDEN) for mine, theirs in zip(found, text, strict=True))


@given(st.text(max_size=200))
def test_rules_take_any_text(text):
    for span in Rules().find(text, {"author": text, "name": [text]}):
        assert 0 <= span.begin <= span.end <= len(text)


def test_one_of_your_own(serve, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from capr import Span\nclass Mine:\n    def find(self, text, metadata):\n"
        "        at = text.find('Lasix')\n        return [Span(at, at + 5)] if at >= 0 else []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    client = serve(deidentify="mine:Mine")
    assert isinstance(client, Client)
    assert client.get("/api/documents/a2").json()["text"] == "PLAN: █████ 40 mg daily."


@pytest.mark.parametrize("given", ["none:None", "capr", "json:dumps", "capr.nothing:X"])
def test_one_that_is_none(given):
    with pytest.raises(CaprError, match="Fix"):
        deidentifier(given)


def test_it_is_off_unless_asked_for(serve):
    assert "Stratmore" in json.dumps(serve().get("/api/documents/a1").json())
