"""Makes what the discourse models of docs/cdv.md learn from and are measured with.

python tools/cdv/prepare.py ../shared/data OUT

Writes into OUT: wikipedia.discourses.gz (sentences of articles, with flags and labels), described.json.gz (sentences
that describe entities, of DOID and MedQuAD, for the space of codes), words300.npz and words128.npz (subword vectors of
the articles' sentences; needs gensim), and as NAME.task.gz the tests `medquad` and
`wikipedia`, and two to choose by: `dev-wikipedia`, a tenth of the articles that are no test, which train.py --dev
leaves out of training, and `dev-medquad`, MedQuAD's documents that are no test, about diseases on which there is no
article to learn from.
Nothing of a test is in them: no document about an entity of MedQuAD's test under any of its names, no article that
`capr evaluate wikisection` tests on, and no whole passage of those tests, wherever else it stands.
"""

import gzip
import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "weights"))

from pairs import medquad_test

import capr
from capr.annotate.mentions import annotator
from capr.annotate.names import plain_key
from capr.evaluate import medquad, wikisection
from capr.evaluate.discourse import inside
from capr.evaluate.split import is_test
from capr.evaluate.task import Asked, Task, candidates
from capr.evaluate.terms import Terms
from capr.segment import sentences, structure
from capr.supervise import Labeller
from capr.train.discourses import Discourses
from capr.train.words import train_words

DEV = 0.28  # of all articles: the test's fifth, and a tenth of the others
HEADINGS = {  # by which CDV asks for MedQuAD's aspects
    "exams and tests": "diagnosis", "symptoms": "symptoms and presentation", "stages": "staging",
    "genetic changes": "genetic mechanism", "causes": "causes and mechanism", "susceptibility": "risk factors",
    "considerations": "management considerations", "research": "research directions and trials",
    "frequency": "frequency and epidemiology", "inheritance": "genetic inheritance", "outlook": "prognosis",
    "information": "information", "treatment": "treatment", "prevention": "prevention",
    "complications": "complications",
}  # fmt: skip


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()

    def say(*words):
        print(f"{time.monotonic() - begun:4.0f} s", *words, flush=True)

    finder = annotator(with_tagger=False)
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    articles = data / "wikipedia_diseases" / "articles.jsonl"
    tests = {"medquad": medquad.load(data), "wikipedia": wikisection.load(articles)}
    tested, entities = medquad_test(data, tests["medquad"])
    texts = [text for task in tests.values() for text in task.passages.values()]
    labeller = Labeller(finder, aliases=aliases, held_out=entities, held_out_texts=texts)
    learned = Discourses.read((one for one in capr.read(articles) if not is_test(one.id)), labeller)
    learned.save(out / "wikipedia.discourses.gz")
    say(f"{len(learned.lessons):,} articles", dict(labeller.skipped))
    others = sorted(set((data / "medquad").glob("*/*.xml")) - set(tested))
    described = list(descriptions(data / "ontologies" / "doid_2018.jsonl", others, labeller))
    with gzip.open(out / "described.json.gz", "wt", encoding="utf-8") as file:
        json.dump(described, file, ensure_ascii=False)
    say(f"{len(described):,} sentences that describe entities")
    known = {plain_key(name) for names in learned.entities for name in names}
    kept = {lesson.id for lesson in learned.lessons}
    tests["dev-wikipedia"] = wikisection.load(articles, lambda id: id in kept and is_dev(id))
    tests["dev-medquad"] = unseen(others, known | {plain_key(name) for name in entities})
    for name, task in tests.items():
        save_task(out / f"{name}.task.gz", task)
        say(name, f"{len(task.documents):,} documents, {len(task.asked):,} queries")
    for size in (300, 128):
        train_words(learned.texts, size).save(out / f"words{size}.npz")
        say(f"words of {size} dimensions")


def descriptions(ontology, files, labeller):
    """Names of entities with a sentence each: DOID's definitions, and what MedQuAD tells of them in general."""
    with ontology.open(encoding="utf-8") as lines:
        for line in lines:
            disease = json.loads(line)
            yield from said(disease["label"], disease["synonyms"], disease["definition"] or "", labeller)
    for document in medquad.layout(capr.read(files, format="medquad")):
        for section in document.annotated("section"):
            if section.value.get("aspect") == "information":
                synonyms = document.metadata.get("synonyms", [])
                yield from said(document.title, synonyms, document[section.span], labeller)


def said(name, synonyms, text, labeller):
    """The names of an entity with each sentence of a text, unless it or they are held out."""
    names = labeller.named(capr.Document(name, text, name, {"synonyms": synonyms}))
    for sentence in sentences(text) if names else ():
        if not labeller.is_held_out_text(sentence.of(text)):
            yield names, sentence.of(text)


def is_dev(id):
    """Whether an article is one to choose by."""
    return is_test(id, DEV) and not is_test(id)


def unseen(files, known, limit=600):
    """A test like MedQuAD's from documents about other diseases than those that are known."""
    documents, passages, spans, of, members, asked = {}, {}, {}, {}, {}, {}
    for document in medquad.layout(capr.read(files, format="medquad")):
        names = [document.title, *document.metadata.get("synonyms", [])]
        if len(documents) >= limit or document.id in documents or any(plain_key(name) in known for name in names):
            continue
        documents[document.id] = document
        for number, section in enumerate(document.annotated("section")):
            id = f"{document.id}-{number}"
            if len(document[section.span]) < medquad.SHORTEST:
                continue
            passages[id], spans[id], of[id] = document[section.span], (document.id, section.span), document.id
            members.setdefault(document.id, []).append(id)
            if (aspect := section.value.get("aspect")) in HEADINGS:
                asked.setdefault((document.title, aspect), []).append(id)
    index = Terms(passages)
    queries = []
    for number, ((entity, aspect), relevant) in enumerate(asked.items()):
        words = re.sub("[/:-]", " ", f"{entity} {HEADINGS[aspect]}")
        listed = candidates(relevant, index.best(words, 64), members, of)
        groups = {"aspect": aspect}
        queries.append(Asked(str(number), entity, HEADINGS[aspect], "", frozenset(relevant), listed, groups))
    return Task("dev-medquad", passages, queries, documents=documents, spans=spans)


def save_task(path, task):
    """Documents as sentences and flags; passages as a document's number and the places of its sentences."""
    numbers, documents, cut = {}, [], {}
    for number, document in enumerate(task.documents.values()):
        numbers[document.id] = number
        cut[document.id] = spans = sentences(document.text)
        flags = [list(flags) for flags in structure(document.text, spans)]
        documents.append({"id": document.id, "sentences": [document[span] for span in spans], "flags": flags})
    places = {id: place for place, id in enumerate(task.passages)}
    passages = [(numbers[task.spans[id][0]], inside(cut[task.spans[id][0]], task.spans[id][1])) for id in task.passages]
    asked = [
        {
            "id": one.id, "entity": one.entity, "aspect": one.aspect, "groups": dict(one.groups),
            "candidates": [places[id] for id in one.candidates], "relevant": sorted(places[id] for id in one.relevant),
        }
        for one in task.asked
    ]  # fmt: skip
    with gzip.open(path, "wt", encoding="utf-8") as file:
        whole = {"documents": documents, "passages": passages, "ids": list(task.passages), "asked": asked}
        json.dump(whole, file, ensure_ascii=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
