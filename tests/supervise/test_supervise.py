"""Training examples from documents: labels, hard negatives, false negatives, and the same again from a seed."""

import json
from itertools import islice

import pytest
from typer.testing import CliRunner

import capr
from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.documents import Annotation, Document, Span
from capr.supervise import Pool, batches, examples, false_negatives
from capr.supervise.labels import Labeller, labelled

FILLER = "This sentence only makes the passage long enough to be of use."


def article(title: str, sections: dict[str, str]) -> Document:
    text, annotations = "", []
    for heading, body in sections.items():
        begin = len(text)
        text += f"{heading}\n{body} {FILLER}\n\n"
        value = {"heading": heading, "heading_end": begin + len(heading)}
        annotations.append(Annotation("section", Span(begin, len(text)), value))
    return Document(title, text, title, {}, tuple(annotations))


ARTICLES = [
    article("Asthma", {"Symptoms": "Wheeze and cough at night.", "Treatment": "Inhaled steroids come first."}),
    article("Gout", {"Symptoms": "A red and hot big toe.", "Treatment": "Colchicine eases an attack of gout."}),
    article("Heart attack", {"Symptoms": "Pain in the chest.", "Treatment": "Aspirin at once."}),
    article("Myocardial infarction", {"Clinical features": "Sweating, and pain in the chest."}),
]
NOTE = Document(
    "n1",
    f"CHIEF COMPLAINT: Cough with fever since Monday. {FILLER}\n\n"
    f"FAMILY HISTORY: Father had gout for many years. {FILLER}\n\n"
    f"ASSESSMENT: No pneumonia was seen on the film today. {FILLER}\n\nPLAN: Rest.\n",
    "Progress note",
    {"patient": "p1"},
)


@pytest.fixture
def labeller():
    return Labeller(annotator(with_tagger=False))


@pytest.fixture
def pool(labeller):
    with Pool(labelled(iter(ARTICLES), labeller)) as filled:
        yield filled


def test_the_title_of_an_article_and_its_headings_are_the_labels(labeller):
    first = next(labeller.labels(ARTICLES[0]))
    assert first.entities == (("MESH:D001249", "Asthma"),)
    assert first.aspects == (("symptom", "Symptoms"),)
    assert first.text == f"Wheeze and cough at night. {FILLER}"
    assert ARTICLES[0][first.span] == first.text


def test_the_mentions_of_a_note_are_its_entities_but_not_the_negated(labeller):
    found = {labels.aspects[0][0]: [words for _, words in labels.entities] for labels in labeller.labels(NOTE)}
    assert found == {"chief complaint": ["Cough", "fever"], "family history": ["gout"]}
    assert labeller.skipped == {"no entity": 1, "too short": 1}


def test_negated_mentions_count_if_wanted(labeller):
    labeller.negated = True
    assert ["pneumonia"] in [[words for _, words in labels.entities] for labels in labeller.labels(NOTE)]


def test_links_of_the_source_are_entities(labeller):
    text = f"Sepsis and its cause\n\nEscherichia was grown from the urine. {FILLER}"
    begin = text.index("Escherichia")
    marks = (
        Annotation("section", Span(22, len(text)), {"heading": "Causes"}),
        Annotation("mention", Span(begin, begin + 11), {"type": "Organism"}),
    )
    document = Document("a", text, "Sepsis", {}, marks)
    assert ("escherichia", "Escherichia") in next(labeller.labels(document)).entities


def test_a_passage_without_a_heading_is_skipped_and_counted(labeller):
    document = Document("a", f"Asthma is a disease of the airways of the lung. {FILLER}", "Asthma")
    assert list(labeller.labels(document)) == []
    assert labeller.skipped == {"no heading": 1}


def test_there_is_one_example_for_every_passage(pool):
    drawn = list(examples(pool))
    assert sorted(example.passage.id for example in drawn) == list(range(1, len(pool) + 1))
    assert len(pool) == 7


def test_the_seed_and_the_epoch_decide(pool):
    def drawn(**options):
        return [example.as_json() for example in examples(pool, **options)]

    assert drawn(seed=1) == drawn(seed=1)
    assert drawn(seed=1) != drawn(seed=2)
    assert drawn(seed=1) != drawn(seed=1, epoch=1)


