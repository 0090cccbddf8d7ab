"""Search by the vectors of sentences, and the curve of a document."""

import numpy as np
import pytest
from gout import ARTICLES, GOUT, WordDiscourse, documents_and_headings

from capr.annotate import Query
from capr.documents import CaprError, Document, Span
from capr.index import PASSAGES, SENTENCES
from capr.search import Curve, SentenceScore


@pytest.mark.parametrize(
    ("entity", "aspect", "first"),
    [
        ("gout", "symptoms", ("gout", "symptoms")),
        ("gout", "treatment", ("gout", "treatment")),
        ("asthma", "treatment", ("asthma", "treatment")),
    ],
)
def test_the_passage_about_the_aspect_of_the_entity_is_found(library, entity, aspect, first):
    results = library.search(Query(entity=entity, aspect=aspect), mode="cdv")
    assert documents_and_headings(results)[0] == first
    assert (results.mode, len(results)) == ("cdv", 5)
    assert [hit.score for hit in results] == sorted((hit.score for hit in results), reverse=True)
    assert results[0].stages["cdv"].rank == 1
    assert results[0].stages["cdv"].score == results[0].score


def test_the_score_of_a_hit_is_the_mean_of_its_sentences(library):
    hit = library.search(GOUT, 1, mode="cdv")[0]
    inside = [score for score in library.scores(GOUT, "gout") if hit.passage.span.covers(score.span)]
    assert hit.score == pytest.approx(np.mean([score.both for score in inside]), abs=0.01)
    best = sorted(inside, key=lambda score: -score.both)[:3]
    assert [sentence.span for sentence in hit.sentences] == [score.span for score in best]
    assert [sentence.score for sentence in hit.sentences] == pytest.approx([score.both for score in best], abs=1e-3)


@pytest.mark.parametrize(("entity", "aspect"), [("gout", ""), ("", "treatment")])
def test_half_a_pair_finds_passages_about_that_half(library, entity, aspect):
    hit = library.search(Query(entity=entity, aspect=aspect), 1, mode="cdv")[0]
    assert hit.document == "gout" if entity else hit.headings == ("Treatment",)


@pytest.mark.parametrize(
    ("entity", "aspect", "fact"),
    [
        ("...", "", "no word of the entity '...' of the query"),
        ("", "?", "no word of the aspect '?' of the query"),
        ("...", "?", "no word of the entity '...' or of the aspect '?' of the query"),
    ],
)
def test_a_query_of_unknown_words_finds_nothing_and_a_notice_says_why(library, entity, aspect, fact):
    results = library.search(Query(entity=entity, aspect=aspect), mode="cdv")
    assert (len(results), results.mode) == (0, "cdv")
    assert f"the discourse model knows {fact}, so that nothing was found" in results.notices


@pytest.mark.parametrize("unknown", ["entity", "aspect"])
def test_the_known_half_of_a_pair_decides(library, unknown):
    known = {"entity": "gout", "aspect": "treatment"}
    del known[unknown]
    half_results = library.search(Query(**known), mode="cdv")
    results = library.search(Query(**known, **{unknown: "..."}), mode="cdv")
    assert [(hit.passage, hit.score) for hit in results] == [(hit.passage, hit.score) for hit in half_results]
    fact = f"the discourse model knows no word of the {unknown} '...' of the query"
    assert f"{fact}, so that its other half alone decides" in results.notices
    assert not half_results.notices


def test_hits_can_be_filtered_grouped_and_shown_with_neighbours(library):
    assert {hit.document for hit in library.search(GOUT, mode="cdv", filters={"patient": "p1"})} == {"note"}
    grouped = library.search(GOUT, mode="cdv", group="document", neighbours=1)
    assert [hit.group for hit in grouped][:1] == ["gout"]
    assert len(grouped) == 3
    assert len(grouped[0].others) == 1
    assert grouped[0].neighbours


def test_removed_and_replaced_documents_are_not_found(library):
    library.remove("asthma")
    library.add(Document("gout", "Causes\nUric acid.", "Gout"), replace=True)
    assert sorted(documents_and_headings(library.search(GOUT, mode="cdv"))) == [("gout", "causes"), ("note", "plan")]
    library.compact()
    assert sorted(documents_and_headings(library.search(GOUT, mode="cdv"))) == [("gout", "causes"), ("note", "plan")]
    assert library.verify().problems == []
    assert library.stats().disk["sentences"] > 0


def test_the_ranker_of_the_user_re_ranks_cdv_search(library, opened):
    class LongFirst:
        def scores(self, query, passages):
            return [float(len(passage)) for passage in passages]

    ranked = opened(discourse=WordDiscourse(), ranker=LongFirst())
    assert set(ranked.search(GOUT, mode="cdv")[0].stages) == {"cdv", "rerank"}
    assert set(library.search(GOUT, mode="cdv")[0].stages) == {"cdv"}


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("What are the symptoms of gout?", ("gout", "symptoms")),
        ("gout treatment", ("gout", "treatment")),
        ("treatment of the Xyz disease", ("Xyz disease", "treatment")),
        ("gout and colchicine", ("gout", "colchicine")),
        ("how is asthma treated", ("asthma", "treatment")),
        ("What is a stroke?", ("stroke", "description")),
        ("How do I prevent a heart attack?", ("heart attack", "prevent")),
        ("Can a child have asthma?", ("asthma", "child")),
        ("gout", ("gout", "")),
        ("zebra stripes", ("zebra stripes", "")),
        ("symptoms", ("", "symptoms")),
    ],
)
def test_a_text_is_understood_as_an_entity_and_an_aspect(library, text, pair):
    curve = library.scores(text, "gout")
    assert (curve.entity, curve.aspect) == pair
    notices = library.search(text, mode="cdv").notices
    fact = f"understood as the entity {pair[0]!r} and the aspect {pair[1]!r}"
    assert [notice for notice in notices if fact in notice]
    assert not library.search(GOUT, mode="cdv").notices


