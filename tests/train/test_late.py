"""Training of encoders with late interaction, from pairs to a folder."""

import json
import shutil
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch

from capr.documents import CaprError
from capr.models.cross import Cross
from capr.models.family import Schedule
from capr.models.late import Late
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.late import maxsim
from capr.train.ranking import train

SCHEDULE = Schedule(epochs=12, batch=8, learning_rate=1e-3, device="cpu")
READING = {"negatives": 1, "pieces": 32, "views": (("text", 1.0),), "short": 0.0}


def late(base, **settings):
    return Late(base=str(base), piece_dimensions=16, min_query_pieces=12, validation=0.2, **READING, **settings)


@pytest.fixture(scope="module")
def folder(world, bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("late")
    scores = train(world, late(bert), SCHEDULE, folder)
    assert scores["R@1"] > 0.5
    assert scores["first as torch, 32 bits"] == 1
    return folder


def test_the_network_returns_a_vector_of_the_text_and_vectors_of_its_pieces(folder):
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    inputs = {entry.name: np.array([[2, 7, 8, 3]], np.int64) for entry in session.get_inputs()}
    inputs["attention_mask"][:] = 1
    inputs["token_type_ids"][:] = 0
    whole, pieces = session.run(None, inputs)
    assert (whole.shape, pieces.shape) == ((1, 32), (1, 4, 16))
    assert np.linalg.norm(pieces, axis=-1) == pytest.approx(np.ones((1, 4)), abs=1e-5)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["kind"], manifest["piece_dimensions"], manifest["min_query_pieces"]) == ("encoder", 16, 12)


def test_a_library_encodes_with_it(folder):
    vectors = OnnxEncoder(folder).passages(["gout tablets", "asthma wheeze"])
    assert vectors.shape == (2, 32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(2), abs=1e-5)


def test_a_passage_has_codes_of_its_word_pieces_and_a_query_has_masks(folder):
    encoder = OnnxEncoder(folder)
    texts = ["gout tablets", "asthma wheeze and cough", "rabies"]
    vectors, codes = encoder.passages_with_pieces(texts)
    assert np.array_equal(vectors, encoder.passages(texts))
    assert [len(code) // 8 for code in codes] == [4, 6, 3]  # 16 dimensions in 8 bytes; [CLS] and [SEP]
    for text, vector, code in zip(texts, vectors, codes, strict=True):
        (own_vector,), (own_code,) = encoder.passages_with_pieces([text])
        assert np.array_equal(own_vector, vector)
        assert own_code == code
    vector, pieces = encoder.query_with_pieces("gout")
    assert pieces.shape == (12, 16)
    assert vector == pytest.approx(encoder.query("gout"), abs=1e-4)
    assert int(np.argmax(maxsim(pieces, codes))) == 0


def test_a_manifest_that_promises_other_pieces_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "late")
    path = tmp_path / "late" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"piece_dimensions": 32}))
    with pytest.raises(CaprError, match=r"says 32 dimensions of word pieces, and its network 16\. Fix"):
        OnnxEncoder(tmp_path / "late")


def test_training_continues_from_a_trained_model(folder, world):
    objective = late(folder).objective(world, "cpu")
    saved = torch.load(folder / "torch" / "late.pt", weights_only=True)
    assert torch.equal(objective.model.projection.weight, saved["weight"])


def test_a_cross_encoder_teaches_both_scores(world, bert, tmp_path):
    cross = Cross(base=str(bert), **READING)
    train(world, replace(cross, validation=0.2), replace(SCHEDULE, epochs=1), tmp_path / "cross", onnx=False)
    scores = train(
        world, late(bert, teacher=str(tmp_path / "cross")), replace(SCHEDULE, epochs=1), tmp_path / "late", onnx=False
    )
    assert 0 <= scores["R@1"] <= 1


def test_a_base_without_a_mask_is_refused(world, roberta):
    objective = late(roberta).objective(world, "cpu")
    with pytest.raises(CaprError, match=r"no \[MASK\] or <mask>. Fix: use a base that was pretrained with masks"):
        objective.read_query(["gout"])
