"""A discourse model in a folder: what it gives, and folders that are wrong. (tests/train/test_cdv.py trains one.)"""

import json
import math
import shutil

import numpy as np
import pytest
import torch

from capr.documents import CaprError, Document
from capr.index import arrays
from capr.index.discourse import is_discourse, load_discourse
from capr.index.subwords import Subwords
from capr.models.cdv import Cdv, Sizes, Whole
from capr.segment import sentences, structure
from capr.train.cdv_spaces import Described, train_codes
from capr.train.export import export_whole

TEXT = "Gout hurts. It swells.\n- Rest\n- Colchicine helps.\n"
MANIFEST = {
    "name": "small", "kind": "cdv", "dimensions": 4, "sentences": ["weighted", "mean"], "space": "names",
    "weights": [1.2, 0.8],
}  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    draw = np.random.default_rng(0)
    words = Subwords(["gout", "rest", "treatment"], draw.normal(size=(3, 5)), [3, 2, 1], draw.normal(size=(20, 5)))
    words.save(folder / "words.npz")
    np.savez(folder / "names.npz", centre=np.zeros(5, np.float32), projection=np.eye(5, 2, dtype=np.float32))
    torch.manual_seed(0)
    model = Cdv(17, 2, 2, Sizes(4, 4)).eval()
    export_whole(Whole(model), (torch.zeros(3, 17),), {"sentences": {0: "sentences"}}, folder / "model.onnx", "vectors")
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    return folder, model


def test_it_gives_what_torch_gives(small):
    folder, model = small
    loaded = load_discourse(folder)
    spans, vectors = loaded.sentences(Document("1", TEXT))
    assert [span.of(TEXT) for span in spans] == ["Gout hurts.", "It swells.", "- Rest", "- Colchicine helps."]
    words = Subwords.load(folder / "words.npz")
    read = words.means([span.of(TEXT) for span in spans], ("weighted", "mean"))
    given = np.concatenate([read, np.array(structure(TEXT, sentences(TEXT)), np.float32)], 1)
    np.testing.assert_allclose(vectors, Whole(model)(torch.from_numpy(given)).detach().numpy(), atol=1e-5)
    assert loaded.identity.dimensions == 4
    assert loaded.identity.name == "small"


def test_a_score_is_the_weighted_mean_of_two_cosines(small):
    loaded = load_discourse(small[0])
    _, vectors = loaded.sentences(Document("1", TEXT))
    query = loaded.query("gout", "treatment")
    cosines = [
        vectors[:, half] @ query[half] / np.linalg.norm(query[half]) * math.sqrt(2) for half in (slice(2), slice(2, 4))
    ]
    np.testing.assert_allclose(vectors @ query, (1.2 * cosines[0] + 0.8 * cosines[1]) / 2, atol=1e-5)


def test_an_aspect_is_known_by_any_of_its_headings(small):
    loaded = load_discourse(small[0])
    np.testing.assert_array_equal(loaded.query("", "treatment"), loaded.query("", "Therapy"))
    np.testing.assert_array_equal(loaded.query(" gout  ", ""), loaded.query("gout", ""))


def test_long_documents_can_be_read_in_windows(small, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(small[0], folder)
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, "window": 2}))
    whole, cut = load_discourse(small[0]), load_discourse(folder)
    long = Document("1", TEXT + "Gout returns.\n")  # five sentences: the last window has one alone
    spans, vectors = cut.sentences(long)
    texts, flags = [long[span] for span in spans], structure(long.text, spans)
    assert len(texts) == 5

    def read(*places):
        return whole.vectors([texts[place] for place in places], [flags[place] for place in places])

    by_hand = np.concatenate([read(0, 1), read(0, 2, 3)[1:], read(0, 4)[1:]])
    np.testing.assert_allclose(vectors, by_hand, atol=1e-6)
    assert not np.allclose(vectors, whole.sentences(long)[1], atol=1e-4)
    assert whole.identity.digest != cut.identity.digest


