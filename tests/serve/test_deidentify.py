"""De-identification: replies contain no names, and offsets stay the same."""

import gzip
import json
import re
from pathlib import Path

import pytest
from served import Client, wait

from capr.documents import CaprError
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


def test_notices_contain_no_values(client):
    assert client.post("/api/search", json={"query": "lasix", "filters": {"date": "zz"}}).status_code == 422
    (notice,) = client.post("/api/search", json={"query": "lasix date:zz"}).json()["notices"]
    assert notice.startswith("no document has date=zz, which is not a date; write 2024")
    for field in ("author", "patient_name", "mrn"):
        for body in ({"query": "lasix", "filters": {field: "zz"}}, {"query": f"lasix {field}:zz"}):
            (notice,) = check_hidden(client.post("/api/search", json=body)).json()["notices"]
            assert notice == f"no document has {field}=zz"
        check_hidden(client.post("/api/ask", json={"question": "Lasix?", "filters": {field: "zz"}}))


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
