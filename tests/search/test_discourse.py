"""Sentences with discourse vectors in a library: what is kept, found and told of them."""

import sqlite3
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from capr.annotate import Query
from capr.documents import CaprError, Document, Span
from capr.index import Grain
from capr.index.sentences import allotted, meant, packed, unpacked
from capr.index.vectors import decoded
from capr.search import Curve, SentenceScore, models
from capr.search import library as module

_spec = spec_from_file_location("reference", Path(__file__).parents[1] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)
WordDiscourse = reference.WordDiscourse

ARTICLES = [
    Document(
        "gout",
        "Symptoms\nThe big toe hurts. It is red and swollen.\n\nTreatment\nColchicine helps. So does rest.",
        "Gout",
        {"source": "articles"},
    ),
    Document(
        "asthma",
        "Symptoms\nPeople wheeze. They cough at night.\n\nTreatment\nInhaled steroids help. So does salbutamol.",
        "Asthma",
        {"source": "articles"},
    ),
    Document("note", "PLAN: Start colchicine for the toe.", "Note", {"patient": "p1"}),
]
GOUT = Query(entity="gout", aspect="symptoms")


@pytest.fixture
def library(opened):
    filled = opened(discourse=WordDiscourse())
    filled.add(ARTICLES)
    return filled


def found(results):
    return [(hit.document, hit.headings[-1].lower() if hit.headings else "") for hit in results]


# --- which sentence belongs where ---


def test_a_sentence_belongs_to_the_passage_that_covers_it_or_holds_most_of_it():
    spans = [Span(0, 8), Span(9, 30), Span(31, 33)]
    vectors = np.eye(3, dtype=np.float32)
    first, second = allotted(spans, vectors, [Span(0, 15), Span(15, 40)])
    assert (first.spans, second.spans) == ((spans[0],), (spans[1], spans[2]))
    assert second.vectors.tolist() == vectors[1:].tolist()


def test_a_passage_within_a_sentence_has_that_sentence():
    found = allotted([Span(0, 30)], np.ones((1, 2), np.float32), [Span(0, 20), Span(20, 25), Span(26, 30)])
    assert [one.spans for one in found] == [(Span(0, 30),)] * 3


def test_a_passage_without_text_of_a_sentence_has_none():
    first, second = allotted([Span(2, 5)], np.ones((1, 4), np.float32), [Span(0, 6), Span(8, 9)])
    assert (first.spans, second.spans, second.vectors.shape) == ((Span(2, 5),), (), (0, 4))
    assert allotted([], np.zeros((0, 4), np.float32), []) == []


