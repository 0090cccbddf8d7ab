"""What a model is tested on is nowhere in what it learns from."""

import json

import pytest

import capr
from capr.annotate.mentions import annotator
from capr.annotate.names import plain_key
from capr.documents import Annotation, Document, Span
from capr.evaluate import medquad
from capr.supervise import Labeller, Pool, labelled
from capr.train.pairs import Pairs

FILL = "It is described here in a few more words than eight."


def article(title, *sections, **metadata):
    text, marked = "", []
    for heading, body in sections:
        begin = len(text)
        text += f"{body}\n\n"
        marked.append(Annotation("section", Span(begin, begin + len(body)), {"heading": heading}))
    return Document(title, text, title, metadata, tuple(marked))


def labels(documents, **options):
    labeller = Labeller(annotator(), **options)
    return [found for document in documents for found in labeller.labels(document)], labeller


def test_an_article_about_a_held_out_entity_is_left_out_under_any_of_its_names():
    gout, asthma = article("Gout", ("Causes", FILL)), article("Asthma", ("Causes", FILL))
    for name in ("gout", "GOUT", "Gouts"):
        found, labeller = labels([gout, asthma], held_out=[name])
        assert {label.title for label in found} == {"Asthma"}
        assert labeller.skipped["held out"] == 1
    odd = article("Zorbic disease", ("Causes", FILL))
    assert not labels([odd], held_out=["Morbus Zorb"], aliases={"Zorbic disease": ["Morbus Zorb"]})[0]
    named = article("Zorbic disease", ("Causes", FILL), synonyms=["Morbus Zorb"])
    assert not labels([named], held_out=["Morbus Zorb"])[0]
    assert labels([odd], held_out=["Morbus Zorb"])[0]


def test_a_synonym_of_a_held_out_entity_is_held_out():
    assert not labels([article("Myocardial infarction", ("Causes", FILL))], held_out=["heart attack"])[0]


def test_a_note_is_not_labelled_with_a_held_out_entity():
    note = Document("n", "ASSESSMENT: Known hypertension and gout, both of them well controlled with tablets.")
    (found,), _ = labels([note])
    assert {words for _, words in found.entities} == {"hypertension", "gout"}
    (found,), _ = labels([note], held_out=["gout"])
    assert {words for _, words in found.entities} == {"hypertension"}


def test_a_source_that_asks_questions_says_which_aspect_they_mean():
    body = "Mutations in one gene, of which nobody knows very much more than that."
    section = Annotation("section", Span(0, len(body)), {"heading": "What causes gout?", "aspect": "genetic changes"})
    (found,), _ = labels([Document("q", body, "Gout", {}, (section,))], cues=False)
    assert found.aspects == (("genetic changes", "genetic changes"),)
    assert found.questions == ("What causes gout?",)
    assert found.heading == ""


INHERITED = "The disease is inherited in an autosomal recessive pattern, as far as is known today."
MUTATED = "Mutations in the GAA gene cause it, of which nobody knows very much more."


@pytest.mark.parametrize(
    ("heading", "body", "aspects"),
    [
        ("Causes", INHERITED, ["cause", "inheritance"]),
        ("Genetics", f"{MUTATED} {INHERITED}", ["genetics", "inheritance"]),
        ("Genetics", MUTATED, ["genetics"]),
        ("Genetics", INHERITED, ["inheritance"]),  # a part of the section that speaks of nothing else
        ("Overview", f"{MUTATED} {INHERITED}", ["information"]),  # which speaks of everything
    ],
)
def test_words_show_an_aspect_that_no_heading_names(heading, body, aspects):
    plain, _ = labels([article("Gout", (heading, body))], cues=False)
    cued, _ = labels([article("Gout", (heading, body))])
    assert len(plain[0].aspects) == 1
    assert [name for name, _ in cued[0].aspects] == aspects


@pytest.mark.data
def test_no_entity_of_the_medquad_test_is_in_training(data):
    task = medquad.load(data)
    tested = {data / "medquad" / path for path in medquad.test_files(data / "cdv" / medquad.SOURCES)}
    aliases = json.loads((data / "wikipedia_diseases" / "aliases.json").read_text())
    held_out = {"held_out": task.entities, "held_out_texts": task.passages.values()}
    labeller = Labeller(annotator(), aliases=aliases, **held_out)
    others = [path for path in sorted((data / "medquad").glob("*/*.xml")) if path not in tested]
    documents = [*capr.read(others[::12], format="medquad")]
    articles = capr.read(data / "wikipedia_diseases" / "articles.jsonl")
    documents += [document for number, document in enumerate(articles) if number % 6 == 0]
    with Pool(labelled(iter(documents), labeller)) as pool:
        pairs = Pairs.drawn(pool, labeller.annotator.gazetteer.vocabulary, rounds=1, each=2)
    names = {plain_key(name) for name in task.entities}
    assert len(pairs.draws) > 1500
    assert labeller.skipped["held out"] > 50
    assert not names & {plain_key(name) for draw in pairs.draws for name in draw.names}
    assert not names & {plain_key(text.title) for text in pairs.passages}
    texts = "\n".join(" ".join(text.split()) for text in task.passages.values())
    assert not [text for text in pairs.passages if " ".join(text.text.split()) in texts]
