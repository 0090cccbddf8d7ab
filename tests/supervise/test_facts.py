"""Facts of notes: what the finders find, and what they ignore."""

import pytest

from capr.annotate.mentions import annotator
from capr.documents import Document
from capr.supervise.facts import Note, find_drugs_without_dose, find_facts, mention_patterns
from capr.supervise.facts.fields import headings
from capr.supervise.questions import wordings


def find_certain(text, *kinds):
    note = Note.from_document(Document("1", text), annotator(with_tagger=False))
    return [
        (fact.kind, fact.subject, fact.answer.of(text))
        for fact in find_facts(note)
        if fact.certain and (not kinds or fact.kind in kinds)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Lisinopril 20 mg PO daily", [("dose", "20 mg"), ("route", "PO"), ("frequency", "daily")]),
        (
            "Takes metoprolol succinate XL 50 mg p.o. b.i.d.",
            [("dose", "50 mg"), ("route", "p.o."), ("frequency", "b.i.d.")],
        ),
        ("We will increase her lisinopril to 40 mg once a day.", [("dose", "40 mg"), ("frequency", "once a day")]),
        ("He received 80 mg of furosemide.", [("dose", "80 mg")]),
        (
            "Oxycodone 5 mg every 6 to 8 hours as needed.",
            [("dose", "5 mg"), ("frequency", "every 6 to 8 hours as needed")],
        ),
        ("Furosemide 40 mg o.d.\nAtorvastatin", [("dose", "40 mg"), ("frequency", "o.d.")]),
        ("Aspirin 81 mg/day", [("dose", "81 mg/day")]),
        ("Glucose 112 mg/dL", []),
        ("Lisinopril was stopped.", []),
        ("Denies aspirin 81 mg daily.", []),
        ("Lidocaine 1% was injected.", []),
    ],
)
def test_finds_how_a_patient_takes_a_drug(text, expected):
    kinds = ("dose", "route", "frequency")
    assert [(kind, answer) for kind, _, answer in find_certain(text, *kinds)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Citalopram 10 mg once daily for depression.",
            [("reason", "citalopram", "depression"), ("treatment", "depression", "Citalopram")],
        ),
        (
            "Ibuprofen 400 mg PO PRN back pain",
            [("reason", "ibuprofen", "back pain"), ("treatment", "back pain", "Ibuprofen")],
        ),
        (
            "Hypertension, well controlled on lisinopril and amlodipine.",
            [("treatment", "hypertension", "lisinopril and amlodipine")],
        ),
        (
            "Compazine or Zofran p.r.n. nausea.",
            [("reason", "zofran", "nausea"), ("treatment", "nausea", "Compazine or Zofran")],
        ),
        ("She takes Chantix for smoking cessation.", []),
        ("Aspirin 81 mg for life.", []),
        ("No fever. Vancomycin for 6 weeks.", []),
    ],
)
def test_finds_what_a_drug_treats(text, expected):
    assert find_certain(text, "reason", "treatment") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Creatinine 1.4 mg/dL.", [("creatinine", "1.4 mg/dL")]),
        ("Her hemoglobin A1c was 7.2%.", [("hemoglobin A1c", "7.2%")]),
        ("UreaN-29* Creat-1.4* Na-133*", [("creatinine", "1.4"), ("sodium", "133"), ("BUN", "29")]),
        ("LVEF 25%. BP 148/92", [("ejection fraction", "25%"), ("blood pressure", "148/92")]),
        ("INR goal 2-3", []),
        ("potassium 20 mEq daily", []),
        ("Creatinine 1.4 on arrival, improved to 1.2", []),
        ("Na             138         --        135     129", []),
        ("Urine albumin/creatinine 11 mg/g", []),
        ("weight 12 weeks ago", []),
        ("glucose 4 times a day", []),
    ],
)
def test_finds_measured_values(text, expected):
    assert [(subject, answer) for _, subject, answer in find_certain(text, "value")] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CXR showed cardiomegaly and edema. He was admitted.", [("CXR", "cardiomegaly and edema")]),
        (
            "X-ray of the right knee demonstrates residual arthritis.",
            [("x-ray of the right knee", "residual arthritis")],
        ),
        ("The CT was reviewed.", []),
    ],
)
def test_finds_what_an_examination_showed(text, expected):
    assert [(subject, answer) for _, subject, answer in find_certain(text, "shown")] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He denies chest pain.", [("absent", "chest pain", "denies chest pain")]),
        ("Denies chest pain. Later chest pain came back.", []),
        (
            "FAMILY HISTORY:\nMother with hypertension.\n",
            [("relative", "hypertension", "Mother"), ("family", "hypertension", "Mother with hypertension")],
        ),
        (
            "She came with her mother complaining of a four-day history of cold symptoms.",
            [("lasted", "cold symptoms", "four-day")],
        ),
        (
            "FAMILY HISTORY:\nGreat grandmother on her father's side has dementia.\n",
            [
                ("relative", "dementia", "Great grandmother"),
                ("family", "dementia", "Great grandmother on her father's side has dementia"),
            ],
        ),
        ("Her ex-husband died from pancreatitis secondary to alcohol abuse.", []),
        ("FAMILY HISTORY:\nNo family history of diabetes.\n", []),
        ("Anemia, likely due to chronic kidney disease.", [("cause", "anemia", "chronic kidney disease")]),
        ("Type 2 diabetes, diagnosed in 2015.", [("diagnosed", "type 2 diabetes", "2015")]),
        ("Cough for the past 3 weeks.", [("lasted", "cough", "3 weeks")]),
        ("Laparoscopic cholecystectomy in 2019.", [("operation date", "laparoscopic cholecystectomy", "2019")]),
        ("Depression, on sertraline since 2020", [("taken since", "sertraline", "2020")]),
    ],
)
def test_finds_problems_and_dates(text, expected):
    kinds = ("absent", "relative", "family", "cause", "diagnosed", "lasted", "operation date", "taken since")
    assert find_certain(text, *kinds) == expected


