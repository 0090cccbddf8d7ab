"""De-identification: replies contain no names, and offsets stay the same."""

import gzip
import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import Client, wait

from capr import samples
from capr.documents import CaprError, Span
from capr.search import Library
from capr.serve.deidentify import HIDDEN, Rules, load_deidentifier, mask, mask_metadata

NOTE = {
    "id": "d1",
    "title": "Letter to Dr. Okafor of 3/18/2024",
    "text": (
        "Dr. Okafor Clinic 2024:\nSeen 2024-03-18 by Wilma Stratmore for Mr. Vance (MRN: 4471902, tel. (617) 555-0134, "
        "v.vance@mail.example).\n\nFAMILY HISTORY: Stratmore notes that his father, seen March 3, 2020, had asthma.\n\n"
        "PLAN: Lasix 40 mg. Vance's wife calls +44 20 7946 0958."
    ),
    "metadata": {
        "patient": "V7",
        "patient_name": "Albert Vance",
        "author": "Wilma Stratmore, MD",
        "date": "2024-03-18",
        "mrn": "4471902",
        "born": 1950,
        "type": "Letter",
    },
}
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
    """Return a function that removes a document after a search has found it and before its text is masked."""

    def patch(method, id):
        original = getattr(Library, method)

        def search_and_remove(self, *arguments, **options):
            results = original(self, *arguments, **options)
            assert self.remove(id) == 1
            return results

        monkeypatch.setattr(Library, method, search_and_remove)

    return patch


@pytest.fixture
def client(serve):
    client = serve(deidentify="rules")
    job = client.post("/api/documents", json={"documents": [NOTE]}).json()["job"]
    assert wait(client, job)["added"] == 1
    return client


def check_hidden(reply):
    assert reply.status_code < 300, reply.text
    for name in NAMES:
        assert name.lower() not in reply.text.lower(), (name, reply.text)
    return reply


def test_no_reply_contains_a_name(client):
    body = {"query": "lasix asthma seen", "filters": {"patient": "V7"}, "neighbours": 2, "k": 20}
    results = check_hidden(client.post("/api/search", json=body)).json()
    assert results["hits"]
    check_hidden(client.post("/api/search", json={**body, "group": "document"}))
    check_hidden(client.post("/api/export", json={**body, "format": "csv"}))
    check_hidden(client.post("/api/export", json={**body, "format": "json"}))
    check_hidden(client.get("/api/documents/d1"))
    for index in range(client.get("/api/documents/d1").json()["passages"][-1]["index"] + 1):
        check_hidden(client.get(f"/api/documents/d1/passages/{index}"))
    check_hidden(client.get("/api/documents?patient=V7"))
    body = {"question": "Stratmore/Vance/40 mg/asthma?", "document": "d1", "k": 20}
    answers = client.post("/api/ask", json=body).json()
    assert len(answers["answers"]) > 2
    assert not any(name in json.dumps(answers["answers"]) for name in NAMES)
    check_hidden(client.post("/api/documents/d1/scores", json={"query": "asthma"}))
    check_hidden(client.post("/api/facets", json={"filters": {"patient": "V7"}}))
    check_hidden(client.get("/api/aspects?k=100"))
    check_hidden(client.get("/api/patients?prefix=V"))
    body = {"query": "lasix", "document": "d1", "begin": 0, "end": len(NOTE["text"]), "answers": True}
    assert client.post("/api/feedback", json=body).status_code == 201
    pairs = client.get("/api/feedback/export").content
    assert not any(name in gzip.decompress(pairs).decode() for name in NAMES)
    assert client.get("/api/me").json()["features"]["deidentified"]


def test_offsets_stay_valid(client):
    whole = client.get("/api/documents/d1").json()
    assert len(whole["text"]) == len(NOTE["text"])
    for masked, original in zip(whole["text"], NOTE["text"], strict=True):
        assert masked in (original, HIDDEN)
    assert "Lasix 40 mg" in whole["text"]
    for mention in whole["mentions"]:
        assert mention["text"] == whole["text"][mention["begin"] : mention["end"]]
    for hit in client.hits("asthma lasix", filters={"patient": "V7"}):
        for part in (hit, *hit["sentences"], *hit["mentions"]):
            assert part["text"] == whole["text"][part["begin"] : part["end"]]


