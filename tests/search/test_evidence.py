"""Evidence: the highlights and sentences of a passage."""

import pytest

from capr.annotate import Query
from capr.annotate.mentions import annotator
from capr.documents import Document, Span
from capr.index.embedded.engine import EmbeddedIndex
from capr.index.prepare import prepare
from capr.search.evidence import BEST, Evidence
from capr.search.parse import Parser

ATTACK = "Seen at noon. The heart attack was in May. He had an MI before; aspirin since. Heart sounds are normal."


@pytest.fixture
def index(tmp_path):
    engine = EmbeddedIndex(tmp_path / "library", create=True)
    yield engine
    engine.close()


def add(index, *documents):
    note_annotator = annotator(with_tagger=False)
    with index.writing() as writer:
        for document in documents:
            writer.add(prepare(document, note_annotator, document.text.encode()))
        writer.commit()


def find_evidence(index, query, stored):
    parser = Parser(annotator(with_tagger=False).gazetteer, lambda _: False, index.rarity)
    parsed = parser.parse(query if isinstance(query, Query) else Query(query))
    return Evidence(parsed, index).of(stored.entry)


@pytest.fixture
def evidence(index):
    """Return a function that finds the evidence in the first passage of a text: highlights, and sentences with scores."""

    def find(text, query, before=""):
        add(index, Document("a", before + text), Document("b", "Something else was written here."))
        stored = index.passages_in("a")[0]
        highlights, sentences = find_evidence(index, query, stored)
        document = index.document("a")
        assert [*highlights] == sorted(highlights)
        assert all(stored.entry.passage.span.covers(span) for span in highlights)
        assert {s.span for s in sentences} <= {*stored.entry.passage.sentences}
        assert all(0 < s.score <= 1 for s in sentences)
        assert [s.score for s in sentences] == sorted((s.score for s in sentences), reverse=True)
        return [document[span] for span in highlights], [(document[s.span], s.score) for s in sentences]

    return find


def test_all_forms_of_the_words_of_the_query_are_highlighted(evidence):
    highlights, _ = evidence("Zebras ran. A ZEBRA's stripe; the zebra-striped. Zebrafish did not.", "zebra stripes")
    assert highlights == ["Zebras", "ZEBRA", "stripe", "zebra", "striped"]


def test_spans_index_the_document(evidence, index):
    evidence("Rest.\n\nPLAN: zebra.", "zebra", "\n\n  🩺 ")
    (stored,) = (stored for stored in index.passages_in("a") if "zebra" in stored.entry.text)
    (span,), (sentence,) = find_evidence(index, "zebra", stored)
    document = index.document("a")
    assert document[span] == "zebra"
    assert sentence.span.covers(span)
    assert span == Span(document.text.index("zebra"), document.text.index("zebra") + 5)


def test_other_names_of_an_entity_are_highlighted(evidence):
    highlights, sentences = evidence(ATTACK, "myocardial infarction")
    assert highlights == ["heart attack", "MI"]
    assert [text for text, _ in sentences] == ["The heart attack was in May.", "He had an MI before; aspirin since."]
    assert {score for _, score in sentences} == {1.0}


def test_the_sentence_that_contains_most_of_the_query_is_the_best(evidence):
    highlights, sentences = evidence(ATTACK, "aspirin after myocardial infarction")
    assert highlights == ["heart attack", "MI", "aspirin"]
    assert [text for text, _ in sentences] == ["He had an MI before; aspirin since.", "The heart attack was in May."]
    assert sentences[0][1] == 1.0 > sentences[1][1]


def test_overlapping_highlights_are_merged(evidence):
    highlights, _ = evidence(ATTACK, "heart attack")
    assert highlights == ["heart attack", "MI", "Heart"]


def test_rare_words_weigh_more(index):
    add(index, *(Document(f"n{i}", "The zebra.") for i in range(9)))
    text = "A zebra. An okapi."
    add(index, Document("a", text), Document("b", "Something else was written here."))
    stored = index.passages_in("a")[0]
    _, sentences = find_evidence(index, "zebra okapi", stored)
    assert [s.span.of(text) for s in sentences] == ["An okapi.", "A zebra."]
    assert sum(s.score for s in sentences) == pytest.approx(1, abs=0.001)


def test_excluded_words_and_stop_words_are_not_highlighted(evidence):
    highlights, sentences = evidence("The zebra of the town. Okapi.", "the zebra of -okapi")
    assert highlights == ["zebra"]
    assert [text for text, _ in sentences] == ["The zebra of the town."]


def test_the_words_of_a_phrase_are_highlighted(evidence):
    highlights, _ = evidence("Black and white zebra.", '"white zebra"')
    assert highlights == ["white", "zebra"]


def test_accents_of_the_text_do_not_matter(evidence):
    assert evidence("Naïve Ménard; menard.", "menard naive")[0] == ["Naïve", "Ménard", "menard"]


def test_accents_of_the_query_do_not_matter(evidence):
    assert evidence("Naïve Ménard; menard.", "Ménard")[0] == ["Ménard", "menard"]


def test_forms_of_a_word_with_another_spelling_are_highlighted(evidence):
    assert evidence("He is dying. He dies.", "dying")[0] == ["dying", "dies"]


def test_underscores_separate_words(evidence):
    assert evidence("left_zebra_right and zebra2", "zebra")[0] == ["zebra"]


def test_chinese_is_highlighted(evidence):
    assert evidence("高血压 and 治疗.", "治疗")[0] == ["治疗"]


def test_sentences_with_equal_scores_keep_their_order(evidence):
    _, sentences = evidence("One zebra. Two zebras. Three zebras. Four zebras.", "zebra")
    assert [text for text, _ in sentences] == ["One zebra.", "Two zebras.", "Three zebras."][:BEST]


@pytest.mark.parametrize("query", ["?", "zebra", "-okapi", "patient:p1", "the"])
def test_a_passage_without_words_of_the_query_has_no_evidence(evidence, query):
    assert evidence("Okapi. Something.", query) == ([], [])


def test_other_names_of_the_entity_of_a_pair_are_highlighted(evidence):
    highlights, sentences = evidence(ATTACK, Query(entity="myocardial infarction", aspect="treatment"))
    assert highlights == ["heart attack", "MI"]
    assert len(sentences) == 2


def test_scores_stay_between_0_and_1_after_documents_were_removed(index):
    add(index, *(Document(f"n{i}", "The zebra.") for i in range(9)), Document("x", "An okapi and a zebra. A zebra."))
    with index.writing() as writer:
        writer.remove([f"n{i}" for i in range(9)])
        writer.commit()
    _, sentences = find_evidence(index, "zebra okapi", index.passages_in("x")[0])
    assert len(sentences) == 2
    assert all(0 < sentence.score <= 1 for sentence in sentences)
