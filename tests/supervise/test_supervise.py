"""Training examples from documents: labels, hard negatives, false negatives and seeds."""

import json
from itertools import islice

import pytest
from sectioned import FILLER, article
from typer.testing import CliRunner

import capr
from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.documents import Annotation, Document, Span
from capr.supervise import Pool, batches, examples, false_negatives
from capr.supervise.labels import Labeller, labelled

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


def test_labels_an_article_with_its_title_and_headings(labeller):
    passage = next(labeller.labels(ARTICLES[0]))
    assert passage.entities == (("MESH:D001249", "Asthma"),)
    assert passage.aspects == (("symptom", "Symptoms"),)
    assert passage.text == f"Wheeze and cough at night. {FILLER}"
    assert ARTICLES[0][passage.span] == passage.text


def test_labels_a_note_with_its_mentions_except_negated_ones(labeller):
    entities = {labels.aspects[0][0]: [words for _, words in labels.entities] for labels in labeller.labels(NOTE)}
    assert entities == {"chief complaint": ["Cough", "fever"], "family history": ["gout"]}
    assert labeller.skipped == {"no entity": 1, "too short": 1}


def test_labels_a_note_with_negated_mentions_on_request(labeller):
    labeller.negated = True
    assert ["pneumonia"] in [[words for _, words in labels.entities] for labels in labeller.labels(NOTE)]


def test_labels_a_passage_with_mentions_that_its_source_marks(labeller):
    text = f"Sepsis and its cause\n\nEscherichia was grown from the urine. {FILLER}"
    begin = text.index("Escherichia")
    annotations = (
        Annotation("section", Span(22, len(text)), {"heading": "Causes"}),
        Annotation("mention", Span(begin, begin + 11), {"type": "Organism"}),
    )
    document = Document("a", text, "Sepsis", {}, annotations)
    assert ("escherichia", "Escherichia") in next(labeller.labels(document)).entities


def test_skips_and_counts_a_passage_without_a_heading(labeller):
    document = Document("a", f"Asthma is a disease of the airways of the lung. {FILLER}", "Asthma")
    assert list(labeller.labels(document)) == []
    assert labeller.skipped == {"no heading": 1}


def test_gives_one_example_for_every_passage(pool):
    drawn_examples = list(examples(pool))
    assert sorted(example.passage.id for example in drawn_examples) == list(range(1, len(pool) + 1))
    assert len(pool) == 7


def test_the_seed_and_the_epoch_decide_the_examples(pool):
    def draw(**options):
        return [example.as_json() for example in examples(pool, **options)]

    assert draw(seed=1) == draw(seed=1)
    assert draw(seed=1) != draw(seed=2)
    assert draw(seed=1) != draw(seed=1, epoch=1)


def test_hard_negatives_fit_their_kind_and_never_answer(pool):
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


def test_finds_each_kind_of_negative(pool):
    kinds = {negative.kind for example in examples(pool) for negative in example.negatives}
    assert kinds == {"section", "bm25", "aspect"}


def test_knows_false_negatives_under_another_name(pool):
    """`Heart attack | Symptoms` and `Myocardial infarction | Clinical features` are one entity and one aspect."""
    by_document = {(example.passage.document, example.aspect): example for example in examples(pool)}
    heart_attack = by_document["Heart attack", "symptom"]
    infarction = by_document["Myocardial infarction", "symptom"]
    assert heart_attack.false_negatives == (infarction.passage.id,)
    assert all(negative.passage.id != infarction.passage.id for negative in heart_attack.negatives)
    mask = false_negatives([heart_attack, infarction], [heart_attack.passage, infarction.passage])
    assert mask == [[False, True], [True, False]]


def test_batches_hold_every_example_once(pool):
    sizes = [len(batch) for batch in batches(pool, size=3)]
    assert sizes == [3, 3, 1]


def test_a_pool_removes_its_folder(labeller):
    with Pool(labelled(iter(ARTICLES), labeller)) as pool:
        folder = pool.folder
        assert folder.is_dir()
    assert not folder.exists()


def test_reads_documents_one_at_a_time(labeller):
    read_count = 0

    def endless():
        nonlocal read_count
        while True:
            read_count += 1
            yield ARTICLES[0]

    list(islice(labelled(endless(), labeller), 5))
    assert read_count == 3  # each has two passages


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


def test_a_negative_has_another_text_and_comes_once(labeller):
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


def test_overwrites_no_document(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("ASSESSMENT: Gout of the big toe since last Monday, very painful at night.\n")
    for _ in range(2):
        result = CliRunner().invoke(typer_app, ["supervise", str(path), "-o", str(path)])
        assert "holds no examples. Fix: " in str(result.exception)
        assert path.read_text().startswith("ASSESSMENT")
    pairs = tmp_path / "pairs.jsonl"
    for _ in range(2):  # a file of examples may be overwritten
        assert CliRunner().invoke(typer_app, ["supervise", str(path), "-o", str(pairs)]).exit_code == 0
    assert len(pairs.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (["--entities", "headings"], "does not accept 'headings'"),
        (["--negatives", "random"], "does not accept 'random'"),
    ],
)
def test_names_an_unknown_kind(tmp_path, options, fact):
    (tmp_path / "a.txt").write_text("Cough.")
    result = CliRunner().invoke(typer_app, ["supervise", str(tmp_path / "a.txt"), "-o", str(tmp_path / "o"), *options])
    assert result.exit_code != 0
    assert fact in str(result.exception)
