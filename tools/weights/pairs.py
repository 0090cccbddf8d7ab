"""Makes what the models that ship learn from, and what the experiments in docs/results.md do.

python tools/weights/pairs.py ../shared/data OUT

Writes into OUT, as NAME.pairs.gz: wikipedia, medquad, notes, questions and cases (which ship), mtsamples (which does
not); and as NAME.task.gz what train.py measures with: the tests; `wording`, which is MedQuAD without its test; and
`samples`, half of the questions that ship, to see whether a model still understands plain questions.
Nothing of a test is in them: no document about an entity of MedQuAD's test under any of its names, no article or note
that `capr evaluate wikisection` and `notes` test on, and no text of those tests, wherever else it stands. Of COVID-QA
and SQuAD, the documents by which `is_test` are left for reading to be tested on.
"""

import csv
import gzip
import json
import random
import sys
import time
from itertools import islice
from pathlib import Path

import capr
from capr.annotate.mentions import annotator
from capr.annotate.query import WORDINGS, Query, heading
from capr.documents import Annotation, Document, Span
from capr.evaluate import medquad, notes, wikisection
from capr.evaluate.split import is_test
from capr.search.prepare import prepared, wording
from capr.supervise import Labeller, Pool, labelled
from capr.train.pairs import Draw, Pairs, Text

HEADINGS = {  # of MTS-Dialog
    "FAM/SOCHX": "Family and Social History", "GENHX": "History of Present Illness", "CC": "Chief Complaint",
    "PASTMEDICALHX": "Past Medical History", "ROS": "Review of Systems", "PASTSURGICAL": "Past Surgical History",
    "ALLERGY": "Allergies", "MEDICATIONS": "Medications", "ASSESSMENT": "Assessment", "EXAM": "Physical Examination",
    "DIAGNOSIS": "Diagnosis", "DISPOSITION": "Disposition", "PLAN": "Plan", "EDCOURSE": "Emergency Department Course",
    "IMMUNIZATIONS": "Immunizations", "IMAGING": "Imaging", "GYNHX": "Gynecologic History",
    "PROCEDURES": "Procedures", "LABS": "Laboratory Data",
}  # fmt: skip
ASKED = {  # of a mention in a case report
    "disease": ("When was {} diagnosed?", "How was the {} treated?", "What caused the {}?", "Did the patient have {}?",
                "What led to the {}?", "Is there a family history of {}?", "How severe was the {}?", "Was it {}?"),
    "symptom": ("When did the {} begin?", "Did she have any {}?", "What was done about the {}?", "Why did he have {}?",
                "How long did the {} last?", "Was there {} on examination?", "Did the {} come back?"),
    "drug": ("Why was {} given?", "What dose of {} was given?", "When was {} started?", "Why was {} stopped?",
             "How did the patient respond to {}?", "Was {} continued at home?", "How was {} given, and for how long?"),
}  # fmt: skip
STARTS = ("What was", "Why was", "When was", "Which", "How was", "Did", "Was there", "How much", "Where was", "", "")
csv.field_size_limit(sys.maxsize)


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    finder = annotator(with_tagger=False)
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    tasks = [medquad.load(data), wikisection.load(data / "wikipedia_diseases")]
    tasks += [notes.load(capr.read(data / "mtsamples"), shown, finder=finder) for shown in (False, True)]
    for name, task in zip(("medquad", "wikipedia", "notes-hidden", "notes-shown"), tasks, strict=True):
        save_task(out / f"{name}.task.gz", task)
    tested, entities = medquad_test(data, tasks[0])
    texts = [text for task in tasks for text in task.passages.values()]

    def labeller(held_out=entities):
        return Labeller(finder, aliases=aliases, held_out=held_out, held_out_texts=texts)

    def kept(name, documents, rounds, labels):
        with Pool(labelled(documents, labels)) as pool:
            pairs = Pairs.drawn(pool, finder.gazetteer.vocabulary, rounds=rounds)
        save(name, pairs, labels.skipped)
        return pairs

    def save(name, pairs, skipped=""):
        pairs.save(out / f"{name}.pairs.gz")
        said = f"{len(pairs.passages):,} passages, {len(pairs.draws):,} draws {dict(skipped) if skipped else ''}"
        print(f"{time.monotonic() - begun:4.0f} s {name}: {said}", flush=True)

    articles = capr.read(data / "wikipedia_diseases" / "articles.jsonl")
    kept("wikipedia", (article for article in articles if not is_test(article.id)), 4, labeller())
    others = sorted(set((data / "medquad").glob("*/*.xml")) - set(tested))
    save_wording(out / "wording.task.gz", kept("medquad", capr.read(others, format="medquad"), 2, labeller()))
    kept("notes", shared_notes(data), 6, labeller(()))
    save("questions", questions(data))
    save("cases", asked_of_cases(data, finder))
    save_samples(out / "samples.task.gz", finder)
    samples = capr.read(data / "mtsamples" / "notes.jsonl")
    kept("mtsamples", (note for note in samples if not is_test(note.id)), 6, labeller(()))


