"""Make the training data of the built-in models and of the experiments in docs/results.md.

python tools/weights/pairs.py ../shared/data OUT

The script writes these files into OUT:

- NAME.pairs.gz: wikipedia, medquad, notes, questions, cases, written, squad and keywords, for the built-in models;
  mtsamples, for experiments.
- NAME.task.gz: the tasks that train.py measures. These are the tests; `wording` (MedQuAD without its test); `samples`
  (half of the sample questions); `written-dev` and `written-test` (each question with the passages of its note); and
  `keywords-dev` (keyword queries over the same notes).

The training data contain nothing of a test: no document about an entity of MedQuAD's test under any of its names, no
article or note that `capr evaluate wikisection` and `notes` test on, and no text of those tests, in any document. The
documents of COVID-QA and SQuAD that `is_test` selects are reserved for tests of readers.
"""

import gzip
import json
import random
import sys
import time
from itertools import islice
from pathlib import Path

import capr
from capr.annotate.mentions import annotator
from capr.annotate.query import WORDINGS, Query
from capr.evaluate import medquad, notes, wikisection
from capr.index.prepare import prepare, wording
from capr.segment.aspects import heading
from capr.supervise import Labeller, Pool, labelled
from capr.supervise.pairs import TrainingPairs
from capr.supervise.split import is_test
from capr.text.names import plain_key

sys.path.insert(0, str(Path(__file__).parent))

from keywords import keyword_pairs
from notes import cases, shared_notes
from question_pairs import case_questions, library_text, questions, squad_questions, written_questions
from written import written_reports

KEYWORD_CASES = 500  # case reports from which keyword queries are made, beside all notes


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    finder = annotator(with_tagger=False)
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    tasks = [medquad.load(data), wikisection.load(data / "wikipedia_diseases")]
    tasks += [notes.load(capr.read(data / "mtsamples"), shown, finder=finder) for shown in (False, True)]
    for name, task in zip(("medquad", "wikipedia", "notes-hidden", "notes-shown"), tasks, strict=True):
        save_task(out / f"{name}.task.gz", task)
    test_files, entities = medquad_test(data, tasks[0])
    texts = [text for task in tasks for text in task.passages.values()]

    def make_labeller(held_out=entities):
        return Labeller(finder, aliases=aliases, held_out=held_out, held_out_texts=texts)

    def draw_and_save(name, documents, rounds, labeller):
        with Pool(labelled(documents, labeller)) as pool:
            pairs = TrainingPairs.from_pool(pool, finder.gazetteer.vocabulary, rounds=rounds)
        save(name, pairs, labeller.skipped)
        return pairs

    def save(name, pairs, skipped=""):
        pairs.save(out / f"{name}.pairs.gz")
        summary = f"{len(pairs.passages):,} passages, {len(pairs.draws):,} draws {dict(skipped) if skipped else ''}"
        print(f"{time.monotonic() - start:4.0f} s {name}: {summary}", flush=True)

    articles = capr.read(data / "wikipedia_diseases" / "articles.jsonl")
    draw_and_save("wikipedia", (article for article in articles if not is_test(article.id)), 4, make_labeller())
    training_files = sorted(set((data / "medquad").glob("*/*.xml")) - set(test_files))
    save_wording(
        out / "wording.task.gz",
        draw_and_save("medquad", capr.read(training_files, format="medquad"), 2, make_labeller()),
    )
    train_notes = [report.document for report in written_reports(data, "train")]
    draw_and_save("notes", (*shared_notes(data), *train_notes), 6, make_labeller(()))
    save("questions", questions(data))
    save("cases", case_questions(data, finder))
    save("written", written_questions(written_reports(data, "train"), finder))
    save("squad", squad_questions(data, {plain_key(name) for name in entities}))
    documents = [*train_notes, *shared_notes(data), *islice(cases(data), KEYWORD_CASES)]
    save("keywords", keyword_pairs(keyword_entries(documents, finder), finder.gazetteer.vocabulary))
    for part in ("dev", "test"):
        save_written(out / f"written-{part}.task.gz", written_questions(written_reports(data, part), finder))
    dev_notes = [report.document for report in written_reports(data, "dev")]
    save_keywords(
        out / "keywords-dev.task.gz",
        keyword_pairs(keyword_entries(dev_notes, finder), finder.gazetteer.vocabulary, "keywords-dev"),
    )
    save_samples(out / "samples.task.gz", finder)
    samples = capr.read(data / "mtsamples" / "notes.jsonl")
    draw_and_save("mtsamples", (note for note in samples if not is_test(note.id)), 6, make_labeller(()))


def medquad_test(data, task):
    """Return the files of MedQuAD's test, and all names of the diseases in these files and in its queries."""
    files = [data / "medquad" / path for path in medquad.test_files(data / "cdv" / medquad.SOURCES)]
    names = set(task.entities)
    for document in capr.read(files, format="medquad"):
        names |= {document.title, *document.metadata.get("synonyms", [])}
    return files, names