def test_which_folders_are_discourse_models(small, tmp_path):
    assert is_discourse(small[0])
    assert not is_discourse(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    assert not is_discourse(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "encoder"}, "which is no discourse model"),
        ({"space": "outer"}, "which is no discourse model"),
        ({"sentences": ["sum"]}, "which is no discourse model"),
        ({"sentences": ["mean"]}, "does not fit together"),
        ({"dimensions": 6}, "does not fit together.*queries have 4 dimensions and manifest.json says 6"),
        ({"dimensions": "4"}, "has dimensions '4'"),
        ({"window": "2"}, "window '2'"),
        ({"window": -1}, "window -1"),
        ({"window": 2.5}, r"window 2\.5"),
        ({"threshold": "0.5"}, r"threshold '0\.5'"),
        ({"threshold": None}, "threshold None"),
        ({"threshold": math.nan}, "threshold nan"),
        ({"weights": [math.inf, 1]}, "weights .inf"),
        ({"colour": "blue"}, "cannot be understood"),
        ({"weights": [1]}, "cannot be understood"),
        ({"space": "codes"}, "query space"),
        ({"space": "encoder"}, "no queries/"),
    ],
)
def test_a_manifest_that_is_wrong(small, tmp_path, changed, said):
    folder = tmp_path / "copy"
    shutil.copytree(small[0], folder)
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, **changed}))
    with pytest.raises(CaprError, match=f"{said}.*Fix"):
        load_discourse(folder)


CODED = ["entities.npz", "entities.onnx", "aspects.npz", "aspects.onnx"]


@pytest.fixture(scope="module")
def coded(small, tmp_path_factory):
    """The same with spaces of codes."""
    folder = tmp_path_factory.mktemp("coded") / "model"
    shutil.copytree(small[0], folder)
    (folder / "names.npz").unlink()
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, "space": "codes"}))
    described = [Described("gout hurts", ("gout",), ("gout",)), Described("rest", ("rest",), ("rest",))]
    for kind in ("entities", "aspects"):
        train_codes(described, Subwords.load(folder / "words.npz"), folder, kind, 2, epochs=1)
    assert load_discourse(folder).query("gout", "rest").shape == (4,)
    return folder


@pytest.mark.parametrize("damage", ["other", "empty", "half", "end", "turned", "missing"])
@pytest.mark.parametrize("name", ["manifest.json", "model.onnx", "words.npz", "names.npz", *CODED])
def test_a_file_that_is_missing_or_damaged(small, coded, tmp_path, name, damage):
    folder = tmp_path / "copy"
    shutil.copytree(coded if name in CODED else small[0], folder)
    path = folder / name
    kept = path.read_bytes()
    middle = 0 if path.suffix == ".onnx" else len(kept) // 2  # nobody can tell that a weight was another
    turned = bytes(byte ^ 0xFF for byte in kept[middle : middle + 16])
    path.write_bytes(
        {
            "other": b"no", "empty": b"", "half": kept[: len(kept) // 2], "end": kept[:-8], "missing": b"",
            "turned": kept[:middle] + turned + kept[middle + 16 :],
        }[damage]
    )  # fmt: skip
    if damage == "missing":
        path.unlink()
    with pytest.raises(CaprError, match="Fix"):
        load_discourse(folder)


@pytest.mark.parametrize("name", ["words.npz", "names.npz"])
def test_no_byte_of_an_array_can_be_turned(small, tmp_path, name):
    folder = tmp_path / "copy"
    shutil.copytree(small[0], folder)
    kept = (folder / name).read_bytes()
    whole = load_discourse(folder)
    for place in range(0, len(kept), 3):
        (folder / name).write_bytes(kept[:place] + bytes([kept[place] ^ 0x10]) + kept[place + 1 :])
        try:
            loaded = load_discourse(folder)
        except CaprError:
            continue
        else:  # a byte that says when the file was packed, for example
            np.testing.assert_array_equal(loaded.query("gouty", "rest"), whole.query("gouty", "rest"))


def test_names_and_vectors_that_do_not_fit_together(coded, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(coded, folder)
    names = np.frombuffer(b"gout\nrest\nmore", np.uint8)
    arrays.save(folder / "entities.npz", names=names, vectors=np.zeros((2, 2), np.float32))
    with pytest.raises(CaprError, match=r"3 names.*Fix"):
        load_discourse(folder)
