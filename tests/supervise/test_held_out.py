"""Training data contain nothing that a model is tested on."""

import json

import pytest

import capr
from capr.annotate.mentions import annotator
from capr.documents import Annotation, Document, Span
from capr.evaluate import medquad
from capr.supervise import Labeller, Pool, labelled
from capr.supervise.pairs import TrainingPairs
from capr.text.names import plain_key

FILLER = "It is described here in a few more words than eight."


def article(title, *sections, **metadata):
    text, annotations = "", []
    for heading, body in sections:
        begin = len(text)
        text += f"{body}\n\n"
        annotations.append(Annotation("section", Span(begin, begin + len(body)), {"heading": heading}))
    return Document(title, text, title, metadata, tuple(annotations))


def label_all(documents, **options):
    labeller = Labeller(annotator(), **options)
    return [passage for document in documents for passage in labeller.labels(document)], labeller


def test_skips_an_article_about_a_held_out_entity_under_any_name():
    gout, asthma = article("Gout", ("Causes", FILLER)), article("Asthma", ("Causes", FILLER))
    for name in ("gout", "GOUT", "Gouts"):
        passages, labeller = label_all([gout, asthma], held_out=[name])
        assert {passage.title for passage in passages} == {"Asthma"}
        assert labeller.skipped["held out"] == 1
    unknown = article("Zorbic disease", ("Causes", FILLER))
    assert not label_all([unknown], held_out=["Morbus Zorb"], aliases={"Zorbic disease": ["Morbus Zorb"]})[0]
    with_synonym = article("Zorbic disease", ("Causes", FILLER), synonyms=["Morbus Zorb"])
    assert not label_all([with_synonym], held_out=["Morbus Zorb"])[0]
    assert label_all([unknown], held_out=["Morbus Zorb"])[0]


def test_holds_out_synonyms_of_a_held_out_entity():
    assert not label_all([article("Myocardial infarction", ("Causes", FILLER))], held_out=["heart attack"])[0]


def test_labels_no_note_with_a_held_out_entity():
    note = Document("n", "ASSESSMENT: Known hypertension and gout, both of them well controlled with tablets.")
    (passage,), _ = label_all([note])
    assert {words for _, words in passage.entities} == {"hypertension", "gout"}
    (passage,), _ = label_all([note], held_out=["gout"])
    assert {words for _, words in passage.entities} == {"hypertension"}


def test_takes_the_aspect_of_a_question_from_its_source():
    body = "Mutations in one gene, of which nobody knows very much more than that."
    section = Annotation("section", Span(0, len(body)), {"heading": "What causes gout?", "aspect": "genetic changes"})
    (passage,), _ = label_all([Document("q", body, "Gout", {}, (section,))], aspects_from_text=False)
    assert passage.aspects == (("genetic changes", "genetic changes"),)
    assert passage.questions == ("What causes gout?",)
    assert passage.heading == ""


INHERITED = "The disease is inherited in an autosomal recessive pattern, as far as is known today."
MUTATED = "Mutations in the GAA gene cause it, of which nobody knows very much more."


@pytest.mark.parametrize(
    ("heading", "body", "aspects"),
    [
        ("Causes", INHERITED, ["cause", "inheritance"]),
        ("Genetics", f"{MUTATED} {INHERITED}", ["genetics", "inheritance"]),
        ("Genetics", MUTATED, ["genetics"]),
        ("Genetics", INHERITED, ["inheritance"]),  # a part of the section that mentions nothing else
        ("Overview", f"{MUTATED} {INHERITED}", ["information"]),  # an overview mentions all aspects
    ],
)
def test_words_add_an_aspect_that_the_heading_does_not_name(heading, body, aspects):
    without_cues, _ = label_all([article("Gout", (heading, body))], aspects_from_text=False)
    with_cues, _ = label_all([article("Gout", (heading, body))])
    assert len(without_cues[0].aspects) == 1
    assert [name for name, _ in with_cues[0].aspects] == aspects


@pytest.mark.data
def test_no_entity_of_the_medquad_test_is_in_training(data):
    task = medquad.load(data)
    test_files = {data / "medquad" / path for path in medquad.test_files(data / "cdv" / medquad.SOURCES)}
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    held_out = {"held_out": task.entities, "held_out_texts": task.passages.values()}
    labeller = Labeller(annotator(), aliases=aliases, **held_out)
    training_files = [path for path in sorted((data / "medquad").glob("*/*.xml")) if path not in test_files]
    documents = [*capr.read(training_files[::12], format="medquad")]
    articles = capr.read(data / "wikipedia_diseases" / "articles.jsonl")
    documents += [document for number, document in enumerate(articles) if number % 6 == 0]
    with Pool(labelled(iter(documents), labeller)) as pool:
        pairs = TrainingPairs.from_pool(pool, labeller.annotator.gazetteer.vocabulary, rounds=1, each=2)
    names = {plain_key(name) for name in task.entities}
    assert len(pairs.draws) > 1500
    assert labeller.skipped["held out"] > 50
    assert not names & {plain_key(name) for draw in pairs.draws for name in draw.names}
    assert not names & {plain_key(text.title) for text in pairs.passages}
    texts = "\n".join(" ".join(text.split()) for text in task.passages.values())
    assert not [text for text in pairs.passages if " ".join(text.text.split()) in texts]