def medquad_test(data, task):
    """The files of MedQuAD's test, and all names of the diseases that they and its queries are about."""
    files = [data / "medquad" / path for path in medquad.test_files(data / "cdv" / medquad.SOURCES)]
    names = set(task.entities)
    for document in capr.read(files, format="medquad"):
        names |= {document.title, *document.metadata.get("synonyms", [])}
    return files, names


def save_task(path, task):
    """For each query its wordings, a question if there is one, candidates and those that answer, by their numbers."""
    numbers = {id: number for number, id in enumerate(task.passages)}
    lists = [
        {
            "id": one.id, "wordings": one.query("tuple").wordings(), "question": one.question,
            "candidates": [numbers[id] for id in one.candidates], "relevant": [numbers[id] for id in one.relevant],
        }
        for one in task.asked
    ]  # fmt: skip
    write_task(path, task.passages, [task.openings.get(id, "") for id in task.passages], lists)


def save_wording(path, pairs, count=500):
    """Queries of training documents, by which the wording for search is chosen."""
    some = Pairs(pairs.passages, [draw for draw in pairs.draws if draw.questions and draw.names])
    chosen = random.Random("wording").sample(some.draws, min(count, len(some.draws)))
    lists = []
    for draw in chosen:
        ((_, candidates, relevant),) = Pairs(some.passages, [draw]).lists(64, 1)
        name, words = draw.names[0], heading(draw.heading)
        forms = [form.format(entity=name, aspect=words) for form in WORDINGS]
        lists.append({
            "id": str(len(lists)), "wordings": [draw.wordings(name)[0], *forms], "question": draw.questions[0],
            "candidates": candidates, "relevant": sorted(relevant),
        })  # fmt: skip
    texts = {str(number): text.text for number, text in enumerate(some.passages)}
    write_task(path, texts, [text.opening for text in some.passages], lists)


def save_samples(path, finder):
    """The questions about every other patient, and every other one of those that ask all notes or articles."""
    texts, of = {}, {}  # the passages of a patient, or of a collection
    questions = [question for question in capr.samples.questions() if question.answers]
    for collection in {question.collection for question in questions}:
        for document in capr.read(capr.samples.folder() / collection, strict=True):
            for entry in prepared(document, finder, b"").entries:
                texts[f"{document.id}:{entry.passage.span.begin}"] = wording(document.title, entry)
                place = len(texts) - 1, document.id, entry.passage.span
                of.setdefault(collection, []).append(place)
                of.setdefault(document.metadata.get("patient"), []).append(place)
    lists = []
    for number, question in enumerate(questions):
        if not (int(question.patient[1:]) if question.patient else number) % 2:
            continue
        candidates = of[question.patient or question.collection]
        relevant = {
            place for answer in question.answers for place, document, span in candidates
            if document == answer.document and span.begin <= answer.span.begin < span.end
        }  # fmt: skip
        asked = Query(question.question or "", entity=question.entity or "", aspect=question.aspect or "")
        lists.append({
            "id": question.id, "wordings": [asked.wording], "question": "",
            "candidates": [place for place, _, _ in candidates], "relevant": sorted(relevant),
        })  # fmt: skip
    write_task(path, texts, ["" for _ in texts], lists)


def write_task(path, passages, openings, lists):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        task = {"ids": list(passages), "passages": list(passages.values()), "openings": openings, "asked": lists}
        json.dump(task, file, ensure_ascii=False)