def test_hidden_words_are_not_highlighted(client):
    for hit in client.hits("Stratmore Vance asthma", filters={"patient": "V7"}):
        words = [NOTE["text"][begin:end] for begin, end in hit["highlights"]]
        assert not {"Stratmore", "Vance"} & set(words)


def test_results_have_no_hit_of_a_removed_document(client, removed_after, trail):
    before = client.documents_of("lasix")
    assert {"a2", "d1"} < set(before)
    removed_after("search", "a2")
    assert client.documents_of("lasix") == [id for id in before if id != "a2"]
    assert trail()[-1]["documents"] == [id for id in before if id != "a2"]


@pytest.mark.parametrize("gone", ["a1", "a2"])
def test_a_group_keeps_its_other_documents(client, removed_after, gone):
    body = {"query": "plan lasix aspirin", "group": "patient", "filters": {"patient": "A"}}
    (group,) = client.hits(**body)
    assert {group["document"], *(other["document"] for other in group["others"])} == {"a1", "a2"}
    removed_after("search", gone)
    (group,) = client.hits(**body)
    assert group["group"] == "A"
    assert {group["document"], *(other["document"] for other in group["others"])} == {"a1", "a2"} - {gone}


def test_answers_have_no_answer_of_a_removed_document(client, removed_after, trail):
    body = {"question": "Lasix?", "filters": {"patient": "A"}}
    answers = client.post("/api/ask", json=body).json()
    assert answers["answered"]
    assert [answer["document"] for answer in answers["answers"]] == ["a2"]
    removed_after("ask", "a2")
    answers = client.post("/api/ask", json=body).json()
    assert (answers["answered"], answers["answers"]) == (False, [])
    assert not trail()[-1].get("documents")


def test_an_answer_has_no_location_in_a_removed_document(client, removed_after):
    body = {"question": "Lasix?", "filters": {"patient": "A"}}
    copy = {"id": "a3", "text": "PLAN: Lasix 40 mg daily.", "metadata": {"patient": "A"}}
    assert wait(client, client.post("/api/documents", json={"documents": [copy]}).json()["job"])["added"] == 1
    (answer,) = client.post("/api/ask", json=body).json()["answers"]
    (location,) = answer["places"]
    removed_after("ask", location["document"])
    answers = client.post("/api/ask", json=body).json()
    assert answers["answered"]
    assert [(found["document"], found["places"]) for found in answers["answers"]] == [(answer["document"], [])]


def test_metadata():
    metadata = mask_metadata(NOTE["metadata"], Rules())
    assert metadata["patient"] == "V7"
    assert metadata["type"] == "Letter"
    assert metadata["date"] == "2024██████"
    assert metadata["author"] == "█████ ██████████ ██"
    assert set(metadata["mrn"]) == {HIDDEN}
    assert mask_metadata({"x": {"name": ["Ann"], "n": None, "b": True}}, Rules()) == {
        "x": {"name": ["███"], "n": None, "b": True}
    }


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-18",
        "18/03/2024",
        "3/18/24",
        "18.3.2024",
        "March 18, 2024",
        "18 March 2024",
        "Mar 2024",
        "18th of",
        "617-555-0134",
        "617.555.0134",
        "(617) 555-0134",
        "+1 617 555 0134",
        "MRN 4471902",
        "MRN#: A-447190",
        "MRN no. 447190",
        "MRN No.: 447190",
        "account # 4471-90",
        "medical record number: 447190",
        "Dr. Ames",
        "Mrs Lee",
        "Prof. van",
        "a.b-c@d.example.org",
        "123-45-6789",
        "[**2025-1-17**]",
        "18-Mar-2024",
        "18-MAR-24",
        "2024/03/18",
        "2024.3.18",
        "20240318",
        "20240318093000",
        "18th of March 2024",
        "Mar-18-2024",
        "6175550134",
        "16175550134",
        "0171 1234567",
        "0171/1234567",
        "020 7946 0958",
        "07700 900123",
    ],
)
def test_rules(text):
    masked_text = mask(f"On {text}, seen", Rules().find(f"On {text}, seen", {}))
    is_hidden = text not in ("18th of", "Prof. van")
    assert (HIDDEN in masked_text) == is_hidden, masked_text
    if is_hidden:
        assert not re.search(r"\d", masked_text)


