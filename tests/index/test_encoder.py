"""Encoders and rankers of folders, against the same computed by hand."""

import json
import shutil

import numpy as np
import pytest
from reference import DIMENSIONS, embeddings, encoder_folder, ranker_folder, tokenizer

from capr.documents import CaprError
from capr.index import OnnxEncoder
from capr.search import OnnxRanker

TEXTS = ["fever", "a longer text about fever, cough and rash", "", "no", "fever and rash", "Fever!", "x " * 300]


def by_hand(text, pooling, pieces=256):
    table = embeddings()
    ids = tokenizer().encode(text).ids
    ids = ids if len(ids) <= pieces else [*ids[: pieces - 1], ids[-1]]
    states = table[ids] + table[ids].sum(axis=0)
    pooled = states[0] if pooling == "cls" else states.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_vectors_are_those_computed_by_hand(tmp_path, pooling):
    encoder = OnnxEncoder(encoder_folder(tmp_path / "model", pooling=pooling))
    vectors = encoder.passages(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.allclose(vector, by_hand(text, pooling), atol=1e-5)
        assert np.allclose(encoder.query(text), vector, atol=1e-5)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_pooling_is_by_the_first_piece_if_not_said(tmp_path):
    assert np.allclose(OnnxEncoder(encoder_folder(tmp_path)).query("fever"), by_hand("fever", "cls"), atol=1e-5)


def test_many_texts_come_back_in_their_order(tiny_encoder):
    encoder = OnnxEncoder(tiny_encoder, threads=1)
    texts = [" ".join(["word"] * (i * 37 % 50 + 1)) + f" {i}" for i in range(150)]
    together = encoder.passages(texts)
    for place in (0, 1, 77, 149):
        assert np.allclose(together[place], encoder.passages([texts[place]])[0], atol=1e-5)
        assert np.allclose(together[place], by_hand(texts[place], "mean"), atol=1e-5)


def test_no_texts_are_no_vectors(tiny_encoder):
    assert OnnxEncoder(tiny_encoder).passages([]).shape == (0, DIMENSIONS)


def test_prefixes_are_put_before_queries_and_passages(tmp_path):
    encoder = OnnxEncoder(encoder_folder(tmp_path, pooling="mean", query="query: ", passage="passage: "))
    assert np.allclose(encoder.query("fever"), by_hand("query: fever", "mean"), atol=1e-5)
    assert np.allclose(encoder.passages(["fever"])[0], by_hand("passage: fever", "mean"), atol=1e-5)
    assert not np.allclose(encoder.query("fever"), encoder.passages(["fever"])[0], atol=1e-3)


def test_texts_are_cut_after_so_many_pieces(tmp_path):
    encoder = OnnxEncoder(encoder_folder(tmp_path, pooling="mean", pieces=6))
    assert np.allclose(encoder.query("abcdefgh"), encoder.query("abcd"), atol=1e-6)
    assert np.allclose(encoder.query("abcdefgh"), by_hand("abcdefgh", "mean", 6), atol=1e-5)


def test_an_encoder_is_known_by_its_files_wherever_they_lie(tmp_path, tiny_encoder):
    here = OnnxEncoder(tiny_encoder).identity
    copy = OnnxEncoder(shutil.copytree(tiny_encoder, tmp_path / "copy")).identity
    assert (here.name, here.dimensions, here.folder) == ("tiny", DIMENSIONS, str(tiny_encoder.resolve()))
    assert (copy.digest, copy.folder) == (here.digest, str(tmp_path / "copy"))
    assert OnnxEncoder(encoder_folder(tmp_path / "other", seed=8, pooling="mean")).identity.digest != here.digest
    prefixed = encoder_folder(tmp_path / "prefixed", pooling="mean", query="q: ")
    assert OnnxEncoder(prefixed).identity.digest != here.digest


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


def test_no_passages_are_no_scores(tiny_ranker):
    assert OnnxRanker(tiny_ranker).scores("fever", []) == []


def refused(folder, kind=OnnxEncoder):
    with pytest.raises(CaprError) as caught:
        kind(folder)
    assert str(folder) in str(caught.value)
    assert "Fix: " in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_missing_file_is_named(tmp_path, name):
    folder = encoder_folder(tmp_path / "model")
    (folder / name).unlink()
    assert f"no {name}" in refused(folder)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    refused(tmp_path / "nowhere")
    refused(tmp_path / "nowhere", OnnxRanker)


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
def test_a_broken_manifest_is_told(tmp_path, content):
    folder = encoder_folder(tmp_path / "model")
    (folder / "manifest.json").write_bytes(content)
    refused(folder)


def test_a_model_of_the_wrong_kind_is_told(tiny_encoder, tiny_ranker):
    assert "ranker" in refused(tiny_ranker)
    assert "encoder" in refused(tiny_encoder, OnnxRanker)


def test_of_nested_vectors_the_first_dimensions_are_used(tmp_path):
    whole = OnnxEncoder(encoder_folder(tmp_path / "whole")).query("heart")
    part = OnnxEncoder(encoder_folder(tmp_path / "part", dimensions=8)).query("heart")
    assert part == pytest.approx(whole[:8] / np.linalg.norm(whole[:8]), abs=1e-6)


@pytest.mark.parametrize("dimensions", [0, 17])
def test_wrong_dimensions_are_told(tmp_path, dimensions):
    message = refused(encoder_folder(tmp_path / "model", dimensions=dimensions))
    assert (f"says {dimensions} " in message, f"have {DIMENSIONS}" in message) == (True, True)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"garbage", bytes(1000)])
def test_garbage_is_told(tmp_path, name, content):
    folder = encoder_folder(tmp_path / "model")
    (folder / name).write_bytes(content)
    refused(folder)


def test_a_model_that_was_cut_off_is_told(tmp_path):
    folder = encoder_folder(tmp_path / "model")
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[: len(whole) // 2])
    refused(folder)


def test_a_ranker_that_is_an_encoder_inside_is_told(tmp_path, tiny_encoder):
    folder = shutil.copytree(tiny_encoder, tmp_path / "model")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"kind": "ranker"}))
    refused(folder, OnnxRanker)


def test_an_encoder_that_is_a_ranker_inside_is_told(tmp_path):
    refused(ranker_folder(tmp_path / "model", kind="encoder", dimensions=DIMENSIONS))
