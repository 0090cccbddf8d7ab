"""The vectors of a library: without an encoder, with one, and with another one later."""

import pytest
from notes import NOTES, WordEncoder, ids, reference

from capr.documents import CaprError, Document
from capr.search import batches


def test_without_an_encoder_only_words_are_compared_and_a_notice_says_so(library, path):
    results = library.search("aspirin")
    assert (results.mode, sorted(ids(results))) == ("lexical", ["a", "b"])
    (notice,) = results.notices
    assert "this search matched words only" in notice
    assert f"capr encode {path}" in notice
    assert library.search("aspirin", mode="lexical").notices == ()


def test_dense_search_without_an_encoder_names_the_command(library, path):
    with pytest.raises(CaprError, match=rf"dense search is not possible.*capr encode {path}"):
        library.search("aspirin", mode="dense")


def test_a_missing_encoder_is_named(opened, path, tmp_path):
    folder = tmp_path / "model"
    opened(encoder=WordEncoder(folder=str(folder))).add(NOTES)
    library = opened()
    results = library.search("aspirin")
    assert (results.mode, sorted(ids(results))) == ("lexical", ["a", "b"])
    assert str(folder) in results.notices[0]
    with pytest.raises(CaprError, match=f"{folder}.*Fix: "):
        library.search("aspirin", mode="dense")
    with pytest.raises(CaprError, match=f"{folder}.*Fix: "):
        library.add(Document("z", "New."))


def test_another_encoder_is_refused_with_the_command_to_run(encoded, opened, path):
    other = opened(encoder=WordEncoder("other", folder="/models/other"))
    fix = f"capr encode {path} --encoder /models/other"
    with pytest.raises(CaprError, match=f"made by words .*{fix}"):
        other.add(Document("z", "New."))
    with pytest.raises(CaprError, match=fix):
        other.search("aspirin", mode="dense")
    results = other.search("aspirin")
    assert results.mode == "lexical"
    assert fix in results.notices[0]
    assert encoded.stats().documents == 4


def test_passages_can_be_encoded_later(library, opened, monkeypatch):
    monkeypatch.setattr(batches, "ENCODED", 2)
    progress = []
    assert library.encode(WordEncoder(), lambda *counts: progress.append(counts)) == 5
    assert progress == [(2, 5), (4, 5), (5, 5)]
    assert library.encode() == 0
    assert library.search("aspirin").mode == "hybrid"
    direct = opened(encoder=WordEncoder())
    assert ids(direct.search("Start aspirin", mode="dense"))[0] == "a"
    assert library.verify().problems == []


def test_interrupted_encoding_continues(library, monkeypatch):
    monkeypatch.setattr(batches, "ENCODED", 2)
    encoder = WordEncoder()

    def fail(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.encode(encoder, fail)
    assert library.stats().vectors == 2
    assert library.encode(encoder) == 3
    assert len(encoder.read) == 5


def test_another_encoder_makes_all_vectors_again(encoded, opened):
    other = WordEncoder("other", dimensions=16)
    assert encoded.encode(other) == 5
    assert encoded.stats().encoder == other.identity
    assert (encoded.stats().vectors, len(other.read)) == (5, 5)
    assert ids(encoded.search("Fever of 39 C since Monday", 1, mode="dense")) == ["d"]
    assert encoded.verify().problems == []
    with pytest.raises(CaprError, match="made by other"):
        opened(encoder=WordEncoder()).search("fever", mode="dense")


def test_encoding_needs_an_encoder(library):
    with pytest.raises(CaprError, match="no encoder"):
        library.encode()


def test_the_encoder_of_a_folder_is_remembered(opened, tmp_path):
    folder = reference.encoder_folder(tmp_path / "model", pooling="mean")
    opened(encoder=folder).add(NOTES)
    library = opened()
    results = library.search("PLAN: Fever of 39 C since Monday.", 1)
    assert (results.mode, ids(results), results.notices) == ("hybrid", ["d"], ())
    assert library.add(Document("z", "PLAN: New.")).encoded == 1
    assert library.stats().encoder.folder == str(folder)


def test_a_moved_encoder_is_recognised(opened, tmp_path):
    folder = reference.encoder_folder(tmp_path / "model", pooling="mean")
    opened(encoder=folder).add(NOTES)
    moved = folder.rename(tmp_path / "moved")
    assert opened(encoder=moved).add(Document("z", "PLAN: New.")).encoded == 1
    assert opened().search("new").mode == "hybrid"
