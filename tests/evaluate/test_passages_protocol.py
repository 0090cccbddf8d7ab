"""Questions in SQuAD's format, asked of a library of their documents."""

import json

import pytest

from capr.documents import CaprError
from capr.evaluate.measures import measure
from capr.evaluate.passages import Passages, make_task
from capr.supervise.reports import read_reports

NOTES = {
    "n1": "HISTORY:\nFever since Monday. No cough.\n\nPLAN:\nParacetamol against the fever. Rest at home.",
    "n2": "HISTORY:\nA fall from a ladder.\n\nPLAN:\nFever charts twice a day.",
}
QUESTIONS = {
    "n1": [
        ("q1", "When did the fever begin?", ["since Monday"]),
        ("q2", "Which drug, beside rest, helps the fever?", ["Paracetamol"]),
    ],
    "n2": [("q3", "Which fall was it, and when?", ["fall from a ladder"]), ("q4", "Which antibiotic was given?", [])],
}


@pytest.fixture
def path(tmp_path):
    def record(id, question, answers):
        starts = [{"text": answer, "answer_start": note.index(answer)} for answer in answers]
        return {"id": id, "question": question, "answers": starts, "is_impossible": not answers}

    articles = []
    for name, note in NOTES.items():
        questions = [record(*question) for question in QUESTIONS[name]]
        articles.append({"title": name, "paragraphs": [{"context": note, "qas": questions}]})
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"version": "v2.0", "data": articles}))
    return path


def ask(path, **settings):
    tasks, progress = [], []
    protocol = Passages(data=path, **settings)
    task, run = protocol.ask(
        "bm25", "question", "scores", settings.pop("limit", 0), lambda *counts: progress.append(counts), tasks.append
    )
    assert tasks == [task]
    assert progress[-1][0] == progress[-1][1]
    return task, run


def test_the_passage_in_which_an_answer_begins_is_relevant(path):
    task, run = ask(path)
    texts = {query.id: [task.passages[id] for id in query.relevant] for query in task.queries}
    assert {id: text.split()[0] for id, (text,) in texts.items()} == {"q1": "HISTORY:", "q2": "PLAN:", "q3": "HISTORY:"}
    assert task.notices == ["1 question without an answer is left out"]
    for query in task.queries:
        (id,) = query.relevant
        assert [task.passages[id][span.begin : span.end] for span in query.sentences[id]]
        assert run.keys() == {"q1", "q2", "q3"}


@pytest.mark.parametrize(("everywhere", "documents"), [(False, 1), (True, 2)])
def test_a_question_is_searched_in_its_own_document_unless_everywhere_is_set(path, everywhere, documents):
    task, run = ask(path, everywhere=everywhere)
    assert len({task.spans[id][0] for id in run["q2"]}) == documents
    best = max(run["q2"], key=run["q2"].get)
    assert task.passages[best].startswith("PLAN:\nParacetamol")


def test_plain_questions_have_no_entity_or_aspect_to_match(path):
    evaluation = measure(*ask(path), "bm25", "question")
    assert evaluation.measures["R@5"] == 1
    assert not evaluation.matches


def test_limit_reduces_the_queries(path):
    assert [query.id for query in make_task(read_reports(path), path, 2).queries] == ["q1", "q2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"q2"', '"q1"'), "2 questions with the id 'q1'. Fix: "),
        (lambda text: text.replace("q1", "q9"), None),
    ],
)
def test_two_questions_with_the_same_id_are_reported(path, change, message):
    path.write_text(change(path.read_text()))
    reports = read_reports(path)
    if message is None:
        assert make_task(reports, path).queries[0].id == "q9"
    else:
        with pytest.raises(CaprError, match=message):
            make_task(reports, path)


def test_a_file_without_answers_is_reported(path):
    data = json.loads(path.read_text())
    data["data"] = data["data"][1:]
    del data["data"][0]["paragraphs"][0]["qas"][0]
    path.write_text(json.dumps(data))
    with pytest.raises(CaprError, match=r"has no question with an answer\. Fix: "):
        make_task(read_reports(path), path)
