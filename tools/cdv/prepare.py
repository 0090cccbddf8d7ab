"""Make the training data and the tests of the discourse models in docs/explanation/cdv.md.

python tools/cdv/prepare.py ../shared/data OUT

The script writes these files into OUT:

- wikipedia.discourses.gz: sentences of articles, with flags and labels.
- described.json.gz: sentences of DOID and MedQuAD that describe entities, for the space of codes.
- words300.npz and words128.npz: subword vectors of the articles' sentences; needs gensim.
- NAME.task.gz: the tests `medquad` and `wikipedia`, and two development tests. `dev-wikipedia` is a tenth of the
  articles outside of the test; train.py --dev excludes it from training. `dev-medquad` has MedQuAD's documents outside
  of the test about diseases without an article to learn from.

The training data contain nothing of a test: no document about an entity of MedQuAD's test under any of its names, no
article that `capr evaluate wikisection` tests on, and no whole passage of those tests, in any document.
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
from capr.evaluate import medquad, wikisection
from capr.evaluate.discourse import inside
from capr.evaluate.task import Task, TaskQuery, candidates
from capr.evaluate.term_baselines import Terms
from capr.segment import sentences, structure
from capr.supervise import Labeller
from capr.supervise.discourses import TrainingDiscourses
from capr.supervise.split import is_test
from capr.text.names import plain_key
from capr.train.word_vectors import train_words

DEV_SHARE = 0.28  # the share of test and development articles: a fifth, and a tenth of the others
CDV_HEADINGS = {  # CDV's headings for MedQuAD's aspects
    "exams and tests": "diagnosis",
    "symptoms": "symptoms and presentation",
    "stages": "staging",
    "genetic changes": "genetic mechanism",
    "causes": "causes and mechanism",
    "susceptibility": "risk factors",
    "considerations": "management considerations",
    "research": "research directions and trials",
    "frequency": "frequency and epidemiology",
    "inheritance": "genetic inheritance",
    "outlook": "prognosis",
    "information": "information",
    "treatment": "treatment",
    "prevention": "prevention",
    "complications": "complications",
}


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    def log(*words):
        print(f"{time.monotonic() - start:4.0f} s", *words, flush=True)

    finder = annotator(with_tagger=False)
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    articles = data / "wikipedia_diseases" / "articles.jsonl"
    tests = {"medquad": medquad.load(data), "wikipedia": wikisection.load(articles)}
    test_files, test_entities = medquad_test(data, tests["medquad"])
    texts = [text for task in tests.values() for text in task.passages.values()]
    labeller = Labeller(finder, aliases=aliases, held_out=test_entities, held_out_texts=texts)
    discourses = TrainingDiscourses.read(
        (article for article in capr.read(articles) if not is_test(article.id)), labeller
    )
    discourses.save(out / "wikipedia.discourses.gz")
    log(f"{len(discourses.documents):,} articles", dict(labeller.skipped))
    training_files = sorted(set((data / "medquad").glob("*/*.xml")) - set(test_files))
    descriptions = list(describe_entities(data / "ontologies" / "doid_2018.jsonl", training_files, labeller))
    with gzip.open(out / "described.json.gz", "wt", encoding="utf-8") as file:
        json.dump(descriptions, file, ensure_ascii=False)
    log(f"{len(descriptions):,} sentences that describe entities")
    known_names = {plain_key(name) for names in discourses.entities for name in names}
    kept_ids = {document.id for document in discourses.documents}
    tests["dev-wikipedia"] = wikisection.load(articles, lambda id: id in kept_ids and is_dev(id))
    tests["dev-medquad"] = unseen_task(training_files, known_names | {plain_key(name) for name in test_entities})
    for name, task in tests.items():
        save_task(out / f"{name}.task.gz", task)
        log(name, f"{len(task.documents):,} documents, {len(task.queries):,} queries")
    for size in (300, 128):
        train_words(discourses.texts, size).save(out / f"words{size}.npz")
        log(f"words of {size} dimensions")


def describe_entities(ontology, files, labeller):
    """Yield names of entities with a sentence each: DOID's definitions and MedQuAD's general information."""
    with ontology.open(encoding="utf-8") as lines:
        for line in lines:
            disease = json.loads(line)
            yield from with_sentences(disease["label"], disease["synonyms"], disease["definition"] or "", labeller)
    for document in medquad.layout(capr.read(files, format="medquad")):
        for section in document.annotated("section"):
            if section.value.get("aspect") == "information":
                synonyms = document.metadata.get("synonyms", [])
                yield from with_sentences(document.title, synonyms, document[section.span], labeller)


def with_sentences(name, synonyms, text, labeller):
    """Yield the names of an entity with each sentence of a text, except held-out entities and sentences."""
    names = labeller.named(capr.Document(name, text, name, {"synonyms": synonyms}))
    for sentence in sentences(text) if names else ():
        if not labeller.is_held_out_text(sentence.of(text)):
            yield names, sentence.of(text)


def is_dev(id):
    """Tell whether an article belongs to the development test."""
    return is_test(id, DEV_SHARE) and not is_test(id)


def unseen_task(files, known_names, limit=600):
    """Make a test like MedQuAD's from documents about diseases, without documents that have a known name."""
    documents, passages, spans, document_of, members, relevant_of = {}, {}, {}, {}, {}, {}
    for document in medquad.layout(capr.read(files, format="medquad")):
        names = [document.title, *document.metadata.get("synonyms", [])]
        if len(documents) >= limit or document.id in documents or any(plain_key(name) in known_names for name in names):
            continue
        documents[document.id] = document
        for number, section in enumerate(document.annotated("section")):
            id = f"{document.id}-{number}"
            if len(document[section.span]) < medquad.SHORTEST:
                continue
            passages[id], spans[id], document_of[id] = document[section.span], (document.id, section.span), document.id
            members.setdefault(document.id, []).append(id)
            if (aspect := section.value.get("aspect")) in CDV_HEADINGS:
                relevant_of.setdefault((document.title, aspect), []).append(id)
    index = Terms(passages)
    queries = []
    for number, ((entity, aspect), relevant) in enumerate(relevant_of.items()):
        words = re.sub("[/:-]", " ", f"{entity} {CDV_HEADINGS[aspect]}")
        query_candidates = candidates(relevant, index.best(words, 64), members, document_of)
        groups = {"aspect": aspect}
        queries.append(
            TaskQuery(str(number), entity, CDV_HEADINGS[aspect], "", frozenset(relevant), query_candidates, groups)
        )
    return Task("dev-medquad", passages, queries, documents=documents, spans=spans)


def save_task(path, task):
    """Save documents as sentences and flags, and passages as a document number with a range of sentences."""
    numbers, documents, sentence_spans = {}, [], {}
    for number, document in enumerate(task.documents.values()):
        numbers[document.id] = number
        sentence_spans[document.id] = spans = sentences(document.text)
        flags = [list(flags) for flags in structure(document.text, spans)]
        documents.append({"id": document.id, "sentences": [document[span] for span in spans], "flags": flags})
    positions = {id: position for position, id in enumerate(task.passages)}
    passages = [
        (numbers[task.spans[id][0]], inside(sentence_spans[task.spans[id][0]], task.spans[id][1]))
        for id in task.passages
    ]
    queries = [
        {
            "id": query.id,
            "entity": query.entity,
            "aspect": query.aspect,
            "groups": dict(query.groups),
            "candidates": [positions[id] for id in query.candidates],
            "relevant": sorted(positions[id] for id in query.relevant),
        }
        for query in task.queries
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        task_data = {"documents": documents, "passages": passages, "ids": list(task.passages), "asked": queries}
        json.dump(task_data, file, ensure_ascii=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
