"""Questions that plain clauses answer."""

import random

import pytest

import capr
from capr.annotate.mentions import annotator
from capr.documents import Document
from capr.supervise.clauses import clause_questions
from capr.supervise.clauses.candidates import find_candidates
from capr.supervise.clauses.rewording import drug_classes, lay_words, reword, use_lay_words
from capr.supervise.clauses.words import verbs
from capr.supervise.facts import Note
from capr.supervise.questions import CLAUSE, NoteFacts, is_unmentioned, questions

QUESTIONS = """
Apixaban was stopped because of gross hematuria.|Why was apixaban stopped?|gross hematuria
She did not receive alteplase because she was nine hours from the onset.|Why did {who} not receive alteplase?|she was nine hours from the onset
Warfarin was withheld due to a supratherapeutic INR.|Why was warfarin withheld?|a supratherapeutic INR
The biopsy was deferred owing to thrombocytopenia.|Why was the biopsy deferred?|thrombocytopenia
Surgery was postponed on account of fever.|Why was surgery postponed?|fever
Metformin was stopped in view of renal failure.|Why was metformin stopped?|renal failure
Because of persistent hypotension, norepinephrine was started.|Why was norepinephrine started?|persistent hypotension
A lumbar puncture was performed to exclude meningitis.|Why was the lumbar puncture performed?|to exclude meningitis
He was admitted for chest pain.|Why was {who} admitted?|chest pain
The drain was removed as the output had ceased.|Why was the drain removed?|the output had ceased
Painful gynecomastia led to discontinuation of spironolactone.|What led to discontinuation of spironolactone?|Painful gynecomastia
Apixaban was held before the procedure.|Which drug was held before the procedure?|Apixaban
A chest tube was placed on day 3.|What was placed on day 3?|A chest tube
The blood culture grew Klebsiella pneumoniae.|What did the blood culture grow?|Klebsiella pneumoniae
Computed tomography revealed a large splenic abscess.|What did computed tomography reveal?|a large splenic abscess
The MRI showed that the mass had grown.|What did the MRI show?|the mass had grown
She was treated with vancomycin and cefepime.|What was {who} treated with?|vancomycin and cefepime
He was started on heparin.|What was {who} started on?|heparin
She was diagnosed with sarcoidosis.|What was {who} diagnosed with?|sarcoidosis
He was discharged on oral prednisone.|What was {who} discharged on?|oral prednisone
He underwent an open appendectomy.|What did {who} undergo?|an open appendectomy
She complained of severe headache.|What did {who} complain of?|severe headache
Three days later, she developed a purpuric rash.|What did {who} develop three days later?|a purpuric rash
He was found to have a pheochromocytoma.|What was {who} found to have?|a pheochromocytoma
He was given intravenous ketamine.|What was {who} given?|intravenous ketamine
He died of septic shock.|What did {who} die of?|septic shock
We report a 40-year-old man who presented with hemoptysis.|What did {who} present with?|hemoptysis
The patient was admitted and underwent a craniotomy.|What did {who} undergo?|a craniotomy
Postoperatively she developed hypocalcemia.|What did {who} develop?|hypocalcemia
The urinalysis was unremarkable.|What was the result of the urinalysis?|unremarkable
She was discharged on day 12.|When was {who} discharged?|on day 12
Two weeks later, the rash resolved.|When did the rash resolve?|Two weeks later
The pacemaker was implanted in 2015.|When was the pacemaker implanted?|in 2015
He collapsed during a football match.|When did {who} collapse?|during a football match
The catheter was removed five days after the operation.|When was the catheter removed?|five days after the operation
Ceftriaxone was given for 14 days.|How long was ceftriaxone given?|14 days
She was intubated for three weeks.|How long was {who} intubated?|three weeks
He takes metoprolol twice daily.|How often does {who} take metoprolol?|twice daily
He received three units of blood.|How many units of blood did {who} receive?|three
Two stents were placed.|How many stents were placed?|Two
She lost 12 kg.|How much weight did {who} lose?|12 kg
There was a 4 mm perforation.|How large was the perforation?|4 mm
CT showed a cystic lesion measuring 3 x 4 cm.|How large was the cystic lesion?|3 x 4 cm
The serum creatinine was 3.4 mg/dL.|How high was the serum creatinine?|3.4 mg/dL
A 57-year-old man was seen.|How old was {who}?|57-year-old
She was transferred to the intensive care unit.|Where was {who} transferred?|the intensive care unit
A nodule was found in the left upper lobe.|Where was the nodule found?|the left upper lobe
He had severe pain in the left leg.|Where was the severe pain?|the left leg
She was seen by a rheumatologist.|By whom was {who} seen?|a rheumatologist
His wife called an ambulance.|Who called an ambulance?|His wife
The diagnosis was confirmed by renal biopsy.|How was the diagnosis confirmed?|by renal biopsy
He had not struck his head.|Had {who} struck his head?|had not struck his head
She did not lose consciousness.|Did {who} lose consciousness?|did not lose consciousness
Dialysis was not felt to be necessary.|Was dialysis felt to be necessary?|was not felt to be necessary
There was no evidence of hemorrhage.|Was there any evidence of hemorrhage?|no evidence of hemorrhage
The echocardiogram showed no vegetation.|Did the echocardiogram show any vegetation?|no vegetation
He denied any intentional overdose.|Did {who} have intentional overdose?|denied any intentional overdose
There was a 4 mm perforation.|Was there a perforation?|a 4 mm perforation
She was treated with insulin.|Was {who} treated with insulin?|was treated with insulin
When she tried to void, she became unresponsive.|What happened when she tried to void?|she became unresponsive
After the second dose, he developed hives.|What happened after the second dose?|he developed hives
""".strip().splitlines()

