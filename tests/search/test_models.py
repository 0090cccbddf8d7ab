"""The models that ship: when a library takes them, how it remembers them, and how to do without."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.documents import CaprError, Document
from capr.index import OnnxEncoder
from capr.search import Library
from capr.search.models import SHIPPED, load_encoder, shipped

_spec = spec_from_file_location("reference", Path(__file__).parents[1] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)

NOTES = [
    Document("a", "PLAN: Start aspirin after the heart attack.\n\nDIET: Tea and bread.", "Note"),
    Document("b", "PLAN: No fever today. Stop aspirin.", "Note"),
    Document("c", "FAMILY HISTORY: Father had fever.", "Letter"),
]
LATER = Document("z", "PLAN: Zebras.")
QUERY = "fever aspirin"


class Longest:
    """Ranks by length."""

    def scores(self, query, passages):
        return [float(len(passage)) for passage in passages]


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Puts models in the place of those that ship; each call under another name is another release."""

    def ship(*kinds, name="weights", seed=7):
        folder = tmp_path / name
        if "encoder" in kinds:
            reference.encoder_folder(folder / "encoder", seed=seed, pooling="mean")
        if "ranker" in kinds:
            reference.ranker_folder(folder / "ranker")
        monkeypatch.setenv("CAPR_WEIGHTS", str(folder))
        return folder

    return ship


def stages(results):
    return {name for hit in results for name in hit.stages}


def ids(results):
    return [hit.document for hit in results]


# --- the encoder ---


def test_a_new_library_takes_the_encoder_that_ships_and_remembers_no_folder(weights, opened):
    folder = weights("encoder")
    library = opened()
    assert library.add(NOTES).encoded == 4
    stats = opened().stats()
    assert (stats.encoder.folder, stats.encoder.digest) == ("capr", OnnxEncoder(folder / "encoder").identity.digest)
    assert stats.vectors == stats.passages == 4
    for one in (library, opened()):
        results = one.search(QUERY)
        assert (results.mode, results.notices) == ("hybrid", ())
    assert opened().add(LATER).encoded == 1


def test_its_vectors_are_those_of_the_folder(weights, opened):
    folder = weights("encoder")
    opened().add(NOTES)
    same = opened(encoder=folder / "encoder")
    assert same.add(LATER).encoded == 1  # by the same digest, so nothing is refused
    assert [hit.score for hit in same.search(QUERY, mode="dense")] == [
        hit.score for hit in opened().search(QUERY, mode="dense")
    ]


def test_an_old_library_without_vectors_gets_them_by_encoding_only(weights, opened, path):
    opened().add(NOTES)
    weights("encoder")
    library = opened()
    assert library.add(LATER).encoded == 0
    results = library.search(QUERY)
    assert results.mode == "lexical"
    assert f"no vectors. Fix: capr encode {path}." in results.notices[0]
    assert library.stats().encoder is None
    assert library.encode() == 5
    assert library.stats().encoder.folder == SHIPPED
    for one in (library, opened()):
        assert (one.search(QUERY).mode, one.search(QUERY).notices) == ("hybrid", ())


def test_a_library_that_was_emptied_is_as_good_as_new(weights, opened):
    opened().add(NOTES)
    weights("encoder")
    library = opened()
    assert library.remove([note.id for note in NOTES]) == 3
    assert library.add(NOTES).encoded == 4


def test_none_is_no_encoder(weights, opened):
    weights("encoder")
    library = opened(encoder="none")
    assert library.add(NOTES).encoded == 0
    assert library.stats().encoder is None
    assert library.search(QUERY).mode == "lexical"
    with pytest.raises(CaprError, match="dense search is not possible"):
        library.search(QUERY, mode="dense")
    with pytest.raises(CaprError, match=r"no encoder to encode with\. Fix: "):
        library.encode()


