"""The training data of discourse models: sentences with entities and aspects."""

import math

import numpy as np
import pytest
from articles import documents, labelled

import capr
from capr.annotate.mentions import annotator
from capr.documents import Annotation, CaprError, Document, Span
from capr.models.losses import distances
from capr.supervise.discourses import LabelledDocument, TrainingDiscourses
from capr.supervise.labels import Labeller
from capr.train.cdv_task import LabelVectors, SentenceLabels, balances


def test_sentences_are_about_the_title_and_the_headings(world):
    discourses = labelled(world)
    document = discourses.documents[0]
    assert document.sentences[0].startswith("Asthma is a disease")
    assert [discourses.entities[numbers[0]][0] for numbers in document.entities] == ["Asthma"] * 13
    names = [discourses.aspects[numbers[0]][0] for numbers in document.aspects]
    assert names == ["description"] + ["signs and symptoms"] * 4 + ["treatment"] * 4 + ["prognosis"] * 4
    assert document.flags[0] == [1, 1, 0, 0, 0, 1, 0]
    assert document.passages == [0] + [1] * 4 + [2] * 4 + [3] * 4


def test_a_held_out_entity_is_excluded_under_all_its_names(world):
    assert (
        len(labelled(world, held_out={"gouty arthritis", "Lupus"}, aliases={"Gout": ["gouty arthritis"]}).documents)
        == 56
    )
    by_vocabulary = labelled(world, held_out={"Varicose veins", "rubeola"})  # the vocabulary knows it as measles
    assert "Measles" not in {name for names in by_vocabulary.entities for name in names}


def test_texts_of_a_test_are_not_learned_from(world):
    text = documents(world)[0].text.split("\n")[0]
    discourses = labelled(world, held_out_texts=[text])
    assert discourses.documents[0].passages[0] == -1
    assert discourses.documents[0].aspects[0] == []
    assert text not in set(discourses.texts)


def test_a_name_inside_a_word_is_not_a_label():
    text = "Many of them also cough at night, and rest is good for all. It is unlike ALS (or so) in most families."
    begin = text.index("ALS")
    section = Annotation("section", Span(0, len(text)), {"heading": "Treatment"})
    annotations = (section, Annotation("link", Span(begin, begin + 3), {}))
    discourses = TrainingDiscourses.read(
        [Document("x", text, "Kennedy disease", {}, annotations)], Labeller(annotator(False))
    )
    (document,) = discourses.documents
    named = [[discourses.entities[number][0] for number in numbers] for numbers in document.entities]
    assert named == [["Kennedy disease"], ["Kennedy disease", "ALS"]]


def test_discourses_are_saved_and_loaded(world, tmp_path):
    discourses = labelled(world)
    discourses.save(tmp_path / "a.discourses.gz")
    assert TrainingDiscourses.load(tmp_path / "a.discourses.gz") == discourses
    training, held_out = discourses.split(0.1, 1)
    assert len(held_out.documents) == 6
    assert not {document.id for document in training.documents} & {document.id for document in held_out.documents}
    (tmp_path / "a.discourses.gz").write_bytes(b"none")
    with pytest.raises(CaprError, match="cannot be read"):
        TrainingDiscourses.load(tmp_path / "a.discourses.gz")


def test_aspects_of_few_documents_are_left_out():
    documents = [
        LabelledDocument(str(n), ["a", "b"], [[0] * 7] * 2, [[0], [0]], [[k], [9]], [0, 0])
        for n in range(3)
        for k in range(9)
    ]
    documents.append(LabelledDocument("x", ["a"], [[0] * 7], [[0]], [[10]], [0]))
    actual = TrainingDiscourses(documents, [["e"]], [[str(n)] for n in range(11)]).with_usual_aspects()
    assert actual.aspects == [[str(n)] for n in range(10)]
    assert actual.documents[-1].aspects == [[]]


def test_targets_of_equation_16():
    labels = np.eye(3, dtype=np.float32)
    import torch

    expected = SentenceLabels([[0, 1], [], [2]], "cpu")
    np.testing.assert_allclose(
        expected.vectors(torch.from_numpy(labels)),
        [[math.sqrt(0.5), math.sqrt(0.5), 0], [0, 0, 0], [0, 0, 1]],
        atol=1e-6,
    )
    assert expected.weights.tolist() == [1, 0, 1]
    assert SentenceLabels([[0, 1], [], [2]], "cpu", [0.1, 0.5, 0.2]).weights.tolist() == pytest.approx([0.5, 0, 0.2])


def test_names_are_drawn():
    class Space:
        dimensions = 1

        def vectors(self, names):
            return np.array([[float(name)] for name in names], np.float32)

    targets = LabelVectors([["1", "2"], ["3"]], Space(), "cpu")
    assert targets.usual.flatten().tolist() == [1, 3]
    draws = {tuple(targets.draw(np.random.default_rng(seed)).flatten().tolist()) for seed in range(20)}
    assert draws == {(1, 3), (2, 3)}


def test_frequent_aspects_count_less(world):
    discourses = labelled(world)
    entities, aspects = balances(discourses)
    assert set(entities) == {1.0}
    counts = np.zeros(len(aspects))
    for document in discourses.documents:
        for numbers in document.aspects:
            counts[numbers] += 1
    share = counts / counts.sum()
    assert aspects == pytest.approx([min(1, 0.03 / math.sqrt(value)) for value in share])


def test_a_document_is_about_the_first_entity_that_it_has(tmp_path):
    """A title line without an entity: the subject is that of the sentence below."""
    for disease in ("gout", "asthma"):
        text = (
            f"# {disease.title()}\n\n## Treatment\n\n{disease.title()} is treated. So are many others in most people.\n"
        )
        (tmp_path / f"{disease}.md").write_text(text)
    discourses = TrainingDiscourses.read(capr.read(tmp_path), Labeller(annotator(False)))
    assert [document.entities[0] for document in discourses.documents] == [[], []]
    assert balances(discourses)[0] == [1.0, 1.0]
    assert balances(TrainingDiscourses([LabelledDocument("x", ["a"], [[0] * 7], [[]], [[]], [0])], [["e"]])) == (
        [0.1],
        [],
    )


def test_entities_that_are_only_mentioned_count_a_tenth():
    import torch

    documents = [LabelledDocument("x", ["a", "b", "c"], [[0] * 7] * 3, [[], [0], [1]], [[]] * 3, [0] * 3)]
    weights, _ = balances(TrainingDiscourses(documents, [["e"], ["f"]]))
    draw = np.random.default_rng(0)
    labels, actual = (draw.normal(size=size).astype(np.float32) for size in ((2, 3), (3, 3)))
    labels /= np.linalg.norm(labels, axis=1, keepdims=True)
    expected = SentenceLabels(documents[0].entities, "cpu", weights)
    nothing = torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(3)
    vectors = expected.vectors(torch.from_numpy(labels))
    loss = distances((torch.from_numpy(actual), nothing[0]), (vectors, nothing[1]), (expected.weights, nothing[2]))
    first, second = (np.linalg.norm(actual[place + 1] - labels[place]) for place in (0, 1))
    assert loss.item() == pytest.approx((0 + first + 0.1 * second) / 3, abs=1e-5)