def test_operators_work_in_cdv_search(library):
    assert {hit.document for hit in library.search("gout treatment -salbutamol patient:p1", mode="cdv")} == {"note"}
    assert {hit.document for hit in library.search('gout "steroids help"', mode="cdv")} == {"asthma"}
    results = library.search("-gout", mode="cdv")
    assert (len(results), results.mode) == (0, "cdv")


def test_search_without_a_model_or_vectors_names_the_command(opened):
    library = opened()
    library.add(ARTICLES)
    with pytest.raises(CaprError, match=r"the sentences have no vectors\. Fix: capr encode .* --discourse FOLDER"):
        library.search(GOUT, mode="cdv")
    with pytest.raises(CaprError, match=r"the sentences have no vectors\. Fix: "):
        opened(discourse=WordDiscourse()).scores(GOUT, "gout")
    with pytest.raises(CaprError, match=r'is "none"\. Fix: '):
        opened(discourse="none").search(GOUT, mode="cdv")


@pytest.mark.parametrize("half", [32, 16])
def test_search_and_scores_fail_if_another_process_changes_the_model(library, opened, monkeypatch, half):
    discourse_for_search = library.models.discourse_for_search

    def change_model(index):
        model = discourse_for_search(index)
        opened().encode(discourse=WordDiscourse("other", half))
        return model

    calls = (lambda: library.search(GOUT, mode="cdv"), lambda: library.scores(GOUT, "gout"))
    for call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(library.models, "discourse_for_search", change_model)
            with pytest.raises(CaprError, match=r"now come from another model, .*Fix: search again"):
                call()
        opened().encode(discourse=WordDiscourse())
        call()


def test_search_fails_if_another_process_changes_the_model_after_the_ranking(library, opened, monkeypatch):
    search_dense = library.index.dense

    def change_after_search(*arguments):
        result = search_dense(*arguments)
        opened().encode(discourse=WordDiscourse("other", 16))
        return result

    monkeypatch.setattr(library.index, "dense", change_after_search)
    with pytest.raises(CaprError, match=r"now come from another model, other .*Fix: search again"):
        library.search(GOUT, mode="cdv")


def test_a_sentence_over_two_passages_is_clipped_to_the_hit(opened):
    class Whole(WordDiscourse):
        """Takes a whole document as one sentence."""

        def sentences(self, document):
            return [Span(0, len(document.text))], self.query(document.title, document.text)[None]

    library = opened(discourse=Whole())
    library.add(ARTICLES[0])
    hits = library.search(GOUT, mode="cdv")
    assert len(hits) == 2
    for hit in hits:
        (sentence,) = hit.sentences
        assert hit.passage.span.covers(sentence.span)
        assert hit[sentence.span] == library.document("gout")[sentence.span]
    assert len(library.scores(GOUT, "gout")) == 1


def test_the_curve_has_the_scores_of_both_halves_and_their_mean(library):
    curve = library.scores(GOUT, "gout")
    model, document = WordDiscourse(), library.document("gout")
    spans, vectors = model.sentences(document)
    halves = [
        (2 * v[:32] @ model.query("gout", "")[:32], 2 * v[32:] @ model.query("", "symptoms")[32:]) for v in vectors
    ]
    assert [score.span for score in curve] == spans
    assert [(score.entity, score.aspect) for score in curve] == pytest.approx(np.array(halves), abs=0.02)
    assert [score.both for score in curve] == pytest.approx([sum(pair) / 2 for pair in halves], abs=0.02)
    assert [(document.text[begin:][: len(heading)], heading) for begin, heading in curve.headings] == [
        ("Symptoms", "Symptoms"),
        ("Treatment", "Treatment"),
    ]
    assert curve.first_sentences() == [(0, "Symptoms"), (3, "Treatment")]
    assert document[curve.peaks(1)[0].span] == "Symptoms"


def test_the_curve_of_half_a_query_is_zero_in_the_other_half(library):
    curve = library.scores(Query(entity="gout"), "gout")
    assert {score.aspect for score in curve} == {0.0}
    assert all(score.both == pytest.approx(score.entity / 2, abs=1e-3) for score in curve)


def test_the_curve_as_json(library):
    record = library.scores(GOUT, "note").as_json()
    assert record.keys() == {"document", "by", "entity", "aspect", "answer", "headings", "sentences"}
    (sentence,) = record["sentences"]
    assert (sentence["begin"], sentence["end"], sentence["text"]) == (0, 35, ARTICLES[2].text)


def test_the_curve_of_a_missing_or_an_empty_document(library):
    with pytest.raises(CaprError, match=r"no document 'z'.*Fix: "):
        library.scores(GOUT, "z")
    library.add(Document("empty", " \n"))
    curve = library.scores(GOUT, "empty")
    assert (len(curve), curve.peaks(), curve.first_sentences()) == (0, [], [])


def test_peaks_are_sentences_that_no_neighbour_surpasses():
    scores = [0.1, 0.9, 0.9, 0.2, 0.5, 0.4, 0.8]
    points = tuple(SentenceScore(Span(i, i + 1), 0, 0, s) for i, s in enumerate(scores))
    peaks = Curve(Document("a", "abcdefg"), "e", "a", points).peaks(5)
    assert [peak.span.begin for peak in peaks] == [1, 6, 4]


def test_the_index_records_the_model_of_each_space(library):
    assert library.index.encoder(SENTENCES).name == "word-cdv"
    assert library.index.encoder(PASSAGES) is None
