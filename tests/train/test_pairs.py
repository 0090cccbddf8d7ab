"""The training data of ranking models."""

import gzip
import random
import re

import pytest
from sectioned import article

from capr.annotate.mentions import annotator
from capr.annotate.vocabulary import Vocabulary
from capr.documents import CaprError
from capr.supervise import Labeller, Pool, labelled
from capr.supervise.pairs import Draw, LabelledPassage, TrainingPairs


def test_pairs_are_saved_and_loaded(world, tmp_path):
    more = TrainingPairs(
        [*world.passages, LabelledPassage("d", "Ä\n", "", 'some "text"', ("e1", "e2"), (), "before", "after")],
        [*world.draws, Draw(len(world.passages), "e", "", (), "", ("Why?", "How\u2028?"), (0, 3))],
    )
    more.save(tmp_path / "a.pairs.gz")
    assert TrainingPairs.load(tmp_path / "a.pairs.gz") == more
    assert [path.name for path in tmp_path.iterdir()] == ["a.pairs.gz"]


DAMAGED = {
    "no gzip": b"no gzip",
    "no json": gzip.compress(b"no json\n"),
    "another kind": gzip.compress(b'{"other": {}}\n'),
    "cut short": gzip.compress(b'{"text": {"text": "gout"}}\n')[:-6],
    "another field": gzip.compress(b'{"text": {"color": 1}}\n'),
    "two in a line": gzip.compress(b'{"text": {}, "draw": {}}\n'),
    "no utf-8": gzip.compress(b'{"text": {"text": "\xff"}}\n'),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_named_with_the_remedy(tmp_path, damage):
    path = tmp_path / "a.pairs.gz"
    path.write_bytes(DAMAGED[damage])
    with pytest.raises(CaprError, match=rf"^{re.escape(str(path))} holds no pairs to train with .* Fix: make"):
        TrainingPairs.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CaprError, match="Fix: "):
        TrainingPairs.load(tmp_path / "none.pairs.gz")


def test_a_split_has_no_document_in_common_and_is_the_same_again(world):
    training, held_out = world.split(0.3, 5)
    documents = [{text.document for text in part.passages} for part in (training, held_out)]
    assert all(documents)
    assert not documents[0] & documents[1]
    assert len(training.passages) + len(held_out.passages) == len(world.passages)
    assert len(training.draws) + len(held_out.draws) == len(world.draws)
    assert world.split(0.3, 5) == (training, held_out)
    assert world.split(0.3, 6) != (training, held_out)


def test_a_split_of_few_documents_holds_out_one_that_has_queries(world):
    names = sorted({text.document for text in world.passages})[:8]
    few = world.part(lambda text: text.document in names)
    for seed in range(20):  # with most of these seeds, no hash is below 0.05
        training, held_out = few.split(0.05, seed)
        assert len(held_out.draws) >= 2
        assert len(training.draws) + len(held_out.draws) == 16
        assert few.split(0.05, seed) == (training, held_out)
    assert few.split(0.0) == (few, TrainingPairs([], []))


def test_a_split_holds_out_documents_with_queries_besides_those_without(world):
    by_hash = {text.document for text in world.split(0.3, 5)[1].passages}
    left = [draw for draw in world.draws if world.passages[draw.passage].document not in by_hash]
    some = TrainingPairs(world.passages, left)
    training, held_out = some.split(0.3, 5)
    documents = {text.document for text in held_out.passages}
    assert by_hash < documents
    with_queries = {world.passages[draw.passage].document for draw in left}
    assert len(documents - by_hash) == round(0.3 * len(with_queries))
    assert training.draws
    only = some.part(lambda text: text.document in {*by_hash, min(with_queries)})
    assert not only.split(0.3, 5)[1].draws  # the only document with queries is for training


def test_a_split_does_not_depend_on_other_documents(world):
    _, held_out = world.split(0.3)
    fewer = world.part(lambda text: not text.document.startswith("gout"))
    actual = {text.document for text in fewer.split(0.3)[1].passages}
    assert actual == {text.document for text in held_out.passages if not text.document.startswith("gout")}


def test_a_part_means_the_same_passages(world):
    for part in world.split(0.3):
        originals = {world.passages[d.passage].text + d.aspect: d for d in world.draws}
        for draw in part.draws:
            text = part.passages[draw.passage]
            assert (draw.entity, draw.aspect) == (text.entities[0], text.aspects[0])
            original = originals[text.text + draw.aspect]
            expected = {world.passages[n] for n in original.negatives}
            assert {part.passages[n] for n in draw.negatives} == {text for text in expected if text in part.passages}


