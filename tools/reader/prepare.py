"""Makes what readers learn from, and what they are chosen by and tested with.

python tools/reader/prepare.py ../shared/data OUT

Writes into OUT, in SQuAD's format:

- to learn from: squad (SQuAD, XQuAD, and COVID-QA), articles (SQuAD's paragraphs joined to their articles, so that
  a question has to be told from the other paragraphs of its article), clinical (questions made from ACI-Bench's and
  MTS-Dialog's notes and from case reports under CC BY, by templates and from clauses) and visits (questions that were
  asked in the visits which those notes record), as NAME.json.gz; and texts (sentences of Wikipedia's articles on
  diseases, of MedQuAD's documents and of the notes, with a blank that the rest of the text fills) to begin with;
- to choose by: dev-squad, dev-covid, dev-clinical (by templates), dev-clauses (from clauses, where there are any),
  dev-visits and dev-samples, the questions that ship about every other patient and article; likewise as NAME.json.gz;
- the tests, likewise, as test-NAME.json; test-samples is the other half of the questions that ship.

Documents by which `is_test` are for the tests, as everywhere in capr, a tenth of the others to choose by. No paragraph
of a test is learned from, wherever else it stands.
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

from pairs import cases, medquad_test, shared_notes

import capr
from capr.annotate.mentions import annotator
from capr.documents import Document, Span
from capr.evaluate import medquad
from capr.evaluate.split import is_test
from capr.search.models import shipped
from capr.search.rerank import OnnxRanker
from capr.supervise import Labeller
from capr.supervise.questions import questions
from capr.supervise.reports import Asked, Report, count, of_samples, read_reports, write_squad
from capr.supervise.spans import recurring
from capr.supervise.visits import visit

XQUAD = "xquad "
DEV = 0.28  # of all documents: the tests' fifth, and a tenth of the others
PER_NOTE = 30  # questions to learn from
PER_TEXT, LONG = 14, 1000  # questions with a blank, and characters of a text that has them, at least
HELD = 150  # notes that are measured with


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()

    def keep(name, reports):
        reports = [report for report in reports if report.questions]
        path = out / f"{name}.json"
        write_squad(reports, path)
        if not name.startswith("test-"):
            with gzip.open(f"{path}.gz", "wb") as file:
                file.write(path.read_bytes())
            path.unlink()
        asked, without = count(reports)
        said = f"{len(reports):,} reports, {asked:,} questions, {without:,} without an answer"
        print(f"{time.monotonic() - begun:4.0f} s {name}: {said}", flush=True)

    squad = of_file(data / "squad" / "squad2_half_dev.json")
    squad += of_file(data / "squad" / "xquad_en.json", XQUAD)
    covid = of_file(data / "covid_qa" / "covid_qa.json")
    learn, dev, test = parts(squad)
    covid_learn, covid_dev, covid_test = parts(covid)
    tested = {report.document.text for report in (*dev, *test)}
    learn = [report for report in learn if report.document.text not in tested]
    keep("squad", learn + covid_learn)
    keep("articles", articles(learn))
    keep("dev-squad", dev)
    keep("dev-covid", covid_dev)
    keep("test-squad", test)
    keep("test-covid", covid_test)
    notes = list({note.text: note for note in (*shared_notes(data), *cases(data))}.values())
    dialogues = {note.id: note.metadata["dialogue"] for note in notes if "dialogue" in note.metadata}
    learn, *held = parts([replace(note, metadata={}) if note.id in dialogues else note for note in notes])
    finder = annotator(with_tagger=False)
    keep("clinical", questions(learn, per_note=PER_NOTE, finder=finder))
    keep(
        "texts",
        recurring((one for one in (*articles_on_diseases(data, finder), *learn) if len(one.text) > LONG), PER_TEXT),
    )
    ranker = OnnxRanker(shipped("ranker"))
    for name, some in zip(("visits", "dev-visits", "test-visits"), (learn, *held), strict=True):
        keep(name, (visit(note, dialogues[note.id], ranker.scores) for note in some if note.id in dialogues))
    for name, some in zip(("dev", "test"), held, strict=True):
        some = sorted(some, key=lambda note: sha256(note.id.encode()).digest()[::-1])
        for kind, share in (("clinical", 0), ("clauses", 1)):
            found = (report for report in questions(some, finder=finder, clauses=share) if report.questions)
            keep(f"{name}-{kind}", islice(found, HELD))
    for name, odd in (("dev-samples", 1), ("test-samples", 0)):
        keep(name, [report for number, report in enumerate(of_samples()) if half(report.document, number) == odd])


def of_file(path, prefix=""):
    """The reports of a file; paragraphs of two files have the same ids, so those of one get something before them."""
    return [
        replace(report, document=replace(report.document, id=prefix + report.document.id))
        for report in read_reports(path)
    ]


def parts(things):
    """Notes or reports to learn from, to choose by, and to test with."""
    found = [], [], []
    for one in things:
        id = (one.document if isinstance(one, Report) else one).id.removeprefix(XQUAD)
        found[2 if is_test(id) else 1 if is_test(id, DEV) else 0].append(one)
    return found


def articles(paragraphs):
    """Paragraphs of one article after each other, with the questions that they answer."""
    groups = {}
    for report in paragraphs:
        groups.setdefault(report.document.title, {}).setdefault(report.document.text, []).append(report)
    for title, texts in groups.items():
        whole, asked = "", []
        for text, same in texts.items():
            shift = len(whole)
            whole += f"{text}\n\n"
            asked += [
                Asked(one.id, one.text, tuple(Span(a.begin + shift, a.end + shift) for a in one.answers))
                for report in same for one in report.questions if one.answers
            ]  # fmt: skip
        if len(texts) > 1:
            yield Report(Document(f"article {title}", whole, title), tuple(asked))


def articles_on_diseases(data, finder):
    """Wikipedia's articles and MedQuAD's documents, without those that other models are tested on."""
    for article in capr.read(data / "wikipedia_diseases" / "articles.jsonl"):
        if not is_test(article.id):
            yield article
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    tested, entities = medquad_test(data, medquad.load(data))
    labeller = Labeller(finder, aliases=aliases, held_out=entities)
    others = sorted(set((data / "medquad").glob("*/*.xml")) - set(tested))
    for document in capr.read(others, format="medquad"):
        if labeller.named(document):
            yield document


def half(document, number):
    patient = document.metadata.get("patient")
    return (int(patient[1:]) if patient else number) % 2


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
