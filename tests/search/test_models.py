"""The built-in models: when a library uses them, how it remembers them, and how to do without them."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.documents import CaprError, Document
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.shipped import SHIPPED, shipped
from capr.search import Library
from capr.search.models import load_encoder

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
    """Ranks passages by length."""

    def scores(self, query, passages):
        return [float(len(passage)) for passage in passages]


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Return a function that replaces the built-in models; a call with another name makes another release."""

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
    for current in (library, opened()):
        results = current.search(QUERY)
        assert (results.mode, results.notices) == ("hybrid", ())
    assert opened().add(LATER).encoded == 1


def test_the_vectors_of_the_shipped_encoder_are_those_of_its_folder(weights, opened):
    folder = weights("encoder")
    opened().add(NOTES)
    same = opened(encoder=folder / "encoder")
    assert same.add(LATER).encoded == 1  # the digest is the same, so capr does not refuse the folder
    assert [hit.score for hit in same.search(QUERY, mode="dense")] == [
        hit.score for hit in opened().search(QUERY, mode="dense")
    ]


def test_only_encoding_gives_vectors_to_an_old_library(weights, opened, path):
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
    for current in (library, opened()):
        assert (current.search(QUERY).mode, current.search(QUERY).notices) == ("hybrid", ())


def test_an_emptied_library_takes_the_encoder_that_ships(weights, opened):
    opened().add(NOTES)
    weights("encoder")
    library = opened()
    assert library.remove([note.id for note in NOTES]) == 3
    assert library.add(NOTES).encoded == 4


def test_none_means_no_encoder(weights, opened):
    weights("encoder")
    library = opened(encoder="none")
    assert library.add(NOTES).encoded == 0
    assert library.stats().encoder is None
    assert library.search(QUERY).mode == "lexical"
    with pytest.raises(CaprError, match="dense search is not possible"):
        library.search(QUERY, mode="dense")
    with pytest.raises(CaprError, match=r"no encoder to encode with\. Fix: "):
        library.encode()