@pytest.mark.parametrize(
    "name",
    [
        "DR. SMITH",
        "MR. JOHN SMITH",
        "Dr. van der Berg",
        "Miss Lee",
        "MISS LEE",
        "Mr D Hartnell",
        "Dr. J.R. Smith",
        "Dr.Smith",
        "Mr. John Q. Smith",
        "Ms de la Cruz",
        "Dr.\nSmith",
        "Prof. Łukasz O’Brien",
    ],
)
def test_names_after_a_title(name):
    masked_text = mask(f"Seen by {name}, who agrees", Rules().find(f"Seen by {name}, who agrees", {}))
    assert re.fullmatch(r"Seen by [█\s]+, who agrees", masked_text), masked_text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Patient Name: Horace Quillby", "Patient Name: ██████ ███████"),
        ("Patient: Quillby, Horace", "Patient: ████████ ██████"),
        ("PATIENT: QUILLBY, HORACE B.", "PATIENT: ████████ ██████ B."),
        ("Name: Philippa Tarrant", "Name: ████████ ███████"),
        (
            "MRN: 1234567\nName: Philippa J. van Tarrant DOB: unknown",
            "████ ███████\nName: ████████ ██ ███ ███████ DOB: unknown",
        ),
        ("Patient Name: Horace", "Patient Name: ██████"),
        ("Signed by Anneliese Brandvold, MD", "Signed by █████████ █████████, MD"),
        ("Electronically signed by: Anneliese Brandvold", "Electronically signed by: █████████ █████████"),
        ("Wound care by Jane Doe, RN at the bedside.", "Wound care by ████ ███, RN at the bedside."),
        ("Jane Q. Doe, M.D.", "████ ██ ███, M.D."),
        ("Attending: Ruth Ames", "Attending: ████ ████"),
        ("Seen with Ola Berg, DO.", "Seen with ███ ████, DO."),
    ],
)
def test_names_beside_labels_and_credentials(text, masked):
    assert mask(text, Rules().find(text, {})) == masked


def test_no_day_of_the_samples_is_visible():
    days = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}")
    assert sum(len(days.findall(document.text)) for document in samples.documents()) == 98
    for document in samples.documents():
        assert not days.search(mask(document.text, Rules().find(document.text, document.metadata))), document.id


def test_names_inside_fields_that_users_filter_by():
    metadata = {"patient": {"name": "Ann Lee", "id": "p1"}, "source": [{"author": "Bo Ek"}], "type": ["Letter"]}
    assert mask_metadata(metadata, Rules()) == {
        "patient": {"name": "███ ███", "id": "p1"},
        "source": [{"author": "██ ██"}],
        "type": ["Letter"],
    }
    assert mask("Lee saw Ek.", Rules().find("Lee saw Ek.", metadata)) == "███ saw ██."


def test_notices_contain_no_values(client):
    assert client.post("/api/search", json={"query": "lasix", "filters": {"date": "zz"}}).status_code == 422
    (notice,) = client.post("/api/search", json={"query": "lasix date:zz"}).json()["notices"]
    assert notice.startswith("no document has date=zz, which is not a date; write 2024")
    for field in ("author", "patient_name", "mrn"):
        for body in ({"query": "lasix", "filters": {field: "zz"}}, {"query": f"lasix {field}:zz"}):
            (notice,) = check_hidden(client.post("/api/search", json=body)).json()["notices"]
            assert notice == f"no document has {field}=zz"
        check_hidden(client.post("/api/ask", json={"question": "Lasix?", "filters": {field: "zz"}}))