def test_sentences_are_kept_in_eight_bits_and_their_mean_is_that_of_the_vectors():
    vectors = np.random.default_rng(1).normal(size=(5, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    given = reference.Sentences(tuple(Span(i, i + 1) for i in range(5)), vectors)
    data = packed(given)
    assert len(data) == 5 * (16 + 12) + 4
    back = unpacked(data, 16)
    assert back.spans == given.spans
    assert np.abs(back.vectors - vectors).max() < 0.005
    assert np.abs(decoded(meant(data, 16)) - vectors.mean(axis=0)).max() < 0.005
    assert meant(packed(reference.Sentences((), np.zeros((0, 16), np.float32))), 16) == bytes(20)


@pytest.mark.parametrize("data", [b"", b"1", b"1234567", bytes(40)])
def test_what_are_no_sentences_is_refused(data):
    with pytest.raises(ValueError, match="not what was kept"):
        unpacked(data, 16)


# --- keeping ---


def test_sentences_get_vectors_when_documents_are_added(library):
    stats = library.stats()
    assert (stats.sentences, stats.passages_with_sentences, stats.passages) == (13, 5, 5)
    assert stats.discourse == WordDiscourse().identity
    assert library.verify().sentence_vectors == 13
    assert library.verify().problems == []


def test_a_model_can_be_given_when_documents_are_added(opened):
    library = opened()
    assert library.add(ARTICLES[:2], model=WordDiscourse()).sentences == 12
    assert found(library.search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]
    assert library.add(ARTICLES[2]).sentences == 1


def test_the_library_remembers_the_model(library, opened, tmp_path, monkeypatch):
    there = WordDiscourse(folder=str(tmp_path))
    monkeypatch.setattr(models, "load_discourse", lambda folder: WordDiscourse(folder=str(folder)))
    library.encode(discourse=there)
    assert found(opened().search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]
    assert opened().add(Document("d", "Fever. Cough.")).sentences == 2


def test_a_model_that_is_gone_is_told_of(library, opened):
    with pytest.raises(CaprError, match=r"the discourse word-cdv of .* is not in /models/word-cdv any more\. Fix: "):
        opened().search(GOUT, mode="cdv")
    with pytest.raises(CaprError, match="the discourse word-cdv"):
        opened().add(Document("d", "Fever."))
    assert opened(discourse="none").add(Document("d", "Fever.")).added == 1
    assert opened().search("wheeze").mode == "lexical"


def test_another_model_is_refused_with_the_command_that_changes_to_it(library, opened):
    other = opened(discourse=WordDiscourse("other", folder="/models/other"))
    for call in (lambda: other.search(GOUT, mode="cdv"), lambda: other.add(Document("d", "Fever."))):
        with pytest.raises(CaprError, match=r"made by word-cdv .*Fix: capr encode .* --discourse /models/other, which"):
            call()


def test_only_what_has_no_vectors_gets_them(library, path):
    with closing(sqlite3.connect(path / "library.db")) as database, database:
        database.execute("DELETE FROM sentence WHERE passage IN (2, 3)")
        kept = database.execute("SELECT * FROM sentence").fetchall()
    told = []
    assert library.encode(discourse=WordDiscourse(), on_commit=lambda *given: told.append(given)) == 2
    assert told == [(2, 2)]
    with closing(sqlite3.connect(path / "library.db")) as database:
        now = database.execute("SELECT * FROM sentence").fetchall()
    assert (set(kept) < set(now), len(now), library.verify(repair=True).problems) == (True, 5, [])


def test_a_document_longer_than_a_batch(opened, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    library = opened()
    library.add(Document("long", "\n\n".join(f"PART {i}:\nIt has words." for i in range(7))))
    passages = library.stats().passages
    assert passages > 4
    model, told = WordDiscourse(), []
    assert library.encode(discourse=model, on_commit=lambda *given: told.append(given)) == passages
    assert (model.read, told) == (["long"], [(passages, passages)])


def test_another_model_makes_all_vectors_again(library, opened):
    other = WordDiscourse("other", half=16, folder="/models/other")
    assert library.encode(discourse=other) == 5
    assert (other.read, library.stats().discourse) == (["gout", "asthma", "note"], other.identity)
    assert found(opened(discourse=other).search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]
    assert library.verify().problems == []


def test_encoding_anew_leaves_the_other_vectors_alone(opened):
    class Encoder:
        identity = reference.EncoderIdentity("halves", "77" * 16, 64, "/models/halves")

        def passages(self, texts):
            return np.array([self.query(text) for text in texts], np.float32)

        def query(self, text):
            return WordDiscourse().query(text, text)

    library = opened(encoder=Encoder(), discourse=WordDiscourse())
    library.add(ARTICLES)
    before = library.stats()
    assert (before.vectors, before.sentences) == (5, 13)
    assert library.encode(discourse=WordDiscourse("other", folder="/models/other")) == 5
    assert (library.stats().encoder, library.stats().vectors) == (before.encoder, 5)
    assert library.encode(Encoder()) == 0
    assert library.search("gout", mode="dense").mode == "dense"


def test_equal_documents_are_not_read_twice(opened):
    model = WordDiscourse()
    library = opened(discourse=model)
    same = Document("again", ARTICLES[0].text, "Gout")
    assert library.add([ARTICLES[0], same]).sentences == 6
    assert library.add(Document("later", ARTICLES[0].text, "Gout")).sentences == 0
    assert model.read == ["gout"]
    hits = library.search(GOUT, mode="cdv", filters={"aspect": "symptoms"})
    assert sorted(hit.document for hit in hits) == ["again", "gout", "later"]
    assert len({hit.score for hit in hits}) == 1


def test_a_library_that_is_there_gets_sentences_and_goes_on_where_it_stopped(opened, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    library = opened()
    library.add(ARTICLES)
    told = []

    class Failing(WordDiscourse):
        def sentences(self, document):
            if document.id == "asthma":
                raise KeyboardInterrupt
            return super().sentences(document)

    with pytest.raises(KeyboardInterrupt):
        library.encode(discourse=Failing())
    assert library.stats().passages_with_sentences == 2
    hits = library.search(GOUT, mode="cdv")
    assert [notice for notice in hits.notices if "the sentences of 3 passages have no vectors yet. Fix: " in notice]
    with pytest.raises(CaprError, match=r"the sentences of 'asthma' have no vectors yet\. Fix: capr encode"):
        library.scores(GOUT, "asthma")
    model = WordDiscourse()
    assert library.encode(discourse=model, on_commit=lambda *given: told.append(given)) == 3
    assert (model.read, told) == (["asthma", "note"], [(2, 3), (3, 3)])
    assert library.encode(discourse=WordDiscourse()) == 0
    assert library.verify().notices == []


def test_a_library_from_before_there_were_sentences_gets_them(opened, path):
    opened().add(ARTICLES)
    with closing(sqlite3.connect(path / "library.db")) as database, database:
        database.execute("DROP TABLE sentence")
    library = opened()
    assert (library.stats().sentences, library.verify().problems) == (0, [])
    assert library.index.sentences([1]) == {}
    assert library.remove("note") == 1
    assert library.encode(discourse=WordDiscourse()) == 4
    assert found(library.search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]


def test_vectors_that_are_not_what_the_model_says_are_refused(opened):
    class Wrong(WordDiscourse):
        def sentences(self, document):
            spans, vectors = super().sentences(document)
            return spans, vectors[:, :-2]

    with pytest.raises(CaprError, match=r"62 dimensions .* needs 64\. Fix: "):
        opened(discourse=Wrong()).add(ARTICLES)


# --- finding ---


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
    assert found(results)[0] == first
    assert (results.mode, len(results)) == ("cdv", 5)
    assert [hit.score for hit in results] == sorted((hit.score for hit in results), reverse=True)
    assert results[0].stages["cdv"].rank == 1
    assert results[0].stages["cdv"].score == results[0].score


def test_the_score_of_a_hit_is_the_mean_of_its_sentences_and_the_best_are_named(library):
    hit = library.search(GOUT, 1, mode="cdv")[0]
    inside = [one for one in library.scores(GOUT, "gout") if hit.passage.span.covers(one.span)]
    assert hit.score == pytest.approx(np.mean([one.both for one in inside]), abs=0.01)
    best = sorted(inside, key=lambda one: -one.both)[:3]
    assert [sentence.span for sentence in hit.sentences] == [one.span for one in best]
    assert [sentence.score for sentence in hit.sentences] == pytest.approx([one.both for one in best], abs=1e-3)


@pytest.mark.parametrize(("entity", "aspect"), [("gout", ""), ("", "treatment")])
def test_half_a_query_finds_what_that_half_says(library, entity, aspect):
    hit = library.search(Query(entity=entity, aspect=aspect), 1, mode="cdv")[0]
    assert hit.document == "gout" if entity else hit.headings == ("Treatment",)


@pytest.mark.parametrize(
    ("entity", "aspect", "told"),
    [
        ("...", "", "no word of the entity '...' of the query"),
        ("", "?", "no word of the aspect '?' of the query"),
        ("...", "?", "no word of the entity '...' or of the aspect '?' of the query"),
    ],
)
def test_a_query_that_the_model_does_not_know_finds_nothing_and_says_why(library, entity, aspect, told):
    results = library.search(Query(entity=entity, aspect=aspect), mode="cdv")
    assert (len(results), results.mode) == (0, "cdv")
    assert f"the discourse model knows {told}, so that nothing was found" in results.notices


@pytest.mark.parametrize("unknown", ["entity", "aspect"])
def test_where_the_model_does_not_know_one_half_the_other_decides(library, unknown):
    known = {"entity": "gout", "aspect": "treatment"}
    del known[unknown]
    alone = library.search(Query(**known), mode="cdv")
    results = library.search(Query(**known, **{unknown: "..."}), mode="cdv")
    assert [(hit.passage, hit.score) for hit in results] == [(hit.passage, hit.score) for hit in alone]
    fact = f"the discourse model knows no word of the {unknown} '...' of the query"
    assert f"{fact}, so that its other half alone decides" in results.notices
    assert not alone.notices


def test_hits_can_be_filtered_grouped_and_shown_with_neighbours(library):
    assert {hit.document for hit in library.search(GOUT, mode="cdv", filters={"patient": "p1"})} == {"note"}
    grouped = library.search(GOUT, mode="cdv", group="document", neighbours=1)
    assert [hit.group for hit in grouped][:1] == ["gout"]
    assert len(grouped) == 3
    assert len(grouped[0].others) == 1
    assert grouped[0].neighbours


def test_what_was_removed_or_replaced_is_not_found(library):
    library.remove("asthma")
    library.add(Document("gout", "Causes\nUric acid.", "Gout"), replace=True)
    assert sorted(found(library.search(GOUT, mode="cdv"))) == [("gout", "causes"), ("note", "plan")]
    library.compact()
    assert sorted(found(library.search(GOUT, mode="cdv"))) == [("gout", "causes"), ("note", "plan")]
    assert library.verify().problems == []
    assert library.stats().disk["sentences"] > 0


def test_a_ranker_that_was_given_reads_what_was_found(library, opened):
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
    told = f"understood as the entity {pair[0]!r} and the aspect {pair[1]!r}"
    assert [notice for notice in notices if told in notice]
    assert not library.search(GOUT, mode="cdv").notices


def test_operators_of_a_text_hold(library):
    assert {hit.document for hit in library.search("gout treatment -salbutamol patient:p1", mode="cdv")} == {"note"}
    assert {hit.document for hit in library.search('gout "steroids help"', mode="cdv")} == {"asthma"}
    nothing = library.search("-gout", mode="cdv")
    assert (len(nothing), nothing.mode) == (0, "cdv")


def test_search_without_a_model_or_vectors_says_what_to_do(opened):
    library = opened()
    library.add(ARTICLES)
    with pytest.raises(CaprError, match=r"the sentences have no vectors\. Fix: capr encode .* --discourse FOLDER"):
        library.search(GOUT, mode="cdv")
    with pytest.raises(CaprError, match=r"the sentences have no vectors\. Fix: "):
        opened(discourse=WordDiscourse()).scores(GOUT, "gout")
    with pytest.raises(CaprError, match=r'is "none"\. Fix: '):
        opened(discourse="none").search(GOUT, mode="cdv")


@pytest.mark.parametrize("half", [32, 16])
def test_a_model_that_was_exchanged_meanwhile_is_told_of(library, opened, monkeypatch, half):
    chosen = library.models.discourse_to_search

    def to_search(index):
        found = chosen(index)
        opened().encode(discourse=WordDiscourse("other", half))
        return found

    calls = (lambda: library.search(GOUT, mode="cdv"), lambda: library.scores(GOUT, "gout"))
    for call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(library.models, "discourse_to_search", to_search)
            with pytest.raises(CaprError, match=r"now made by another model, .*Fix: search again"):
                call()
        opened().encode(discourse=WordDiscourse())
        call()


def test_a_model_that_was_exchanged_between_finding_and_showing_is_told_of(library, opened, monkeypatch):
    found = library.index.dense

    def dense(*given):
        result = found(*given)
        opened().encode(discourse=WordDiscourse("other", 16))
        return result

    monkeypatch.setattr(library.index, "dense", dense)
    with pytest.raises(CaprError, match=r"now made by another model, other .*Fix: search again"):
        library.search(GOUT, mode="cdv")


def test_a_sentence_over_two_passages_is_shown_as_far_as_it_lies_in_the_hit(opened):
    class Whole(WordDiscourse):
        """All of a document is one sentence."""

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


# --- the curve ---


def test_the_curve_tells_the_halves_and_their_mean(library):
    curve = library.scores(GOUT, "gout")
    model, document = WordDiscourse(), library.document("gout")
    spans, vectors = model.sentences(document)
    halves = [
        (2 * v[:32] @ model.query("gout", "")[:32], 2 * v[32:] @ model.query("", "symptoms")[32:]) for v in vectors
    ]
    assert [one.span for one in curve] == spans
    assert [(one.entity, one.aspect) for one in curve] == pytest.approx(np.array(halves), abs=0.02)
    assert [one.both for one in curve] == pytest.approx([sum(pair) / 2 for pair in halves], abs=0.02)
    assert [(document.text[begin:][: len(heading)], heading) for begin, heading in curve.headings] == [
        ("Symptoms", "Symptoms"),
        ("Treatment", "Treatment"),
    ]
    assert curve.first_sentences() == [(0, "Symptoms"), (3, "Treatment")]
    assert document[curve.peaks(1)[0].span] == "Symptoms"


def test_the_curve_of_half_a_query_is_zero_in_the_other_half(library):
    curve = library.scores(Query(entity="gout"), "gout")
    assert {one.aspect for one in curve} == {0.0}
    assert all(one.both == pytest.approx(one.entity / 2, abs=1e-3) for one in curve)


def test_the_curve_as_json(library):
    record = library.scores(GOUT, "note").as_json()
    assert record.keys() == {"document", "by", "entity", "aspect", "answer", "headings", "sentences"}
    (sentence,) = record["sentences"]
    assert (sentence["begin"], sentence["end"], sentence["text"]) == (0, 35, ARTICLES[2].text)


def test_a_document_that_is_not_there_or_empty(library):
    with pytest.raises(CaprError, match=r"no document 'z'.*Fix: "):
        library.scores(GOUT, "z")
    library.add(Document("empty", " \n"))
    curve = library.scores(GOUT, "empty")
    assert (len(curve), curve.peaks(), curve.first_sentences()) == (0, [], [])


def test_peaks_are_sentences_that_no_neighbour_surpasses():
    scores = [0.1, 0.9, 0.9, 0.2, 0.5, 0.4, 0.8]
    points = tuple(SentenceScore(Span(i, i + 1), 0, 0, s) for i, s in enumerate(scores))
    peaks = Curve(Document("a", "abcdefg"), "e", "a", points).peaks(5)
    assert [one.span.begin for one in peaks] == [1, 6, 4]


def test_the_index_says_which_model_made_which_vectors(library):
    assert library.index.encoder(Grain.SENTENCES).name == "word-cdv"
    assert library.index.encoder(Grain.PASSAGES) is None
