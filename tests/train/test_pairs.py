"""What ranking models learn from."""

import gzip
import random
import re

import pytest

from capr.annotate.mentions import annotator
from capr.annotate.vocabulary import Vocabulary
from capr.documents import Annotation, CaprError, Document, Span
from capr.supervise import Labeller, Pool, labelled
from capr.train.pairs import Draw, Pairs, Text


def test_pairs_are_the_same_after_they_were_kept(world, tmp_path):
    more = Pairs(
        [*world.passages, Text("d", "Ä\n", "", 'some "text"', ("e1", "e2"), (), "before", "after")],
        [*world.draws, Draw(len(world.passages), "e", "", (), "", ("Why?", "How\u2028?"), (0, 3))],
    )
    more.save(tmp_path / "a.pairs.gz")
    assert Pairs.load(tmp_path / "a.pairs.gz") == more
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
        Pairs.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CaprError, match="Fix: "):
        Pairs.load(tmp_path / "none.pairs.gz")


def test_a_split_has_no_document_in_common_and_is_the_same_again(world):
    learn, held = world.split(0.3, 5)
    documents = [{text.document for text in part.passages} for part in (learn, held)]
    assert all(documents)
    assert not documents[0] & documents[1]
    assert len(learn.passages) + len(held.passages) == len(world.passages)
    assert len(learn.draws) + len(held.draws) == len(world.draws)
    assert world.split(0.3, 5) == (learn, held)
    assert world.split(0.3, 6) != (learn, held)


def test_a_split_does_not_depend_on_other_documents(world):
    _, held = world.split(0.3)
    fewer = world.part(lambda text: not text.document.startswith("gout"))
    found = {text.document for text in fewer.split(0.3)[1].passages}
    assert found == {text.document for text in held.passages if not text.document.startswith("gout")}


def test_a_part_means_the_same_passages(world):
    for part in world.split(0.3):
        originals = {world.passages[d.passage].text + d.aspect: d for d in world.draws}
        for draw in part.draws:
            text = part.passages[draw.passage]
            assert (draw.entity, draw.aspect) == (text.entities[0], text.aspects[0])
            original = originals[text.text + draw.aspect]
            wanted = {world.passages[n] for n in original.negatives}
            assert {part.passages[n] for n in draw.negatives} == {text for text in wanted if text in part.passages}


def test_both_parts_together_are_the_whole(world):
    learn, held = world.split(0.3)
    both = learn + held
    assert sorted(text.document for text in both.passages) == sorted(text.document for text in world.passages)
    for draw in both.draws:
        assert draw.entity in both.passages[draw.passage].entities
        assert all(0 <= n < len(both.passages) for n in draw.negatives)


def test_every_passage_with_both_labels_may_answer(world):
    draw = world.draws[0]
    wanted = {
        n for n, text in enumerate(world.passages) if text.entities == ("asthma",) and text.aspects == ("symptom",)
    }
    assert world.answering(draw) == wanted
    assert len(wanted) == 4
    assert world.answering(Draw(7, "unknown", "unknown")) == {7}


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_list_holds_the_answer_and_nothing_twice(world, size):
    lists = list(world.lists(size, 20, 3))
    assert len(lists) == 20
    assert lists == list(world.lists(size, 20, 3))
    for asked, candidates, answers in lists:
        assert asked
        assert answers
        assert answers <= set(candidates)
        assert len(candidates) == len(set(candidates)) == min(size, len(world.passages))


def test_the_draws_of_a_passage_stand_together(world):
    groups = world.by_passage()
    assert len(groups) == len(world.passages)
    assert all(len({draw.passage for draw in group}) == 1 for group in groups)


def test_a_passage_is_read_bare_under_its_heading_or_also_under_the_title():
    text = Text("d", "Gout", "Symptoms", "A red toe.")
    assert [text.view(kind) for kind in ("text", "heading", "title")] == [
        "A red toe.", "Symptoms | A red toe.", "Gout | Symptoms | A red toe.",
    ]  # fmt: skip
    assert Text("d", "Gout", "", "A red toe.").view("title") == "Gout | A red toe."


def test_a_draw_is_worded_by_its_names_or_by_a_question_of_the_source():
    draw = random.Random(0)
    one = Draw(0, "gout", "symptom", ("gout", "podagra"), "Symptoms", ("Why does my toe hurt?",))
    said = {one.worded(draw) for _ in range(300)}
    assert "Why does my toe hurt?" in said
    assert any("podagra" in words for words in said)
    assert all("gout" in words or "podagra" in words or "toe" in words for words in said)
    only = Draw(0, questions=("Why?",))
    assert {only.worded(draw) for _ in range(20)} == {"Why?"}


FILL = "This sentence only makes the passage long enough to be of use."


def article(title: str, sections: dict[str, str]) -> Document:
    text, annotations = "", []
    for heading, body in sections.items():
        begin = len(text)
        text += f"{heading}\n{body} {FILL}\n\n"
        value = {"heading": heading, "heading_end": begin + len(heading)}
        annotations.append(Annotation("section", Span(begin, len(text)), value))
    return Document(title, text, title, {}, tuple(annotations))


ARTICLES = [
    article("Asthma", {"Symptoms": "Wheeze at night.", "Treatment": "Inhaled steroids.", "Causes": "Pollen and dust."}),
    article("Gout", {"Symptoms": "A red and hot big toe.", "Treatment": "Colchicine eases an attack."}),
]


@pytest.fixture(scope="module")
def drawn():
    vocabulary = Vocabulary.load()

    def draw(context: bool = False, seed: int = 0) -> Pairs:
        labeller = Labeller(annotator(False, vocabulary), aliases={"Gout": ["Podagra"]})
        with Pool(labelled(iter(ARTICLES), labeller)) as pool:
            return Pairs.drawn(pool, vocabulary, seed, context=context)

    return draw


def test_documents_become_passages_with_queries_and_negatives(drawn):
    pairs = drawn()
    assert [(text.title, text.heading) for text in pairs.passages] == [
        ("Asthma", "Symptoms"), ("Asthma", "Treatment"), ("Asthma", "Causes"), ("Gout", "Symptoms"), ("Gout", "Treatment"),
    ]  # fmt: skip
    assert sorted(draw.passage for draw in pairs.draws) == [0, 1, 2, 3, 4]
    for draw in pairs.draws:
        text = pairs.passages[draw.passage]
        assert draw.names[0] == text.title
        assert draw.heading == text.heading
        assert ("Podagra" in draw.names) == (text.title == "Gout")
        assert draw.negatives
        assert not set(draw.negatives) & pairs.answering(draw)
    assert drawn() == pairs


def test_a_passage_has_the_others_of_its_document_around_it(drawn):
    first, second, third, *_ = drawn(context=True).passages
    assert (first.before, third.after) == ("", "")
    assert first.after == f"{second.text}\n{third.text}"
    assert second.before == first.text
    assert second.after == third.text
    assert "toe" not in third.after