def test_hard_negatives_are_what_their_kind_says_and_never_answer(pool):
    for seed in range(5):
        for example in examples(pool, seed):
            for negative in example.negatives:
                record = negative.passage
                assert record.id != example.passage.id
                assert not record.answers(example.entity, example.aspect)
                if negative.kind == "section":
                    assert record.document == example.passage.document
                    assert example.aspect not in dict(record.aspects)
                if negative.kind == "aspect":
                    assert example.aspect in dict(record.aspects)
                    assert example.entity not in dict(record.entities)


def test_each_kind_of_negative_is_found(pool):
    kinds = {negative.kind for example in examples(pool) for negative in example.negatives}
    assert kinds == {"section", "bm25", "aspect"}


def test_another_name_for_the_same_thing_is_a_known_false_negative(pool):
    """`Heart attack | Symptoms` and `Myocardial infarction | Clinical features` are one entity and one aspect."""
    by_document = {(e.passage.document, e.aspect): e for e in examples(pool)}
    mine = by_document["Heart attack", "symptom"]
    other = by_document["Myocardial infarction", "symptom"]
    assert mine.false_negatives == (other.passage.id,)
    assert all(negative.passage.id != other.passage.id for negative in mine.negatives)
    mask = false_negatives([mine, other], [mine.passage, other.passage])
    assert mask == [[False, True], [True, False]]


def test_batches_hold_every_example_once(pool):
    sizes = [len(batch) for batch in batches(pool, size=3)]
    assert sizes == [3, 3, 1]


def test_a_pool_leaves_nothing_behind(labeller):
    with Pool(labelled(iter(ARTICLES), labeller)) as pool:
        folder = pool.folder
        assert folder.is_dir()
    assert not folder.exists()


def test_documents_are_read_one_at_a_time(labeller):
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield ARTICLES[0]

    list(islice(labelled(endless(), labeller), 5))
    assert read == 3  # two passages each


def test_the_samples_give_examples_of_notes_and_articles(tmp_path):
    result = CliRunner().invoke(typer_app, ["samples", str(tmp_path / "demo")])
    out = tmp_path / "pairs.jsonl"
    result = CliRunner().invoke(typer_app, ["supervise", str(tmp_path / "demo"), "-o", str(out)])
    assert result.exit_code == 0, result.output
    texts = {document.id: document.text for document in capr.read(tmp_path / "demo")}
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(lines) > 500
    for line in lines:
        assert line["text"] == texts[line["document"]][line["begin"] : line["end"]]
        assert line["entity"]
        assert line["aspect"]
        for negative in line["negatives"]:
            assert negative["text"] == texts[negative["document"]][negative["begin"] : negative["end"]]
    assert "passages skipped (" in result.output


def test_a_negative_is_neither_the_same_text_nor_given_twice(labeller):
    twins = [
        article(
            "Gout",
            {"Preoperative diagnosis": "A stone in the duct.", "Postoperative diagnosis": "A stone in the duct."},
        ),
        article("Sepsis", {"Preoperative diagnosis": "Gout and a fever."}),
    ]
    with Pool(labelled(iter(twins), labeller)) as pool:
        for seed in range(5):
            for example in examples(pool, seed):
                numbers = [negative.passage.id for negative in example.negatives]
                assert len(numbers) == len(set(numbers))
                assert all(negative.passage.text != example.passage.text for negative in example.negatives)


def test_a_document_is_not_overwritten(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("ASSESSMENT: Gout of the big toe since last Monday, very painful at night.\n")
    for _ in range(2):
        result = CliRunner().invoke(typer_app, ["supervise", str(path), "-o", str(path)])
        assert "holds no examples. Fix: " in str(result.exception)
        assert path.read_text().startswith("ASSESSMENT")
    pairs = tmp_path / "pairs.jsonl"
    for _ in range(2):  # examples may be
        assert CliRunner().invoke(typer_app, ["supervise", str(path), "-o", str(pairs)]).exit_code == 0
    assert len(pairs.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "fact"),
    [(["--entities", "headings"], "knows no 'headings'"), (["--negatives", "random"], "knows no 'random'")],
)
def test_a_kind_that_does_not_exist_is_named(tmp_path, options, fact):
    (tmp_path / "a.txt").write_text("Cough.")
    result = CliRunner().invoke(typer_app, ["supervise", str(tmp_path / "a.txt"), "-o", str(tmp_path / "o"), *options])
    assert result.exit_code != 0
    assert fact in str(result.exception)