def test_the_parts_of_a_split_add_up_to_the_whole(world):
    training, held_out = world.split(0.3)
    joined = training + held_out
    assert sorted(text.document for text in joined.passages) == sorted(text.document for text in world.passages)
    for draw in joined.draws:
        assert draw.entity in joined.passages[draw.passage].entities
        assert all(0 <= n < len(joined.passages) for n in draw.negatives)


def test_every_passage_with_both_labels_may_answer(world):
    draw = world.draws[0]
    expected = {
        n for n, text in enumerate(world.passages) if text.entities == ("asthma",) and text.aspects == ("symptom",)
    }
    assert world.answering(draw) == expected
    assert len(expected) == 4
    assert world.answering(Draw(7, "unknown", "unknown")) == {7}


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_list_holds_the_answer_and_nothing_twice(world, size):
    lists = list(world.lists(size, 20, 3))
    assert len(lists) == 20
    assert lists == list(world.lists(size, 20, 3))
    for query, candidates, answers in lists:
        assert query
        assert answers
        assert answers <= set(candidates)
        assert len(candidates) == len(set(candidates)) == min(size, len(world.passages))


def test_the_draws_of_a_passage_are_adjacent(world):
    groups = world.by_passage()
    assert len(groups) == len(world.passages)
    assert all(len({draw.passage for draw in group}) == 1 for group in groups)


def test_a_passage_is_read_bare_under_its_heading_or_also_under_the_title():
    text = LabelledPassage("d", "Gout", "Symptoms", "A red toe.")
    assert [text.view(kind) for kind in ("text", "heading", "title")] == [
        "A red toe.",
        "Symptoms | A red toe.",
        "Gout | Symptoms | A red toe.",
    ]
    assert LabelledPassage("d", "Gout", "", "A red toe.").view("title") == "Gout | A red toe."


def test_a_draw_is_worded_by_its_names_or_by_a_question_of_the_source():
    rng = random.Random(0)
    draw = Draw(0, "gout", "symptom", ("gout", "podagra"), "Symptoms", ("Why does my toe hurt?",))
    wordings = {draw.draw_wording(rng) for _ in range(300)}
    assert "Why does my toe hurt?" in wordings
    assert any("podagra" in words for words in wordings)
    assert all("gout" in words or "podagra" in words or "toe" in words for words in wordings)
    draw_of_a_question = Draw(0, questions=("Why?",))
    assert {draw_of_a_question.draw_wording(rng) for _ in range(20)} == {"Why?"}


ARTICLES = [
    article("Asthma", {"Symptoms": "Wheeze at night.", "Treatment": "Inhaled steroids.", "Causes": "Pollen and dust."}),
    article("Gout", {"Symptoms": "A red and hot big toe.", "Treatment": "Colchicine eases an attack."}),
]


@pytest.fixture(scope="module")
def draw_pairs():
    vocabulary = Vocabulary.load()

    def draw(context: bool = False, seed: int = 0) -> TrainingPairs:
        labeller = Labeller(annotator(False, vocabulary), aliases={"Gout": ["Podagra"]})
        with Pool(labelled(iter(ARTICLES), labeller)) as pool:
            return TrainingPairs.from_pool(pool, vocabulary, seed, context=context)

    return draw


def test_documents_become_passages_with_queries_and_negatives(draw_pairs):
    pairs = draw_pairs()
    assert [(text.title, text.heading) for text in pairs.passages] == [
        ("Asthma", "Symptoms"),
        ("Asthma", "Treatment"),
        ("Asthma", "Causes"),
        ("Gout", "Symptoms"),
        ("Gout", "Treatment"),
    ]
    assert sorted(draw.passage for draw in pairs.draws) == [0, 1, 2, 3, 4]
    for draw in pairs.draws:
        text = pairs.passages[draw.passage]
        assert draw.names[0] == text.title
        assert draw.heading == text.heading
        assert ("Podagra" in draw.names) == (text.title == "Gout")
        assert draw.negatives
        assert not set(draw.negatives) & pairs.answering(draw)
    assert draw_pairs() == pairs


def test_the_context_of_a_passage_is_the_rest_of_its_document(draw_pairs):
    first, second, third, *_ = draw_pairs(context=True).passages
    assert (first.before, third.after) == ("", "")
    assert first.after == f"{second.text}\n{third.text}"
    assert second.before == first.text
    assert second.after == third.text
    assert "toe" not in third.after
