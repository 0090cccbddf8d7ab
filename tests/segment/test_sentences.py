import importlib.util
from pathlib import Path

import pytest

from capr.segment import sentences

spec = importlib.util.spec_from_file_location("marked", Path(__file__).with_name("marked.py"))
marked = importlib.util.module_from_spec(spec)
spec.loader.exec_module(marked)


def split(text: str) -> list[str]:
    return [span.of(text) for span in sentences(text)]


def test_sentences_agree_with_annotated_notes():
    correct = predicted = gold = 0
    for _, text, ends in marked.marked_texts("test"):
        predicted_ends = {span.end for span in sentences(text)}
        correct += len(ends & predicted_ends)
        predicted += len(predicted_ends)
        gold += len(ends)
    assert gold == 628
    assert marked.f1(correct, predicted, gold) >= 0.97


@pytest.mark.parametrize(
    "text",
    [
        "Seen by Dr. Roe.| She took Lasix 40 mg p.o. b.i.d.| No edema.",
        "Given 0.5 mg q.6h. p.r.n. pain.| T 38.5.| pH 7.35 vs. 7.41 earlier.",
        "J. R. Smith was seen with E. coli bacteremia and hepatitis C.| He left.",
        "Stable.| pt ambulating.| 2 units PRBC given.",
        "Was it an MI?| Unlikely!| Await troponin.",
        'He said "I am fine."| Then he fell.',
        "No edema.|No rash.",
        "Seen by Dr. [**Last Name (un) 12**].| [**Known lastname**] was discharged on [**2151-7-16**].",
        "Mr. ___ was seen by ___.| ___ will follow up.",
        "HISTORY OF PRESENT ILLNESS:|\nThis is a 60-year-old man.|\n\nPLAN|\nContinue aspirin.| Follow up.",
        "ALLERGIES: Penicillin.|\nPLAN: Continue ASA.| Follow up.",
        "Medications:|\n1. Aspirin 81 mg daily|\n2. Metoprolol 25 mg b.i.d.|\n- Senna|\n• Colace",
        "Vitals: T 98.6, HR 72, BP 120/80|\nLungs: clear",
        "Plan: 1. Admit to medicine.| 2. Start heparin.",
        "She lives at 2200 N. Main St. with her son.",
        "One\r\n|\r\nTwo",
    ],
)
def test_sentences_end_at_the_marks_only(text):
    parts = [part.strip() for part in text.split("|")]
    assert split(text.replace("|", "")) == [part for part in parts if part]


def test_wrapped_lines_are_joined():
    text = (
        "The patient is a 70-year-old woman with COPD and osteoporosis who was brought in\n"
        "by ambulance with four days of productive cough and fever to 39.2. She denies\n"
        "chest pain, and was seen by Dr.\n"
        "Brown in the emergency department, where she received 2 L of lactated Ringer's\n"
        "and 1 g of ceftriaxone.\n"
    )
    assert [" ".join(sentence.split()) for sentence in split(text)] == [
        "The patient is a 70-year-old woman with COPD and osteoporosis who was brought in by ambulance with four days "
        "of productive cough and fever to 39.2.",
        "She denies chest pain, and was seen by Dr. Brown in the emergency department, where she received 2 L of "
        "lactated Ringer's and 1 g of ceftriaxone.",
    ]


def test_a_text_without_words_has_no_sentences():
    assert split("") == []
    assert split(" \n\t\r\n") == []