def save_task(path, task):
    """Save for each query its wordings, any question, and the numbers of candidates and relevant passages."""
    numbers = {id: number for number, id in enumerate(task.passages)}
    lists = [
        {
            "id": query.id,
            "wordings": query.query("tuple").wordings(),
            "question": query.question,
            "candidates": [numbers[id] for id in query.candidates],
            "relevant": [numbers[id] for id in query.relevant],
        }
        for query in task.queries
    ]
    write_task(path, task.passages, [task.openings.get(id, "") for id in task.passages], lists)


def save_wording(path, pairs, count=500):
    """Save queries of training documents as a task that serves to choose the wording for search."""
    named = TrainingPairs(pairs.passages, [draw for draw in pairs.draws if draw.questions and draw.names])
    sample = random.Random("wording").sample(named.draws, min(count, len(named.draws)))
    lists = []
    for draw in sample:
        ((_, candidates, relevant),) = TrainingPairs(named.passages, [draw]).lists(64, 1)
        name, words = draw.names[0], heading(draw.heading)
        forms = [form.format(entity=name, aspect=words) for form in WORDINGS]
        lists.append(
            {
                "id": str(len(lists)),
                "wordings": [draw.wordings(name)[0], *forms],
                "question": draw.questions[0],
                "candidates": candidates,
                "relevant": sorted(relevant),
            }
        )
    texts = {str(number): text.text for number, text in enumerate(named.passages)}
    write_task(path, texts, [text.opening for text in named.passages], lists)


def save_samples(path, finder):
    """Save the questions about every other patient, and every other question over all notes or articles."""
    texts, by_owner = {}, {}  # the passages of each patient and each collection
    questions = [question for question in capr.samples.questions() if question.answers]
    for collection in {question.collection for question in questions}:
        for document in capr.read(capr.samples.folder() / collection, strict=True):
            for entry in prepare(document, finder, b"").entries:
                texts[f"{document.id}:{entry.passage.span.begin}"] = wording(document.title, entry)
                location = len(texts) - 1, document.id, entry.passage.span
                by_owner.setdefault(collection, []).append(location)
                by_owner.setdefault(document.metadata.get("patient"), []).append(location)
    lists = []
    for number, question in enumerate(questions):
        if not (int(question.patient[1:]) if question.patient else number) % 2:
            continue
        candidates = by_owner[question.patient or question.collection]
        relevant = {
            number
            for answer in question.answers
            for number, document, span in candidates
            if document == answer.document and span.begin <= answer.span.begin < span.end
        }
        query = Query(question.question or "", entity=question.entity or "", aspect=question.aspect or "")
        lists.append(
            {
                "id": question.id,
                "wordings": [query.wording],
                "question": "",
                "candidates": [number for number, _, _ in candidates],
                "relevant": sorted(relevant),
            }
        )
    write_task(path, texts, ["" for _ in texts], lists)


def write_task(path, passages, openings, lists):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        openings = openings or ["" for _ in passages]
        task = {"ids": list(passages), "passages": list(passages.values()), "openings": openings, "asked": lists}
        json.dump(task, file, ensure_ascii=False)


def keyword_entries(documents, finder):
    """List the passages of documents as keyword_pairs takes them."""
    entries = []
    for document in documents:
        for entry in prepare(document, finder, b"").entries:
            text = library_text(document, entry)
            mentions = []
            for mention in entry.mentions:
                words = " ".join(document[mention.span].split())
                mentions.append((mention.kind, mention.concept.code if mention.concept else words.lower(), words))
            entries.append((document.id, text.title, text.heading, text.text, mentions))
    return entries


def save_written(path, pairs):
    """Save for each question the passages of its note."""
    lists = {}
    for draw in pairs.draws:
        candidates = sorted({draw.passage, *draw.negatives, *pairs.answering(draw)})
        lists[draw.entity] = {
            "id": draw.entity,
            "wordings": list(draw.questions),
            "question": "",
            "candidates": candidates,
            "relevant": sorted(pairs.answering(draw)),
        }
    write_task(path, {str(n): text.view("title") for n, text in enumerate(pairs.passages)}, [], list(lists.values()))


def save_keywords(path, pairs, count=600):
    """Save keyword queries, each over all passages."""
    sampled = random.Random("keywords-dev").sample(pairs.draws, min(count, len(pairs.draws)))
    lists = [
        {
            "id": draw.entity,
            "wordings": list(draw.questions),
            "question": "",
            "candidates": list(range(len(pairs.passages))),
            "relevant": sorted(pairs.answering(draw)),
        }
        for draw in sampled
    ]
    write_task(path, {str(n): text.view("title") for n, text in enumerate(pairs.passages)}, [], lists)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
