"""Tests of encoders and rankers in folders, compared with values computed by hand."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from reference import DIMENSIONS, embeddings, encoder_folder, ranker_folder, tokenizer

from capr.documents import CaprError
from capr.runtime import manifest as manifests
from capr.runtime.encoder import EncoderManifest, OnnxEncoder
from capr.runtime.ranker import OnnxRanker

TEXTS = ["fever", "a longer text about fever, cough and rash", "", "no", "fever and rash", "Fever!", "x " * 300]


def by_hand(text, pooling, pieces=256):
    table = embeddings()
    ids = tokenizer().encode(text).ids
    ids = ids if len(ids) <= pieces else [*ids[: pieces - 1], ids[-1]]
    states = table[ids] + table[ids].sum(axis=0)
    pooled = states[0] if pooling == "cls" else states.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_vectors_equal_those_computed_by_hand(tmp_path, pooling):
    encoder = OnnxEncoder(encoder_folder(tmp_path / "model", pooling=pooling))
    vectors = encoder.passages(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.allclose(vector, by_hand(text, pooling), atol=1e-5)
        assert np.allclose(encoder.query(text), vector, atol=1e-5)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_default_pooling_is_the_first_piece(tmp_path):
    assert np.allclose(OnnxEncoder(encoder_folder(tmp_path)).query("fever"), by_hand("fever", "cls"), atol=1e-5)


def test_the_vectors_of_many_texts_have_the_order_of_the_texts(tiny_encoder):
    encoder = OnnxEncoder(tiny_encoder, threads=1)
    texts = [" ".join(["word"] * (i * 37 % 50 + 1)) + f" {i}" for i in range(150)]
    together = encoder.passages(texts)
    for i in (0, 1, 77, 149):
        assert np.allclose(together[i], encoder.passages([texts[i]])[0], atol=1e-5)
        assert np.allclose(together[i], by_hand(texts[i], "mean"), atol=1e-5)


def test_no_texts_have_no_vectors(tiny_encoder):
    assert OnnxEncoder(tiny_encoder).passages([]).shape == (0, DIMENSIONS)


def test_prefixes_are_put_before_queries_and_passages(tmp_path):
    encoder = OnnxEncoder(encoder_folder(tmp_path, pooling="mean", query="query: ", passage="passage: "))
    assert np.allclose(encoder.query("fever"), by_hand("query: fever", "mean"), atol=1e-5)
    assert np.allclose(encoder.passages(["fever"])[0], by_hand("passage: fever", "mean"), atol=1e-5)
    assert not np.allclose(encoder.query("fever"), encoder.passages(["fever"])[0], atol=1e-3)


def test_texts_are_truncated_to_the_pieces_of_the_manifest(tmp_path):
    encoder = OnnxEncoder(encoder_folder(tmp_path, pooling="mean", pieces=6))
    assert np.allclose(encoder.query("abcdefgh"), encoder.query("abcd"), atol=1e-6)
    assert np.allclose(encoder.query("abcdefgh"), by_hand("abcdefgh", "mean", 6), atol=1e-5)


def test_the_digest_of_an_encoder_depends_on_its_files_alone(tmp_path, tiny_encoder):
    original = OnnxEncoder(tiny_encoder).identity
    copy = OnnxEncoder(shutil.copytree(tiny_encoder, tmp_path / "copy")).identity
    assert (original.name, original.dimensions, original.folder) == ("tiny", DIMENSIONS, str(tiny_encoder.resolve()))
    assert (copy.digest, copy.folder) == (original.digest, str(tmp_path / "copy"))
    assert OnnxEncoder(encoder_folder(tmp_path / "other", seed=8, pooling="mean")).identity.digest != original.digest
    prefixed = encoder_folder(tmp_path / "prefixed", pooling="mean", query="q: ")
    assert OnnxEncoder(prefixed).identity.digest != original.digest


def test_a_ranker_gives_one_score_for_each_passage(tiny_ranker):
    passages = ["rash", "fever and cough since Monday", "", "no"]
    table = embeddings(1)[:, 0]
    expected = []
    for passage in passages:
        encoding = tokenizer().encode("fever", passage)
        expected.append(sum(table[i] * (1 + kind) for i, kind in zip(encoding.ids, encoding.type_ids, strict=True)))
    assert OnnxRanker(tiny_ranker).scores("fever", passages) == pytest.approx(expected, abs=1e-4)
    many = [f"{'word ' * (i * 7 % 20)}{i}" for i in range(40)]
    ranker = OnnxRanker(str(tiny_ranker), threads=1)
    assert ranker.scores("fever", many)[33] == pytest.approx(ranker.scores("fever", many[33:34])[0], abs=1e-3)


def test_no_passages_have_no_scores(tiny_ranker):
    assert OnnxRanker(tiny_ranker).scores("fever", []) == []


def error_of(folder, kind=OnnxEncoder):
    """Return the message with which loading fails."""
    with pytest.raises(CaprError) as caught:
        kind(folder)
    assert str(folder) in str(caught.value)
    assert "Fix: " in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_the_error_names_a_missing_file(tmp_path, name):
    folder = encoder_folder(tmp_path / "model")
    (folder / name).unlink()
    assert f"no {name}" in error_of(folder)


def test_the_error_names_a_missing_folder(tmp_path):
    error_of(tmp_path / "nowhere")
    error_of(tmp_path / "nowhere", OnnxRanker)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{half",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b"\xff\xfe",
        b'{"name": "tiny", "dimensions": 16, "colour": "red"}',
        b'{"name": "tiny", "dimensions": 16, "pooling": "max"}',
        b'{"name": "tiny", "dimensions": 16, "pieces": "many"}',
        b'{"name": "tiny", "dimensions": 16, "pieces": 0}',
        b'{"name": "tiny", "dimensions": 16, "pieces": -1}',
        b'{"name": "tiny", "dimensions": 16, "passage": null}',
        b'{"name": "tiny", "dimensions": "sixteen"}',
    ],
)
def test_a_broken_manifest_is_an_error(tmp_path, content):
    folder = encoder_folder(tmp_path / "model")
    (folder / "manifest.json").write_bytes(content)
    error_of(folder)


def test_a_model_of_another_kind_is_an_error(tiny_encoder, tiny_ranker):
    assert "ranker" in error_of(tiny_ranker)
    assert "encoder" in error_of(tiny_encoder, OnnxRanker)


def test_nested_vectors_are_cut_to_their_first_dimensions(tmp_path):
    whole = OnnxEncoder(encoder_folder(tmp_path / "whole")).query("heart")
    part = OnnxEncoder(encoder_folder(tmp_path / "part", dimensions=8)).query("heart")
    assert part == pytest.approx(whole[:8] / np.linalg.norm(whole[:8]), abs=1e-6)


@pytest.mark.parametrize("dimensions", [0, 17])
def test_wrong_dimensions_are_an_error(tmp_path, dimensions):
    message = error_of(encoder_folder(tmp_path / "model", dimensions=dimensions))
    assert (f"says {dimensions} " in message, f"have {DIMENSIONS}" in message) == (True, True)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"garbage", bytes(1000)])
def test_a_file_of_garbage_is_an_error(tmp_path, name, content):
    folder = encoder_folder(tmp_path / "model")
    (folder / name).write_bytes(content)
    error_of(folder)


def test_a_truncated_model_is_an_error(tmp_path):
    folder = encoder_folder(tmp_path / "model")
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[: len(whole) // 2])
    error_of(folder)


def test_an_encoder_with_the_manifest_of_a_ranker_is_an_error(tmp_path, tiny_encoder):
    folder = shutil.copytree(tiny_encoder, tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"kind": "ranker"}))
    error_of(folder, OnnxRanker)


def test_a_ranker_with_the_manifest_of_an_encoder_is_an_error(tmp_path):
    error_of(ranker_folder(tmp_path / "model", kind="encoder", dimensions=DIMENSIONS))


def test_a_manifest_may_have_the_old_names_of_keys():
    record = {"name": "late", "kind": "encoder", "piece_dimensions": 8, "padded": 6}
    assert manifests.parse(EncoderManifest, record, Path("manifest.json"), "").min_query_pieces == 6


@pytest.mark.parametrize(("model_type", "most"), [("bert", 20), ("roberta", 18), ("xlm-roberta", 18)])
def test_more_word_pieces_than_the_network_has_positions_are_reported_when_it_is_opened(tmp_path, model_type, most):
    config = {"model_type": model_type, "max_position_embeddings": 20}
    for number, make in enumerate((encoder_folder, ranker_folder)):
        folder = make(tmp_path / str(number))
        (folder / "config.json").write_text(json.dumps(config))
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**manifest, "pieces": most + 1}))
        opened = OnnxEncoder if make is encoder_folder else OnnxRanker
        with pytest.raises(CaprError) as caught:
            opened(folder)
        fact = f"{folder / 'manifest.json'} has pieces {most + 1}, and its network reads at most {most} word pieces"
        assert str(caught.value) == f"{fact} (config.json). Fix: write {most} or fewer as pieces."
        (folder / "manifest.json").write_text(json.dumps({**manifest, "pieces": most}))
        opened(folder)


@pytest.mark.parametrize(
    "config", ["{", "[]", '{"model_type": "bert"}', '{"model_type": "t5", "max_position_embeddings": 2}']
)
def test_a_configuration_without_a_limit_is_ignored(tmp_path, config):
    folder = encoder_folder(tmp_path)
    (folder / "config.json").write_text(config)
    OnnxEncoder(folder)


def test_a_failure_of_the_network_is_an_error_with_a_fix(tmp_path, monkeypatch):
    encoder = OnnxEncoder(encoder_folder(tmp_path))

    class Failing:
        def run(self, *arguments):
            raise RuntimeError("indices element out of data bounds, idx=12\nmore")

    monkeypatch.setattr(encoder._model._network, "_session", Failing())
    with pytest.raises(CaprError, match=r"failed on a text of 256 .* \(indices .* idx=12\)\. Fix: .* lower pieces in"):
        encoder.passages(["x " * 300])


def test_the_nearest_key_of_a_misspelt_one_is_named(tmp_path):
    folder = encoder_folder(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "poolng": "mean", "zzz": 1}))
    with pytest.raises(
        CaprError, match=r"it does not know 'poolng' \(did you mean 'pooling'\?\); it does not know 'zzz'"
    ):
        OnnxEncoder(folder)