def shared_notes(data):
    """ACI-Bench's notes, and MTS-Dialog's sections, with the visits that they record in their metadata."""
    for path in sorted((data / "aci_bench").glob("*.csv")):
        if not path.stem.endswith("_metadata"):
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    id = f"aci-{path.stem}-{row['encounter_id']}"
                    yield Document(id, row["note"], metadata={"dialogue": row["dialogue"]})
    for path in sorted((data / "mts_dialog").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                text = row["section_text"]
                if text.strip() and row["section_header"] in HEADINGS:
                    section = Annotation("section", Span(0, len(text)), {"heading": HEADINGS[row["section_header"]]})
                    id, said = f"mts-{path.stem}-{row['ID']}", {"dialogue": row["dialogue"]}
                    yield Document(id, text, metadata=said, annotations=(section,))


def questions(data):
    """Questions that people asked, with the passage that answers: PubMedQA, COVID-QA, SQuAD."""
    passages, draws = [], []
    for id, record in json.loads((data / "pubmedqa" / "ori_pqal.json").read_text()).items():
        first = len(passages)
        parts = zip(record["LABELS"], record["CONTEXTS"], strict=True)
        labels = (id,), ("answer",)  # by which the parts of one abstract are known to answer the same question
        passages += [Text(id, "", label.capitalize(), text, *labels) for label, text in parts]
        asked = (record["QUESTION"],)
        draws += [Draw(number, id, "answer", questions=asked) for number in range(first, len(passages))]
    for document in capr.read([data / "covid_qa", data / "squad"]):
        if is_test(document.id):
            continue
        found = capr.passages(document)
        first = len(passages)
        passages += [Text(document.id, document.title, "", document[passage.span]) for passage in found]
        for question in document.annotated("question"):
            for answer in question.value["answers"][:1]:
                for place, passage in enumerate(found):
                    if passage.span.begin <= answer["begin"] < passage.span.end:
                        others = [first + n for n in range(len(found)) if n != place]
                        chosen = random.Random(f"{document.id} {place}").sample(others, min(8, len(others)))
                        asked = (question.value["question"],)
                        draws.append(Draw(first + place, questions=asked, negatives=tuple(chosen)))
    return Pairs(passages, draws)


def asked_of_cases(data, finder, words=60, count=2500):
    """Short passages of case reports and ACI-Bench's notes, and what a plain question about each might be.

    Either it asks for something that the passage mentions, or it has half of the words of one of its sentences. The
    others of the same document do not answer. Rough as they are, a teacher says how well each passage fits.
    """
    passages, draws = [], []
    for document in (*islice(cases(data), count), *(note for note in shared_notes(data) if note.id.startswith("aci"))):
        found = capr.passages(document, max_words=words)
        first, draw = len(passages), random.Random(document.id)
        passages += [Text(document.id, "", "", document[passage.span]) for passage in found]
        mentions = finder.annotate(document)
        for place in draw.sample(range(len(found)), min(4, len(found))) if len(found) > 2 else ():
            inside = [mention for mention in mentions if found[place].span.covers(mention.span)]
            if inside and draw.random() < 0.6:
                mention = draw.choice(inside)
                name = document[mention.span]
                asked = draw.choice(ASKED[mention.kind]).format(name)
            else:
                text = passages[first + place].text
                said = draw.choice(capr.sentences(text)).of(text).split()
                name = ""
                asked = " ".join([draw.choice(STARTS), *[w.strip(".,;:()") for w in said if draw.random() < 0.5][:12]])
            others = [n for n in range(len(found)) if n != place and not (name and name in passages[first + n].text)]
            if len(asked.split()) > 3 and others:
                chosen = tuple(first + n for n in draw.sample(others, min(8, len(others))))
                draws.append(Draw(first + place, questions=(asked.strip(),), negatives=chosen))
    return Pairs(passages, draws)


def cases(data):
    """Case reports that may be shared."""
    with (data / "e3c_cases" / "cases.jsonl").open(encoding="utf-8") as file:
        for record in map(json.loads, file):
            if record["licence"] in ("CC BY", "CC BY 4.0"):
                yield Document(record["id"], record["text"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