def test_none_leaves_the_vectors_that_are_there(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    library = opened(encoder="none")
    assert library.add(LATER).encoded == 0
    results = library.search(QUERY)
    assert results.mode == "lexical"
    assert library.stats().vectors == 4
    assert opened().encode() == 1
    assert opened().search(QUERY).mode == "hybrid"


def test_vectors_that_are_not_wanted_are_not_said_to_be_missing(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    assert not any("has no vectors" in notice for notice in opened(encoder="none").search(QUERY).notices)


def test_without_weights_hybrid_search_goes_by_words(opened, path):
    library = opened()
    assert library.add(NOTES).encoded == 0
    results = library.search(QUERY)
    assert (results.mode, stages(results)) == ("lexical", {"lexical"})
    assert "only words were compared" in results.notices[0]
    with pytest.raises(CaprError, match=f"capr encode {re.escape(str(path))}"):
        library.search(QUERY, mode="dense")


def test_without_weights_encoding_asks_for_an_encoder(opened):
    library = opened()
    library.add(NOTES)
    with pytest.raises(CaprError, match=r"Fix: .*--encoder FOLDER"):
        library.encode()


def test_a_new_release_of_the_encoder_is_told_with_the_command_that_mends_it(weights, opened, path):
    weights("encoder")
    opened().add(NOTES)
    weights("encoder", name="next", seed=8)
    library = opened()
    fix = rf"the vectors of .* were made by tiny \(\w{{8}}\), and .* Fix: capr encode {re.escape(str(path))}, which"
    results = library.search(QUERY)
    assert (results.mode, stages(results)) == ("lexical", {"lexical"})
    assert re.search(fix, results.notices[0])
    with pytest.raises(CaprError, match=fix):
        library.search(QUERY, mode="dense")
    with pytest.raises(CaprError, match=fix):
        library.add(LATER)
    assert library.encode() == 4
    assert library.encode() == 0
    for one in (library, opened()):
        assert (one.search(QUERY).mode, one.search(QUERY).notices) == ("hybrid", ())
    assert library.add(LATER).encoded == 1


def test_a_folder_that_was_given_is_remembered_though_an_encoder_ships(weights, opened, tmp_path):
    own = reference.encoder_folder(tmp_path / "own", seed=9, pooling="mean")
    weights("encoder")
    opened(encoder=own).add(NOTES)
    library = opened()
    assert library.stats().encoder.folder == str(own)
    assert (library.search(QUERY).mode, library.search(QUERY).notices) == ("hybrid", ())
    assert library.encode() == 0


def test_weights_may_lie_elsewhere(weights, opened, tmp_path, monkeypatch):
    folder = weights("encoder")
    opened().add(NOTES)
    moved = folder.rename(tmp_path / "moved")
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path / "nowhere"))
    results = opened().search(QUERY)
    assert results.mode == "lexical"
    assert "Fix: " in results.notices[0]
    monkeypatch.setenv("CAPR_WEIGHTS", str(moved))
    library = opened()
    assert (library.search(QUERY).mode, library.search(QUERY).notices) == ("hybrid", ())
    assert library.add(LATER).encoded == 1
    assert library.encode() == 0


def test_a_library_that_is_open_follows_another_encoder(weights, opened, tmp_path):
    weights("encoder")
    first = opened()
    first.add(NOTES)
    opened().encode(reference.encoder_folder(tmp_path / "own", seed=9, pooling="mean"))
    assert (first.search(QUERY).mode, first.search(QUERY).notices) == ("hybrid", ())


def test_the_encoder_that_ships_is_loaded_once(weights):
    folder = weights("encoder")
    assert shipped("encoder") == folder / "encoder"
    assert load_encoder(SHIPPED) is load_encoder(SHIPPED)
    assert load_encoder(folder / "encoder").identity.folder == str(folder / "encoder")
    assert load_encoder("none") is load_encoder(None) is None


def test_a_library_with_a_discourse_model_alone_stays_so_unless_an_encoder_is_named(weights, opened, path):
    weights("encoder")
    model = reference.WordDiscourse()
    opened(encoder="none", discourse=model).add(NOTES)
    opened(encoder="none", discourse="none").add(LATER)
    library = opened(discourse=model)
    assert f"Fix: capr encode {path} --encoder capr." in library.search(QUERY).notices[-1]
    assert library.encode() == 1
    assert (library.stats().encoder, library.stats().passages_with_sentences) == (None, 5)
    opened(encoder="none", discourse="none").add(Document("y", "PLAN: Yaks."))
    assert library.encode("none") == 1
    assert library.stats().encoder is None
    assert opened(discourse="none").encode("capr") == 6
    assert opened().stats().encoder.folder == SHIPPED
    assert opened().search(QUERY).mode == "hybrid"


def test_an_encoder_of_none_gives_vectors_to_sentences_only(weights, opened):
    weights("encoder")
    model = reference.WordDiscourse()
    opened(discourse=model).add(NOTES)
    opened(encoder="none", discourse="none").add(LATER)
    library = opened(discourse=model)
    assert library.encode("none") == 1
    assert (library.stats().vectors, library.stats().passages_with_sentences) == (4, 5)