def test_none_leaves_existing_vectors_alone(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    library = opened(encoder="none")
    assert library.add(LATER).encoded == 0
    results = library.search(QUERY)
    assert results.mode == "lexical"
    assert library.stats().vectors == 4
    assert opened().encode() == 1
    assert opened().search(QUERY).mode == "hybrid"


def test_with_the_encoder_none_no_notice_says_that_vectors_are_missing(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    assert not any("has no vectors" in notice for notice in opened(encoder="none").search(QUERY).notices)


def test_without_weights_hybrid_search_compares_only_words(opened, path):
    library = opened()
    assert library.add(NOTES).encoded == 0
    results = library.search(QUERY)
    assert (results.mode, stages(results)) == ("lexical", {"lexical"})
    assert "this search matched words only" in results.notices[0]
    with pytest.raises(CaprError, match=f"capr encode {re.escape(str(path))}"):
        library.search(QUERY, mode="dense")


def test_without_weights_encoding_asks_for_an_encoder(opened):
    library = opened()
    library.add(NOTES)
    with pytest.raises(CaprError, match=r"Fix: .*--encoder FOLDER"):
        library.encode()


def test_a_new_release_of_the_encoder_is_refused_with_the_command_to_run(weights, opened, path):
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
    for current in (library, opened()):
        assert (current.search(QUERY).mode, current.search(QUERY).notices) == ("hybrid", ())
    assert library.add(LATER).encoded == 1


def test_a_library_remembers_the_folder_of_the_user(weights, opened, tmp_path):
    own_folder = reference.encoder_folder(tmp_path / "own", seed=9, pooling="mean")
    weights("encoder")
    opened(encoder=own_folder).add(NOTES)
    library = opened()
    assert library.stats().encoder.folder == str(own_folder)
    assert (library.search(QUERY).mode, library.search(QUERY).notices) == ("hybrid", ())
    assert library.encode() == 0


def test_weights_may_move_to_another_folder(weights, opened, tmp_path, monkeypatch):
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


def test_an_open_library_follows_a_change_of_its_encoder(weights, opened, tmp_path):
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


def test_a_library_with_only_a_discourse_model_gets_an_encoder_only_by_name(weights, opened, path):
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


def test_with_the_encoder_none_only_sentences_get_vectors(weights, opened):
    weights("encoder")
    model = reference.WordDiscourse()
    opened(discourse=model).add(NOTES)
    opened(encoder="none", discourse="none").add(LATER)
    library = opened(discourse=model)
    assert library.encode("none") == 1
    assert (library.stats().vectors, library.stats().passages_with_sentences) == (4, 5)


def test_encoding_with_the_discourse_model_none_is_refused(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    with pytest.raises(
        CaprError, match=r'nothing to encode, since the discourse model is "none"\. Fix: omit --discourse none, or'
    ):
        opened().encode(discourse="none")


@pytest.mark.parametrize("option", ["encoder", "discourse"])
def test_a_folder_without_a_model_creates_no_library(opened, path, tmp_path, option):
    (tmp_path / "wrong").mkdir()
    for folder in ("wrong", "nowhere"):
        with pytest.raises(CaprError, match="Fix: "):
            opened(**{option: tmp_path / folder}).add(NOTES)
        assert not path.exists()
    with pytest.raises(CaprError, match="Fix: "):
        opened().add(NOTES, discourse=tmp_path / "wrong")
    assert not path.exists()


# --- a model that changes during a search ---


@pytest.fixture
def changing(opened, tmp_path, monkeypatch):
    """Return a library whose encoder another process changes after a search has chosen its own."""
    first = reference.encoder_folder(tmp_path / "first", seed=9, pooling="mean")
    other = reference.encoder_folder(tmp_path / "other", seed=8, pooling="mean")
    opened(encoder=first).add(NOTES)
    library = opened()
    encoder_for_search = library.models.encoder_for_search

    def change_encoder(*arguments):
        encoder = encoder_for_search(*arguments)
        opened().encode(other)
        return encoder

    monkeypatch.setattr(library.models, "encoder_for_search", change_encoder)
    return library


def test_dense_search_fails_if_another_process_changes_the_encoder(changing):
    with pytest.raises(CaprError, match=r"now come from another model, tiny .*Fix: search again"):
        changing.search(QUERY, mode="dense")
    assert changing.search(QUERY, mode="dense").mode == "dense"


def test_hybrid_search_compares_only_words_if_another_process_changes_the_encoder(changing):
    results = changing.search(QUERY)
    assert (results.mode, stages(results)) == ("lexical", {"lexical"})
    assert (
        "this search matched words only, not meaning: the vectors of the library now come from" in results.notices[-1]
    )
    assert (changing.search(QUERY).mode, changing.search(QUERY).notices) == ("hybrid", ())


# --- the ranker ---


@pytest.fixture
def ranked(weights, opened):
    """Add notes to a library, with a built-in encoder and ranker; return the function that opens it."""
    weights("encoder", "ranker")
    opened().add(NOTES)
    return opened


def test_the_shipped_ranker_re_ranks_only_hybrid_search(ranked):
    library = ranked()
    results_by_mode = {mode: library.search(QUERY, mode=mode) for mode in ("hybrid", "lexical", "dense")}
    assert {mode: "rerank" in stages(results) for mode, results in results_by_mode.items()} == {
        "hybrid": True,
        "lexical": False,
        "dense": False,
    }
    scores = [hit.score for hit in results_by_mode["hybrid"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_the_option_rerank_overrides_the_default(ranked, mode):
    library = ranked()
    assert "rerank" in stages(library.search(QUERY, mode=mode, rerank=True))
    assert "rerank" not in stages(library.search(QUERY, mode=mode, rerank=False))


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_the_ranker_of_the_user_re_ranks_every_mode(ranked, tmp_path, mode):
    library = ranked(ranker=Longest())
    results = library.search(QUERY, mode=mode)
    assert "rerank" in stages(results)
    assert ids(results)[0] == "a"  # its first passage is the longest
    assert "rerank" not in stages(library.search(QUERY, mode=mode, rerank=False))
    folder = ranked(ranker=tmp_path / "weights" / "ranker")
    assert "rerank" in stages(folder.search(QUERY, mode=mode))


def test_none_means_no_ranker(ranked):
    library = ranked(ranker="none")
    assert "rerank" not in stages(library.search(QUERY))
    with pytest.raises(CaprError, match=r"no ranker is available\. Fix: "):
        library.search(QUERY, rerank=True)


def test_without_a_ranker_nothing_is_re_ranked(weights, opened):
    weights("encoder")
    opened().add(NOTES)
    assert stages(opened().search(QUERY)) == {"lexical", "dense", "fusion"}
    with pytest.raises(CaprError, match="no ranker"):
        opened().search(QUERY, rerank=True)


def test_another_encoder_does_not_change_the_choice_of_the_ranker(ranked, tmp_path):
    own_folder = reference.encoder_folder(tmp_path / "own", seed=9, pooling="mean")
    without, shipping = ranked(ranker="none"), ranked()
    without.encode(own_folder)
    assert "rerank" not in stages(without.search(QUERY))
    shipping.encode(own_folder)
    assert "rerank" in stages(shipping.search(QUERY))
    assert "rerank" not in stages(shipping.search(QUERY, mode="lexical"))


# --- the command line ---


def run(*arguments):
    result = CliRunner().invoke(typer_app, [*map(str, arguments)])
    if isinstance(result.exception, CaprError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def mode_and_stages(*options):
    """Return the mode and the stages of a search on the command line."""
    results = json.loads(run("search", "library", QUERY, "--json", *options))
    return results["mode"], {name for hit in results["hits"] for name in hit["stages"]}


def test_commands_work_without_models(weights, tmp_path, monkeypatch):
    weights("encoder", "ranker")
    monkeypatch.chdir(tmp_path)
    Path("notes.jsonl").write_text("".join(json.dumps({"id": n.id, "text": n.text}) + "\n" for n in NOTES))
    run("index", "library", "notes.jsonl", "--encoder", "none")
    assert mode_and_stages("--ranker", "none") == ("lexical", {"lexical"})
    with pytest.raises(CaprError, match=r"no encoder to encode with\. Fix: "):
        run("encode", "library", "--encoder", "none")
    assert "4 passages encoded by tiny" in run("encode", "library")
    assert mode_and_stages() == ("hybrid", {"lexical", "dense", "fusion", "rerank"})
    assert mode_and_stages("--ranker", "none") == ("hybrid", {"lexical", "dense", "fusion"})
    assert mode_and_stages("--encoder", "none", "--ranker", "none") == ("lexical", {"lexical"})
    run("index", "other", "notes.jsonl")
    with Library("other") as other:
        assert other.stats().encoder.folder == SHIPPED
