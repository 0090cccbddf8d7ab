"""Make the training, development and test data of readers.

python tools/reader/prepare.py ../shared/data OUT

The script writes files in SQuAD's format into OUT.

Training data, as NAME.json.gz:

- squad: SQuAD, XQuAD and COVID-QA.
- articles: SQuAD's paragraphs joined into their articles, in which a reader has to choose the right paragraph.
- clinical: questions about ACI-Bench's and MTS-Dialog's notes and about case reports under CC BY, by templates and
  from clauses.
- squad1: SQuAD 1.1's training set, its paragraphs joined into their articles.
- visits: questions from the dialogues of those notes.
- written: the fictional notes.
- texts: sentences of Wikipedia's articles on diseases, of MedQuAD's documents and of the notes, with a blank that the
  rest of the text fills. Training begins with this file.

Development data, as dev-NAME.json.gz: written, squad, covid, clinical (by templates), clauses (from clauses), visits,
and samples, the sample questions about every other patient and article.

Test data, as test-NAME.json; test-samples is the other half of the sample questions.

Documents that `is_test` selects are test documents, as everywhere in capr. A tenth of the others are development
documents. The training data contain no paragraph of a test, in any document.
"""

import gzip
import json
import sys
import time
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "weights"))

from notes import cases, shared_notes
from pairs import medquad_test
from written import PARTS, written_reports

import capr
from capr.annotate.mentions import annotator
from capr.documents import Document, Span
from capr.evaluate import medquad
from capr.runtime.ranker import OnnxRanker
from capr.runtime.shipped import shipped
from capr.supervise import Labeller
from capr.supervise.questions import questions
from capr.supervise.recurring_terms import recurring_term_reports
from capr.supervise.reports import Report, ReportQuestion, count, read_reports, sample_reports, write_squad
from capr.supervise.split import is_test
from capr.supervise.visits import report_of_visit

XQUAD = "xquad "
DEV_SHARE = 0.28  # the share of test and development documents: a fifth, and a tenth of the others
PER_NOTE = 30  # the maximum number of training questions per note
PER_TEXT, MIN_TEXT_CHARS = 14, 1000  # the maximum number of questions with a blank, and the minimum length of a text
MAX_TEST_NOTES = 150  # the maximum number of notes in a development or test file


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    def write(name, reports):
        reports = [report for report in reports if report.questions]
        path = out / f"{name}.json"
        write_squad(reports, path)
        if not name.startswith("test-"):
            with gzip.open(f"{path}.gz", "wb") as file:
                file.write(path.read_bytes())
            path.unlink()
        question_count, unanswerable = count(reports)
        summary = f"{len(reports):,} reports, {question_count:,} questions, {unanswerable:,} without an answer"
        print(f"{time.monotonic() - start:4.0f} s {name}: {summary}", flush=True)

    squad = read_with_prefix(data / "squad" / "squad2_half_dev.json")
    squad += read_with_prefix(data / "squad" / "xquad_en.json", XQUAD)
    covid = read_with_prefix(data / "covid_qa" / "covid_qa.json")
    train, dev, test = split_in_three(squad)
    covid_train, covid_dev, covid_test = split_in_three(covid)
    test_texts = {report.document.text for report in (*dev, *test)}
    train = [report for report in train if report.document.text not in test_texts]
    write("squad", train + covid_train)
    write("articles", articles(train))
    write("dev-squad", dev)
    write("dev-covid", covid_dev)
    write("test-squad", test)
    write("test-covid", covid_test)
    for part, name in zip(PARTS, ("written", "dev-written", "test-written"), strict=True):
        write(name, written_reports(data, part))
    write("squad1", articles(read_with_prefix(data / "squad" / "squad1_train.json.gz")))
    notes = list({note.text: note for note in (*shared_notes(data), *cases(data))}.values())
    dialogues = {note.id: note.metadata["dialogue"] for note in notes if "dialogue" in note.metadata}
    train, *held_out = split_in_three([replace(note, metadata={}) if note.id in dialogues else note for note in notes])
    finder = annotator(with_tagger=False)
    write("clinical", questions(train, per_note=PER_NOTE, finder=finder))
    write(
        "texts",
        recurring_term_reports(
            (
                document
                for document in (*articles_on_diseases(data, finder), *train)
                if len(document.text) > MIN_TEXT_CHARS
            ),
            PER_TEXT,
        ),
    )
    ranker = OnnxRanker(shipped("ranker"))
    for name, part_notes in zip(("visits", "dev-visits", "test-visits"), (train, *held_out), strict=True):
        write(
            name,
            (report_of_visit(note, dialogues[note.id], ranker.scores) for note in part_notes if note.id in dialogues),
        )
    for name, part_notes in zip(("dev", "test"), held_out, strict=True):
        part_notes = sorted(part_notes, key=lambda note: sha256(note.id.encode()).digest()[::-1])
        for kind, share in (("clinical", 0), ("clauses", 1)):
            kind_reports = (
                report for report in questions(part_notes, finder=finder, clauses=share) if report.questions
            )
            write(f"{name}-{kind}", islice(kind_reports, MAX_TEST_NOTES))
    for name, half in (("dev-samples", 1), ("test-samples", 0)):
        write(
            name, [report for number, report in enumerate(sample_reports()) if half_of(report.document, number) == half]
        )


def read_with_prefix(path, prefix=""):
    """Read the reports of a file; a prefix keeps their ids apart from those of another file."""
    return [
        replace(report, document=replace(report.document, id=prefix + report.document.id))
        for report in read_reports(path)
    ]


def split_in_three(items):
    """Split notes or reports into training, development and test parts."""
    parts = [], [], []
    for item in items:
        id = (item.document if isinstance(item, Report) else item).id.removeprefix(XQUAD)
        parts[2 if is_test(id) else 1 if is_test(id, DEV_SHARE) else 0].append(item)
    return parts


def articles(paragraphs):
    """Yield articles joined from their paragraphs, with the questions that the paragraphs answer."""
    groups = {}
    for report in paragraphs:
        groups.setdefault(report.document.title, {}).setdefault(report.document.text, []).append(report)
    for title, texts in groups.items():
        text_so_far, questions = "", []
        for text, same_text_reports in texts.items():
            shift = len(text_so_far)
            text_so_far += f"{text}\n\n"
            questions += [
                ReportQuestion(
                    question.id,
                    question.text,
                    tuple(Span(answer.begin + shift, answer.end + shift) for answer in question.answers),
                )
                for report in same_text_reports
                for question in report.questions
                if question.answers
            ]
        if len(texts) > 1:
            yield Report(Document(f"article {title}", text_so_far, title), tuple(questions))


def articles_on_diseases(data, finder):
    """Yield Wikipedia's articles and MedQuAD's documents, without the test documents of other models."""
    for article in capr.read(data / "wikipedia_diseases" / "articles.jsonl"):
        if not is_test(article.id):
            yield article
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    test_files, test_entities = medquad_test(data, medquad.load(data))
    labeller = Labeller(finder, aliases=aliases, held_out=test_entities)
    training_files = sorted(set((data / "medquad").glob("*/*.xml")) - set(test_files))
    for document in capr.read(training_files, format="medquad"):
        if labeller.named(document):
            yield document


def half_of(document, number):
    """Return which half of the samples a document belongs to, 0 or 1: by its patient, else by its number."""
    patient = document.metadata.get("patient")
    return (int(patient[1:]) if patient else number) % 2


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
