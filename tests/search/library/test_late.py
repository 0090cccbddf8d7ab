"""Late interaction in a library: vectors of word pieces are stored with passages, and re-rank the best of them."""

import sqlite3
from contextlib import closing

import pytest
from reference import encoder_folder, late_folder

from capr.documents import Document
from capr.index import PIECES, PassageKey
from capr.index.prepare import wording
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.late import maxsim, unpack
from capr.search.reranking import RERANKED, RERANKED_AFTER_LATE

NOTES = [
    Document("asthma", "Wheeze and cough since spring.", "Clinic note", {"patient": "p1"}),
    Document("gout", "PLAN: allopurinol for gout.", "Clinic note", {"patient": "p2"}),
    Document("fever", "Fever of 39 degrees, without a rash.", "Admission note", {"patient": "p2"}),
    Document("empty", "", "No text", {}),
]


class CountingRanker:
    """Scores a passage by its length, and counts the passages that it reads."""

    def __init__(self):
        self.counts = []

    def scores(self, query, passages):
        self.counts.append(len(passages))
        return [float(len(passage)) for passage in passages]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return late_folder(tmp_path_factory.mktemp("late"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return encoder_folder(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def library(opened, folder):
    library = opened(encoder=folder, ranker="none")
    library.add(NOTES)
    return library


def stored_passages(library):
    return [stored for document in library.documents() for stored in library.passages(document.id)]


def codes_of(library):
    return library.index.codes([stored.key for stored in stored_passages(library)])


def test_adding_stores_the_codes_of_word_pieces(library, folder):
    stored = stored_passages(library)
    texts = [wording(passage.title, passage.entry) for passage in stored]
    _, expected = OnnxEncoder(folder).passages_with_pieces(texts)
    assert codes_of(library) == dict(zip((passage.key for passage in stored), expected, strict=True))
    assert library.stats().piece_vectors == sum(len(unpack(code, 8)) for code in expected)
    assert library.stats().as_json()["piece_vectors"] == library.stats().piece_vectors
    check = library.verify()
    assert (check.problems, check.notices, check.piece_vectors) == ([], [], library.stats().piece_vectors)


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_the_late_stage_ranks_by_maxsim(library, folder, mode):
    query = "allopurinol for gout"
    hits = library.search(query, mode=mode)
    pieces = OnnxEncoder(folder).query_with_pieces(query)[1]
    codes = codes_of(library)
    for hit in hits:
        key = PassageKey(hit.document, hit.passage.index)
        assert hit.stages["late"].score == pytest.approx(float(maxsim(pieces, [codes[key]])[0]), abs=1e-6)
    by_stage = sorted(hits, key=lambda hit: hit.stages["late"].rank)
    assert [hit.stages["late"].score for hit in by_stage] == sorted(
        (hit.stages["late"].score for hit in hits), reverse=True
    )
    assert hits[0].document == "gout"


def test_lexical_search_has_no_late_stage(library):
    assert all("late" not in hit.stages for hit in library.search("gout", mode="lexical"))


def test_hits_do_not_depend_on_the_order_of_adding(opened, folder, tmp_path, library):
    from capr.search import Library

    with Library(tmp_path / "other", encoder=folder, ranker="none") as other:
        for note in NOTES[::-1]:
            other.add(note)
        for query in ("gout", "fever and cough", "clinic"):
            scores = [(hit.document, hit.stages["late"].score) for hit in library.search(query)]
            assert scores == [(hit.document, hit.stages["late"].score) for hit in other.search(query)]


def test_a_ranker_reads_fewer_passages_after_late_interaction(opened, folder, plain, tmp_path):
    from capr.search import Library

    notes = [Document(f"n{number}", f"Fever on day {number}.") for number in range(40)]
    ranker = CountingRanker()
    library = opened(encoder=folder, ranker=ranker)
    library.add(notes)
    hits = library.search("fever", 20)
    assert ranker.counts == [RERANKED_AFTER_LATE]
    assert [("rerank" in hit.stages) for hit in hits] == [True] * RERANKED_AFTER_LATE + [False] * 12
    with Library(tmp_path / "plain", encoder=plain, ranker=ranker) as without:
        without.add(notes)
        without.search("fever")
    assert ranker.counts[1:] == [RERANKED]


def test_encode_replaces_the_vectors_of_an_encoder_without_word_pieces(opened, folder, plain):
    library = opened(encoder=plain, ranker="none")
    library.add(NOTES)
    assert codes_of(library) == {}
    assert library.encode(folder) == 3
    assert len(codes_of(library)) == 3
    assert "late" in library.search("gout")[0].stages
    library.encode(plain)
    assert (codes_of(library), library.index.encoder(PIECES), library.stats().piece_vectors) == ({}, None, 0)
    assert "late" not in library.search("gout")[0].stages
    assert library.verify().problems == []


def test_documents_with_the_same_content_share_codes(library):
    copy = Document("copy", NOTES[1].text, NOTES[1].title, {"patient": "p9"})
    assert library.add(copy).encoded == 0
    codes = codes_of(library)
    assert codes[PassageKey("copy", 0)] == codes[PassageKey("gout", 0)]


def test_a_part_of_a_library_re_ranks_its_own_passages(library):
    part = library.within({"patient": "p2"})
    assert {hit.document for hit in part.search("gout")} <= {"gout", "fever"}
    assert all("late" in hit.stages for hit in part.search("gout"))
    assert part.index.codes([PassageKey("asthma", 0), PassageKey("gout", 0)]).keys() == {PassageKey("gout", 0)}


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_verify_drops_a_damaged_code_and_encode_makes_it_again(library, path, share):
    codes = codes_of(library)
    with closing(sqlite3.connect(path / "library.db")) as database, database:
        number, code = database.execute("SELECT passage, code FROM vector_pieces ORDER BY passage").fetchone()
        damaged = bytearray(code)
        damaged[int(share * (len(code) - 1))] ^= 0x10
        database.execute("UPDATE vector_pieces SET code = ? WHERE passage = ?", (bytes(damaged), number))
    with pytest.raises(Exception, match=r"library\.db is damaged.*Fix: run capr verify --repair"):
        library.search("wheeze")
    (problem,) = library.verify().problems
    assert f"the vectors of a passage differ from what was written (passage {number}). Fix: " in problem
    check = library.verify(repair=True)
    assert (check.problems, check.repaired) == ([], ["vectors of pieces"])
    assert len(codes_of(library)) == 2
    notices = library.search("wheeze").notices
    assert [notice for notice in notices if "the word pieces of 1 passage have no vectors yet. Fix: " in notice]
    source = library.index.store.source
    before = [source(space) for space in library.index.store.searched_spaces()]
    assert library.encode() == 1
    assert codes_of(library) == codes
    assert [source(space) for space in library.index.store.searched_spaces()] == before  # no vector index is rebuilt
    assert "word pieces" not in " ".join(library.search("wheeze").notices)
