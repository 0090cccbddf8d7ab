"""A ranker that also scores sentences gives the sentences of a hit their scores."""

import pytest

from capr.documents import Document
from capr.runtime.ranker import RankerScores
from capr.search import Library

TEXT = "HISTORY: He has gout. He takes allopurinol for gout. He sleeps well."


class Counting:
    """Scores passages and sentences by the occurrences of a word, and records its inputs."""

    def __init__(self, word):
        self.word, self.read_texts = word, []

    def read(self, query, passages):
        self.read_texts += [
            (passage.text, [span.of(passage.text) for span in passage.sentences]) for passage in passages
        ]
        sentence_scores = [[float(span.of(p.text).count(self.word)) for span in p.sentences] for p in passages]
        return RankerScores([float(p.text.count(self.word)) for p in passages], sentence_scores)

    def scores(self, query, passages):
        raise AssertionError("a ranker that scores sentences must score passages and sentences in one call")


@pytest.fixture
def folder(tmp_path):
    with Library(tmp_path / "library", encoder="none", ranker="none") as library:
        library.add([Document("n1", TEXT, "Visit"), Document("n2", "PLAN: Treat gout. Rest.", "Visit")])
    return tmp_path / "library"


def test_sentences_have_the_scores_of_the_ranker(folder):
    ranker = Counting("allopurinol")
    with Library(folder, encoder="none", ranker=ranker) as library:
        first, second = library.search("gout", rerank=True)
    assert (first.document, second.document) == ("n1", "n2")
    best, *others = first.sentences
    assert (first[best.span], best.score) == ("He takes allopurinol for gout.", 1.0)
    assert all(sentence.score == 0 for sentence in others)
    assert all(TEXT[s.span.begin : s.span.end] == first[s.span] for s in first.sentences)


def test_sentences_are_spans_of_the_input_of_the_ranker(folder):
    ranker = Counting("gout")
    with Library(folder, encoder="none", ranker=ranker) as library:
        library.search("gout", rerank=True)
    read = {text.split(" | ")[0]: sentences for text, sentences in ranker.read_texts}
    assert set(read) == {"Visit"}  # the title precedes the passage
    cut = [sentence for _, sentences in ranker.read_texts for sentence in sentences]
    assert "He takes allopurinol for gout." in cut
    assert "Rest." in cut


def test_without_such_a_ranker_sentences_contain_words_of_the_query(folder):
    with Library(folder, encoder="none", ranker="none") as library:
        hit = library.search("allopurinol")[0]
    assert hit[hit.sentences[0].span] == "He takes allopurinol for gout."
