"""Vectors of sentences: made when documents are added or encoded, and stored."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from gout import ARTICLES, GOUT, WordDiscourse, documents_and_headings, reference

from capr.documents import CaprError, Document, Span
from capr.index import PassageKey, SpanVectors
from capr.index.embedded.sentences import mean_code, pack, unpack
from capr.index.embedded.vectors import decode
from capr.index.prepare import assign_sentences
from capr.search import batches, models


def test_a_sentence_belongs_to_the_passage_with_most_of_it():
    spans = [Span(0, 8), Span(9, 30), Span(31, 33)]
    vectors = np.eye(3, dtype=np.float32)
    first, second = assign_sentences(spans, vectors, [Span(0, 15), Span(15, 40)])
    assert (first.spans, second.spans) == ((spans[0],), (spans[1], spans[2]))
    assert second.vectors.tolist() == vectors[1:].tolist()


def test_a_passage_within_a_sentence_has_that_sentence():
    parts = assign_sentences([Span(0, 30)], np.ones((1, 2), np.float32), [Span(0, 20), Span(20, 25), Span(26, 30)])
    assert [part.spans for part in parts] == [(Span(0, 30),)] * 3


def test_a_passage_without_text_of_a_sentence_has_none():
    first, second = assign_sentences([Span(2, 5)], np.ones((1, 4), np.float32), [Span(0, 6), Span(8, 9)])
    assert (first.spans, second.spans, second.vectors.shape) == ((Span(2, 5),), (), (0, 4))
    assert assign_sentences([], np.zeros((0, 4), np.float32), []) == []


def test_vectors_of_sentences_are_stored_in_eight_bits_with_their_mean():
    vectors = np.random.default_rng(1).normal(size=(5, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sentences = SpanVectors(tuple(Span(i, i + 1) for i in range(5)), vectors)
    data = pack(sentences)
    assert len(data) == 5 * (16 + 12) + 4
    restored = unpack(data, 16)
    assert restored.spans == sentences.spans
    assert np.abs(restored.vectors - vectors).max() < 0.005
    assert np.abs(decode(mean_code(data, 16)) - vectors.mean(axis=0)).max() < 0.005
    assert mean_code(pack(SpanVectors((), np.zeros((0, 16), np.float32))), 16) == bytes(20)


@pytest.mark.parametrize("data", [b"", b"1", b"1234567", bytes(40)])
def test_invalid_data_is_refused(data):
    with pytest.raises(ValueError, match="differ from what was written"):
        unpack(data, 16)


def test_sentences_get_vectors_when_documents_are_added(library):
    stats = library.stats()
    assert (stats.sentences, stats.passages_with_sentences, stats.passages) == (13, 5, 5)
    assert stats.discourse == WordDiscourse().identity
    assert library.verify().sentence_vectors == 13
    assert library.verify().problems == []


def test_adding_accepts_a_model(opened):
    library = opened()
    assert library.add(ARTICLES[:2], discourse=WordDiscourse()).sentences == 12
    assert documents_and_headings(library.search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]
    assert library.add(ARTICLES[2]).sentences == 1


def test_the_library_remembers_the_model(library, opened, tmp_path, monkeypatch):
    model = WordDiscourse(folder=str(tmp_path))
    monkeypatch.setattr(models, "load_model", lambda folder, role: WordDiscourse(folder=str(folder)))
    library.encode(discourse=model)
    assert documents_and_headings(opened().search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]
    assert opened().add(Document("d", "Fever. Cough.")).sentences == 2


def test_a_missing_model_is_named(library, opened):
    with pytest.raises(CaprError, match=r"the discourse word-cdv of .* is not in /models/word-cdv any more\. Fix: "):
        opened().search(GOUT, mode="cdv")
    with pytest.raises(CaprError, match="the discourse word-cdv"):
        opened().add(Document("d", "Fever."))
    assert opened(discourse="none").add(Document("d", "Fever.")).added == 1
    assert opened().search("wheeze").mode == "lexical"


def test_another_model_is_refused_with_the_command_to_run(library, opened):
    other = opened(discourse=WordDiscourse("other", folder="/models/other"))
    for call in (lambda: other.search(GOUT, mode="cdv"), lambda: other.add(Document("d", "Fever."))):
        with pytest.raises(CaprError, match=r"made by word-cdv .*Fix: capr encode .* --discourse /models/other, which"):
            call()


def test_encoding_makes_only_missing_vectors(library, path):
    with closing(sqlite3.connect(path / "library.db")) as database, database:
        database.execute("DELETE FROM sentence WHERE passage IN (2, 3)")
        old_rows = database.execute("SELECT * FROM sentence").fetchall()
    progress = []
    assert library.encode(discourse=WordDiscourse(), on_commit=lambda *counts: progress.append(counts)) == 2
    assert progress == [(2, 2)]
    with closing(sqlite3.connect(path / "library.db")) as database:
        rows = database.execute("SELECT * FROM sentence").fetchall()
    assert (set(old_rows) < set(rows), len(rows), library.verify(repair=True).problems) == (True, 5, [])


def test_a_document_longer_than_a_batch(opened, monkeypatch):
    monkeypatch.setattr(batches, "ENCODED", 2)
    library = opened()
    library.add(Document("long", "\n\n".join(f"PART {i}:\nIt has words." for i in range(7))))
    passages = library.stats().passages
    assert passages > 4
    model, progress = WordDiscourse(), []
    assert library.encode(discourse=model, on_commit=lambda *counts: progress.append(counts)) == passages
    assert (model.read, progress) == (["long"], [(passages, passages)])


def test_another_model_makes_all_vectors_again(library, opened):
    other = WordDiscourse("other", half=16, folder="/models/other")
    assert library.encode(discourse=other) == 5
    assert (other.read, library.stats().discourse) == (["gout", "asthma", "note"], other.identity)
    assert documents_and_headings(opened(discourse=other).search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]
    assert library.verify().problems == []


def test_encoding_sentences_leaves_the_vectors_of_passages_alone(opened):
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


def test_interrupted_encoding_of_sentences_continues(opened, monkeypatch):
    monkeypatch.setattr(batches, "ENCODED", 2)
    library = opened()
    library.add(ARTICLES)
    progress = []

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
    assert library.encode(discourse=model, on_commit=lambda *counts: progress.append(counts)) == 3
    assert (model.read, progress) == (["asthma", "note"], [(2, 3), (3, 3)])
    assert library.encode(discourse=WordDiscourse()) == 0
    assert library.verify().notices == []


def test_an_old_library_gets_vectors_of_sentences(opened, path):
    opened().add(ARTICLES)
    with closing(sqlite3.connect(path / "library.db")) as database, database:
        database.execute("DROP TABLE sentence")
    library = opened()
    assert (library.stats().sentences, library.verify().problems) == (0, [])
    assert library.index.span_vectors([PassageKey("gout", 0)]) == {}
    assert library.remove("note") == 1
    assert library.encode(discourse=WordDiscourse()) == 4
    assert documents_and_headings(library.search(GOUT, 1, mode="cdv")) == [("gout", "symptoms")]


def test_vectors_with_other_dimensions_than_the_identity_are_refused(opened):
    class Wrong(WordDiscourse):
        def sentences(self, document):
            spans, vectors = super().sentences(document)
            return spans, vectors[:, :-2]

    with pytest.raises(CaprError, match=r"62 dimensions .* needs 64\. Fix: "):
        opened(discourse=Wrong()).add(ARTICLES)