WITHOUT_QUESTIONS = """
This was repeated.
It resolved.
Allergies: none.
Lisinopril 20 mg PO daily.
Which was then removed.
They were followed up.
Stable.
Patient 2 was treated with insulin because of hyperglycemia.
Two patients were treated with insulin.
""".strip().splitlines()

REPORT = (
    "A 61-year-old man presented with hematuria. Apixaban was stopped because of gross hematuria. Cystoscopy revealed a "
    "bladder tumor. He was transferred to the urology ward on day 3. He did not receive a transfusion. Two weeks later, he "
    "developed a deep vein thrombosis. He was treated with heparin. When he stood up, he fainted."
)


@pytest.fixture(scope="module")
def finder():
    return annotator(with_tagger=False)


@pytest.fixture(scope="module")
def notes(finder):
    documents = [document for document in capr.samples.documents() if document.metadata["source"] == "notes"]
    return [Note.from_document(document, finder) for document in documents[:30]]


@pytest.mark.parametrize("row", QUESTIONS)
def test_asks_about_clauses(row, finder):
    sentence, question, answer = row.split("|")
    questions = {
        (candidate.words, candidate.answer.of(sentence))
        for candidate in find_candidates(Note.from_document(Document("1", sentence), finder))
    }
    assert (question, answer) in questions


@pytest.mark.parametrize("sentence", WITHOUT_QUESTIONS)
def test_asks_nothing_about_sentences_that_no_rule_understands(sentence, finder):
    assert list(clause_questions(Note.from_document(Document("1", sentence), finder), random.Random(0))) == []


def test_questions_and_answers_are_well_formed(notes):
    total = 0
    for note in notes:
        for _, question, span in clause_questions(note, random.Random(1)):
            answer = note.document[span]
            total += 1
            assert question[0].isupper()
            assert question.endswith("?")
            assert "{" not in question
            assert 3 <= len(question.split()) <= 22
            assert 1 <= len(answer.split()) <= 25
            assert answer == answer.strip()
            assert answer.lower() not in question.lower()
    assert total > 60


def test_one_seed_gives_the_same_questions(finder):
    note = Note.from_document(Document("1", REPORT), finder)
    expected = list(clause_questions(note, random.Random(5)))
    assert expected == list(clause_questions(note, random.Random(5)))
    assert len({tuple(clause_questions(note, random.Random(seed))) for seed in range(5)}) > 1
    assert {"why", "what", "where", "when", "yes or no", "what happened"} <= {kind for kind, _, _ in expected}


def test_drops_a_question_with_different_answers_in_two_sentences(finder):
    text = "She developed a rash. Later she was seen again. The patient developed a fever."
    candidates = clause_questions(Note.from_document(Document("1", text), finder), random.Random(0))
    assert not [question for kind, question, _ in candidates if kind == "what"]


def test_calls_a_drug_by_its_class_if_the_note_has_one_drug_of_the_class(finder):
    note = Note.from_document(Document("1", "Apixaban was stopped because of bleeding."), finder)
    note_with_two = Note.from_document(
        Document("2", "Apixaban was stopped because of bleeding. Warfarin was started."), finder
    )
    answer = next(candidate.answer for candidate in find_candidates(note))
    wordings = {reword(note, "Why was apixaban stopped?", answer, random.Random(seed)) for seed in range(40)}
    assert {"Why was apixaban stopped?", "Why was the blood thinner stopped?"} <= wordings
    wordings = {reword(note_with_two, "Why was apixaban stopped?", answer, random.Random(seed)) for seed in range(40)}
    assert not any("thinner" in words for words in wordings)


def test_tables_have_their_entries():
    assert len(drug_classes()) > 250
    assert len(set(drug_classes().values())) > 40
    assert len(lay_words()[0]) > 3000
    assert verbs()["undergo"].past == "underwent"
    assert verbs()["deny"].past == "denied"
    assert verbs()["receive"].participle == "received"


def test_reports_contain_clause_questions(finder):
    report = Document("1", REPORT)
    (with_clauses,) = questions([report], per_note=0, unanswerable=0, finder=finder)
    without = list(questions([report], per_note=0, unanswerable=0, finder=finder, clauses=0))
    assert len(with_clauses.questions) >= 5 + sum(len(item.questions) for item in without)
    with pytest.raises(capr.CaprError, match="Fix: give it from 0 to 1"):
        list(questions([report], clauses=2))


def test_a_clause_question_is_unmentioned_in_a_note_without_its_drug(finder):
    note_facts = NoteFacts.from_document(Document("1", REPORT), finder, random.Random(2))
    facts = [fact for fact, _ in note_facts.clauses if fact.key]
    assert facts
    assert all(fact.kind.startswith(CLAUSE) for fact in facts)
    for fact in facts:
        assert not is_unmentioned(fact, note_facts.document.text, note_facts.lower_text, note_facts.keys)
        assert is_unmentioned(fact, "The ankle was sprained.", "the ankle was sprained.", frozenset())


@pytest.mark.parametrize(
    ("question", "lay_question"),
    [
        ("Did she have hematuria?", "Did she have blood in the urine?"),
        ("Was a thrombus seen?", "Was a blood clot seen?"),
        ("Was any thrombosis seen?", "Was any blood clot seen?"),  # the lay words lose their article
        ("Did he undergo a splenectomy?", "Did he go through a removal of the spleen?"),
        ("Was there an ulceration?", "Was there an open sore?"),
        ("What is his name?", "What is his name?"),
    ],
)
def test_replaces_clinical_words_with_lay_words(question, lay_question):
    assert lay_question in {use_lay_words(question, random.Random(seed)) for seed in range(60)}
    assert question in {use_lay_words(question, random.Random(seed)) for seed in range(60)}
