"""Tests of a discourse model in a folder: its vectors, and broken folders. (tests/train/cdv trains one.)"""

import json
import math
import shutil

import numpy as np
import pytest
import torch

from capr.documents import CaprError, Document
from capr.models.cdv import Cdv, CdvForExport, Sizes
from capr.models.export import export_whole
from capr.runtime import arrays
from capr.runtime.discourse import OnnxDiscourse
from capr.runtime.kinds import kind_of
from capr.runtime.subwords import Subwords
from capr.segment import sentences, structure
from capr.train.cdv_spaces import Description, train_codes

TEXT = "Gout hurts. It swells.\n- Rest\n- Colchicine helps.\n"
MANIFEST = {
    "name": "small",
    "kind": "cdv",
    "dimensions": 4,
    "sentences": ["weighted", "mean"],
    "space": "names",
    "weights": [1.2, 0.8],
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    draw = np.random.default_rng(0)
    words = Subwords(["gout", "rest", "treatment"], draw.normal(size=(3, 5)), [3, 2, 1], draw.normal(size=(20, 5)))
    words.save(folder / "words.npz")
    np.savez(folder / "names.npz", centre=np.zeros(5, np.float32), projection=np.eye(5, 2, dtype=np.float32))
    torch.manual_seed(0)
    model = Cdv(17, 2, 2, Sizes(4, 4)).eval()
    export_whole(
        CdvForExport(model),
        (torch.zeros(3, 17),),
        {"sentences": {0: "sentences"}},
        folder / "model.onnx",
        {"vectors": {0: "sentences"}},
    )
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    return folder, model


def test_onnx_and_torch_give_the_same_vectors(small):
    folder, model = small
    loaded = OnnxDiscourse(folder)
    spans, vectors = loaded.sentences(Document("1", TEXT))
    assert [span.of(TEXT) for span in spans] == ["Gout hurts.", "It swells.", "- Rest", "- Colchicine helps."]
    words = Subwords.load(folder / "words.npz")
    means = words.means([span.of(TEXT) for span in spans], ("weighted", "mean"))
    inputs = np.concatenate([means, np.array(structure(TEXT, sentences(TEXT)), np.float32)], 1)
    np.testing.assert_allclose(vectors, CdvForExport(model)(torch.from_numpy(inputs)).detach().numpy(), atol=1e-5)
    assert loaded.identity.dimensions == 4
    assert loaded.identity.name == "small"


def test_a_score_is_the_weighted_mean_of_two_cosines(small):
    loaded = OnnxDiscourse(small[0])
    _, vectors = loaded.sentences(Document("1", TEXT))
    query = loaded.query("gout", "treatment")
    cosines = [
        vectors[:, half] @ query[half] / np.linalg.norm(query[half]) * math.sqrt(2) for half in (slice(2), slice(2, 4))
    ]
    np.testing.assert_allclose(vectors @ query, (1.2 * cosines[0] + 0.8 * cosines[1]) / 2, atol=1e-5)


def test_all_headings_of_an_aspect_have_the_same_vector(small):
    loaded = OnnxDiscourse(small[0])
    np.testing.assert_array_equal(loaded.query("", "treatment"), loaded.query("", "Therapy"))
    np.testing.assert_array_equal(loaded.query(" gout  ", ""), loaded.query("gout", ""))


def test_a_long_document_is_read_in_windows(small, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(small[0], folder)
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, "window": 2}))
    whole, windowed = OnnxDiscourse(small[0]), OnnxDiscourse(folder)
    long = Document("1", TEXT + "Gout returns.\n")  # five sentences: the last window has only one
    spans, vectors = windowed.sentences(long)
    texts, flags = [long[span] for span in spans], structure(long.text, spans)
    assert len(texts) == 5

    def read(*positions):
        return whole.vectors([texts[i] for i in positions], [flags[i] for i in positions])

    by_hand = np.concatenate([read(0, 1), read(0, 2, 3)[1:], read(0, 4)[1:]])
    np.testing.assert_allclose(vectors, by_hand, atol=1e-6)
    assert not np.allclose(vectors, whole.sentences(long)[1], atol=1e-4)
    assert whole.identity.digest != windowed.identity.digest