def test_a_discourse_model_of_none_is_refused_by_its_name(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    with pytest.raises(
        CaprError, match=r'nothing to encode, since the discourse model is "none"\. Fix: leave that out'
    ):
        opened().encode(discourse="none")


@pytest.mark.parametrize("option", ["encoder", "discourse"])
def test_a_folder_that_is_no_model_leaves_no_library_behind(opened, path, tmp_path, option):
    (tmp_path / "wrong").mkdir()
    for folder in ("wrong", "nowhere"):
        with pytest.raises(CaprError, match="Fix: "):
            opened(**{option: tmp_path / folder}).add(NOTES)
        assert not path.exists()
    with pytest.raises(CaprError, match="Fix: "):
        opened().add(NOTES, model=tmp_path / "wrong")
    assert not path.exists()


# --- a model that changes during a search ---


@pytest.fixture
def exchanged(opened, tmp_path, monkeypatch):
    """A library whose encoder another process exchanges once a search has chosen its own."""
    first, other = (reference.encoder_folder(tmp_path / name, seed=seed, pooling="mean") for name, seed in
                    (("first", 9), ("other", 8)))  # fmt: skip
    opened(encoder=first).add(NOTES)
    library = opened()
    chosen = library.models.to_search

    def to_search(*given):
        found = chosen(*given)
        opened().encode(other)
        return found

    monkeypatch.setattr(library.models, "to_search", to_search)
    return library


def test_an_encoder_that_was_exchanged_meanwhile_is_told_of(exchanged):
    with pytest.raises(CaprError, match=r"now made by another model, tiny .*Fix: search again"):
        exchanged.search(QUERY, mode="dense")
    assert exchanged.search(QUERY, mode="dense").mode == "dense"


def test_hybrid_search_goes_on_with_words_if_the_encoder_was_exchanged_meanwhile(exchanged):
    results = exchanged.search(QUERY)
    assert (results.mode, stages(results)) == ("lexical", {"lexical"})
    assert "only words were compared, not meanings: the vectors of the library are now made by" in results.notices[-1]
    assert (exchanged.search(QUERY).mode, exchanged.search(QUERY).notices) == ("hybrid", ())


# --- the ranker ---


@pytest.fixture
def ranked(weights, opened):
    """Notes in a library, where both models ship."""
    weights("encoder", "ranker")
    opened().add(NOTES)
    return opened


def test_the_ranker_that_ships_ranks_hybrid_search_only(ranked):
    library = ranked()
    found = {mode: library.search(QUERY, mode=mode) for mode in ("hybrid", "lexical", "dense")}
    assert {mode: "rerank" in stages(results) for mode, results in found.items()} == {
        "hybrid": True, "lexical": False, "dense": False
    }  # fmt: skip
    scores = [hit.score for hit in found["hybrid"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_whoever_says_so_has_or_has_not_a_ranking(ranked, mode):
    library = ranked()
    assert "rerank" in stages(library.search(QUERY, mode=mode, rerank=True))
    assert "rerank" not in stages(library.search(QUERY, mode=mode, rerank=False))


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_a_ranker_that_was_given_ranks_always(ranked, tmp_path, mode):
    library = ranked(ranker=Longest())
    results = library.search(QUERY, mode=mode)
    assert "rerank" in stages(results)
    assert ids(results)[0] == "a"  # its first passage is the longest
    assert "rerank" not in stages(library.search(QUERY, mode=mode, rerank=False))
    folder = ranked(ranker=tmp_path / "weights" / "ranker")
    assert "rerank" in stages(folder.search(QUERY, mode=mode))


def test_none_is_no_ranker(ranked):
    library = ranked(ranker="none")
    assert "rerank" not in stages(library.search(QUERY))
    with pytest.raises(CaprError, match=r"no ranker to re-rank with\. Fix: "):
        library.search(QUERY, rerank=True)


def test_where_no_ranker_ships_nothing_is_ranked_again(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    assert stages(opened().search(QUERY)) == {"lexical", "dense", "fusion"}
    with pytest.raises(CaprError, match="no ranker"):
        opened().search(QUERY, rerank=True)


def test_another_encoder_leaves_the_ranker_as_it_was_wanted(ranked, tmp_path):
    own = reference.encoder_folder(tmp_path / "own", seed=9, pooling="mean")
    without, shipping = ranked(ranker="none"), ranked()
    without.encode(own)
    assert "rerank" not in stages(without.search(QUERY))
    shipping.encode(own)
    assert "rerank" in stages(shipping.search(QUERY))
    assert "rerank" not in stages(shipping.search(QUERY, mode="lexical"))


# --- the command line ---


def run(*arguments):
    result = CliRunner().invoke(typer_app, [*map(str, arguments)])
    if isinstance(result.exception, CaprError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def found(*options):
    """The mode of a search and its stages."""
    results = json.loads(run("search", "library", QUERY, "--json", *options))
    return results["mode"], {name for hit in results["hits"] for name in hit["stages"]}


def test_commands_do_without_models_if_told(weights, tmp_path, monkeypatch):
    weights("encoder", "ranker")
    monkeypatch.chdir(tmp_path)
    Path("notes.jsonl").write_text("".join(json.dumps({"id": n.id, "text": n.text}) + "\n" for n in NOTES))
    run("index", "library", "notes.jsonl", "--encoder", "none")
    assert found("--ranker", "none") == ("lexical", {"lexical"})
    with pytest.raises(CaprError, match=r"no encoder to encode with\. Fix: "):
        run("encode", "library", "--encoder", "none")
    assert "4 passages encoded by tiny" in run("encode", "library")
    assert found() == ("hybrid", {"lexical", "dense", "fusion", "rerank"})
    assert found("--ranker", "none") == ("hybrid", {"lexical", "dense", "fusion"})
    assert found("--encoder", "none", "--ranker", "none") == ("lexical", {"lexical"})
    run("index", "other", "notes.jsonl")
    with Library("other") as other:
        assert other.stats().encoder.folder == SHIPPED