NOTE = """Admission Date:  [**2024-3-11**]              Discharge Date:   [**2024-3-18**]

CHIEF COMPLAINT: Shortness of breath

ALLERGIES: Penicillins (hives and lip swelling)

SOCIAL HISTORY: Married. Quit smoking in 2019. Two beers on a weekend. Works as a truck driver.

ESTIMATED BLOOD LOSS: 15 mL.   COMPLICATIONS: None.

POSTOPERATIVE DIAGNOSIS: Same.

HISTORY: This is a 61-year-old man. He will follow up in 3 weeks.
"""


def test_finds_fields_habits_and_dates_of_a_note():
    assert {kind: answer for kind, _, answer in find_certain(NOTE)} == {
        "admitted": "[**2024-3-11**]",
        "discharged": "[**2024-3-18**]",
        "chief complaint": "Shortness of breath",
        "allergies": "Penicillins (hives and lip swelling)",
        "reaction": "hives and lip swelling",
        "smoking": "Quit smoking in 2019",
        "alcohol": "Two beers on a weekend",
        "occupation": "a truck driver",
        "blood loss": "15 mL",
        "age": "61-year-old",
        "follow-up": "in 3 weeks",
    }


def test_finds_drugs_without_a_dose():
    text = "He was given enoxaparin and aspirin. Aspirin 81 mg daily."
    note = Note.from_document(Document("1", text), annotator(with_tagger=False))
    assert [name for name, _ in find_drugs_without_dose(note)] == []
    note = Note.from_document(Document("1", "He was given enoxaparin. " * 3), annotator(with_tagger=False))
    assert [name for name, _ in find_drugs_without_dose(note)] == ["enoxaparin"]


def test_every_kind_has_wordings():
    kinds = set(headings().values())
    assert kinds <= set(wordings())
    assert set(mention_patterns()) >= {"creatinine", "ejection fraction"}
    for wording in wordings().values():
        for template in wording.templates:
            assert template.endswith("?")
            assert template.format(subject="x", who="he", whose="his", who_him="him", whose_own="his")