def test_the_manifest_tells_a_discourse_model(small, tmp_path):
    assert kind_of(small[0]).role == "discourse"
    with pytest.raises(CaprError, match=r"has no manifest.json. Fix: "):
        kind_of(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(CaprError, match=r"it is not an object.*Fix: "):
        kind_of(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "encoder"}, "which is not a discourse model"),
        ({"space": "outer"}, "which is not a discourse model"),
        ({"sentences": ["sum"]}, "which is not a discourse model"),
        ({"sentences": ["mean"]}, "is inconsistent"),
        ({"dimensions": 6}, "is inconsistent.*queries have 4 dimensions and manifest.json says 6"),
        ({"dimensions": "4"}, "dimensions is '4'"),
        ({"window": "2"}, "window is '2'"),
        ({"window": -1}, "window is -1"),
        ({"window": 2.5}, r"window is 2\.5"),
        ({"threshold": "0.5"}, r"threshold is '0\.5'"),
        ({"threshold": None}, "threshold is None"),
        ({"threshold": math.nan}, "threshold is nan"),
        ({"weights": [math.inf, 1]}, "weights .inf"),
        ({"colour": "blue"}, "is invalid"),
        ({"weights": [1]}, "is invalid"),
        ({"space": "codes"}, "query space"),
        ({"space": "encoder"}, "no queries/"),
    ],
)
def test_an_invalid_manifest_is_an_error(small, tmp_path, changes, message):
    folder = tmp_path / "copy"
    shutil.copytree(small[0], folder)
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, **changes}))
    with pytest.raises(CaprError, match=f"{message}.*Fix"):
        OnnxDiscourse(folder)


CODED = ["entities.npz", "entities.onnx", "aspects.npz", "aspects.onnx"]


@pytest.fixture(scope="module")
def coded(small, tmp_path_factory):
    """The folder of a model with the same network and spaces of codes."""
    folder = tmp_path_factory.mktemp("coded") / "model"
    shutil.copytree(small[0], folder)
    (folder / "names.npz").unlink()
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, "space": "codes"}))
    described = [Description("gout hurts", ("gout",), ("gout",)), Description("rest", ("rest",), ("rest",))]
    for kind in ("entities", "aspects"):
        train_codes(described, Subwords.load(folder / "words.npz"), folder, kind, 2, epochs=1)
    assert OnnxDiscourse(folder).query("gout", "rest").shape == (4,)
    return folder


@pytest.mark.parametrize("damage", ["other", "empty", "half", "end", "inverted", "missing"])
@pytest.mark.parametrize("name", ["manifest.json", "model.onnx", "words.npz", "names.npz", *CODED])
def test_a_missing_or_damaged_file_is_an_error(small, coded, tmp_path, name, damage):
    folder = tmp_path / "copy"
    shutil.copytree(coded if name in CODED else small[0], folder)
    path = folder / name
    content = path.read_bytes()
    middle = 0 if path.suffix == ".onnx" else len(content) // 2  # a changed weight of a network is not detected
    inverted = bytes(byte ^ 0xFF for byte in content[middle : middle + 16])
    path.write_bytes(
        {
            "other": b"no",
            "empty": b"",
            "half": content[: len(content) // 2],
            "end": content[:-8],
            "missing": b"",
            "inverted": content[:middle] + inverted + content[middle + 16 :],
        }[damage]
    )
    if damage == "missing":
        path.unlink()
    with pytest.raises(CaprError, match="Fix"):
        OnnxDiscourse(folder)


@pytest.mark.parametrize("name", ["words.npz", "names.npz"])
def test_a_flipped_bit_is_an_error_or_harmless(small, tmp_path, name):
    folder = tmp_path / "copy"
    shutil.copytree(small[0], folder)
    content = (folder / name).read_bytes()
    intact = OnnxDiscourse(folder)
    for i in range(0, len(content), 3):
        (folder / name).write_bytes(content[:i] + bytes([content[i] ^ 0x10]) + content[i + 1 :])
        try:
            loaded = OnnxDiscourse(folder)
        except CaprError:
            continue
        else:  # the bit may belong to the time stamp of the archive, for example
            np.testing.assert_array_equal(loaded.query("gouty", "rest"), intact.query("gouty", "rest"))


def test_different_numbers_of_names_and_vectors_are_an_error(coded, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(coded, folder)
    names = np.frombuffer(b"gout\nrest\nmore", np.uint8)
    arrays.save(folder / "entities.npz", names=names, vectors=np.zeros((2, 2), np.float32))
    with pytest.raises(CaprError, match=r"3 names.*Fix"):
        OnnxDiscourse(folder)