@pytest.mark.parametrize(
    "text",
    [
        "MRN " + "no." * 5000 + "x",
        "a.-" * 20_000,
        "account" + " " * 50_000 + "x",
        "May" + " " * 50_000,
        "Dr. " * 20_000,
        "Dr. van der " * 10_000,
        "Dr. " + "A." * 50_000,
        "Dr." + " " * 50_000,
        "18-Mar-" * 20_000,
        "0171 " * 20_000,
        "2024-" * 20_000,
        "1" * 100_000,
        "617 " * 20_000,
        "3rd of " * 20_000,
        "A-a " * 20_000,
        "A-" * 20_000,
        "Name: " * 20_000,
        "Ann de la de la " * 8_000,
        "  Patient: Ann, " * 8_000,
    ],
)
def test_no_text_takes_long(text):
    started = time.perf_counter()
    list(Rules().find(text, {}))
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    "text",
    [
        "BP 120/80, HR 72",
        "1.5 mg",
        "Lasix 40 mg",
        "WBC 11.2",
        "T 38.5",
        "5/5 strength",
        "in May we",
        "T 98.6",
        "over 60 may need",
        "for 2 decades",
        "3 marked lesions",
        "Octreotide 50 mcg",
        "K 3 decreased",
        "given 0600 1200 1800",
        "E11.9, I50.22, 410.11",
        "HCV RNA 1,240,000 IU/mL",
        "viral load 1240000",
        "4500000000 cells/L",
        "10000000 CFU",
        "Plt 150-400",
        "co-careldopa 25/100",
        "sacubitril-valsartan 24-26 mg",
        "50/600/300 mg",
        "G2, P0-0-1-0",
        "Na 131 133 136 134 133",
        "INR 2.1 1.8 1.9",
        "pH 7.31",
        "EF 55-60%",
        "methadone 2019-2021",
        "SNOMED 22298006",
        "LOINC 2160-0",
        "CARDIAC MR STUDY",
        "MS PATIENTS",
        "DO NOT MISS DOSES",
        "QRS 94 ms, QTc 440 ms",
        "heparin 5000 units",
        "Mesalazine MR 2.4 g",
        "Patient: stable",
        "Patient: Stable And Comfortable",
        "PATIENT: ALERT AND ORIENTED",
        "Name: see above",
        "Name: See Above",
        "Drug name: Aspirin",
        "Drug name: Metoprolol Tartrate",
        "Patient Name: see above",
        "Signed by the patient",
        "Signed by: see below",
        "Attending: Internal Medicine",
        "Chest X-ray, PA and lateral",
        "Sodium Chloride, DO NOT mix",
        "The patient: Lasix was stopped",
    ],
)
def test_text_that_no_rule_hides(text):
    assert mask(text, Rules().find(text, {})) == text


@given(st.text(), st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50))))
def test_masking_keeps_the_length(text, spans):
    masked_text = mask(text, [Span(*span) for span in spans])
    assert len(masked_text) == len(text)
    assert all(masked in (original, HIDDEN) for masked, original in zip(masked_text, text, strict=True))


@given(st.text(max_size=200))
def test_rules_take_any_text(text):
    for span in Rules().find(text, {"author": text, "name": [text]}):
        assert 0 <= span.begin <= span.end <= len(text)


def test_a_deidentifier_of_your_own(serve, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from capr import Span\nclass Mine:\n    def find(self, text, metadata):\n"
        "        at = text.find('Lasix')\n        return [Span(at, at + 5)] if at >= 0 else []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    client = serve(deidentify="mine:Mine")
    assert isinstance(client, Client)
    assert client.get("/api/documents/a2").json()["text"] == "PLAN: █████ 40 mg daily."


def test_the_example_of_the_guide_adds_to_the_rules():
    guide = Path(__file__).parents[2] / "docs" / "guides" / "serve-a-department.md"
    (code,) = re.findall(r"```py\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    text = "Dr. Ames, St. Anne Hospital"
    assert mask(text, names["Hospitals"]().find(text, {})) == "███ ████, ███ ████ ████████"


@pytest.mark.parametrize("setting", ["none:None", "capr", "json:dumps", "capr.nothing:X"])
def test_a_deidentifier_that_does_not_exist_is_rejected(setting):
    with pytest.raises(CaprError, match="Fix"):
        load_deidentifier(setting)


def test_deidentification_is_off_by_default(serve):
    assert "Stratmore" in json.dumps(serve().get("/api/documents/a1").json())
