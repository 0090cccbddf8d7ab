"""Subword vectors: against gensim where it is, against plain arithmetic, and files that are wrong."""

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest

from capr.documents import CaprError
from capr.index.spaces import Names, unit
from capr.index.subwords import SKETCH, Subwords, bucket, grams, read_glove, signs


def zipped(content):
    with zipfile.ZipFile(file := io.BytesIO(), "w") as packed:
        packed.writestr("glove.txt", content)
    return file.getvalue()


@pytest.fixture
def words():
    draw = np.random.default_rng(0)
    return Subwords(
        ["the", "gout"], draw.normal(size=(2, 3)).astype(np.float32), [990, 10],
        draw.normal(size=(50, 3)).astype(np.float32),
    )  # fmt: skip


def test_buckets_are_those_of_fasttext():
    assert bucket("", 2**32) == 2166136261
    assert bucket("a", 2**32) == 0xE40C292C  # published for FNV-1a
    assert bucket("foobar", 2**32) == 0xBF9CF968


def test_a_known_word_has_its_own_vector_and_another_that_of_its_parts(words):
    assert np.array_equal(words.vector("gout"), words.vectors[1])
    rows = [bucket(gram, 50) for gram in grams("gouty", 3, 6)]
    np.testing.assert_allclose(words.vector("gouty"), words.buckets[rows].mean(0), rtol=1e-6)


def test_means(words):
    the, gout = words.vectors
    (found,) = words.means(["The gout"], ("mean", "unit", "weighted"))
    rare, common = 1e-4 / (1e-4 + 0.01), 1e-4 / (1e-4 + 0.99)
    one, other = the / np.linalg.norm(the), gout / np.linalg.norm(gout)
    np.testing.assert_allclose(found[:3], (the + gout) / 2, rtol=1e-5)
    np.testing.assert_allclose(found[3:6], (one + other) / 2, rtol=1e-5)
    np.testing.assert_allclose(found[6:], (common * one + rare * other) / (common + rare), rtol=1e-5)
    assert not words.means(["...", ""]).any()
    np.testing.assert_array_equal(words.means(["gout the the"], longest=1)[0], gout)


def test_a_sketch_tells_which_words_were_said(words):
    the, gout, other = (signs(word) for word in ("the", "gout", "gouty"))
    rare, common = 1e-4 / (1e-4 + 0.01), 1e-4 / (1e-4 + 0.99)
    found = words.means(["The gout", "", "gouty"], ("weighted", "sketch"))
    assert found.shape == (3, 3 + SKETCH) == (3, words.size(("weighted", "sketch")))
    np.testing.assert_allclose(found[0, 3:], (common * the + rare * gout) / (common + rare), rtol=1e-5)
    np.testing.assert_allclose(found[2, 3:], other, rtol=1e-6)
    assert not found[1].any()
    # Of length 1, the same in every run, and far from those of other words, however alike these are.
    assert np.linalg.norm(gout) == pytest.approx(1)
    assert (
        "".join("+" if sign > 0 else "-" for sign in gout[:16]) == "+-+--+-+--+++---"
    )  # the first bits of BLAKE2b, 128 bits long
    assert abs(float(gout @ other)) < 0.35


def test_what_is_saved_is_read_back(words, tmp_path):
    words.save(tmp_path / "words.npz")
    read = Subwords.load(tmp_path / "words.npz")
    assert list(read.words) == ["the", "gout"]
    np.testing.assert_allclose(read.vector("gouty"), words.vector("gouty"), atol=2e-3)
    assert read.weight("gout") == words.weight("gout")
    assert [path.name for path in tmp_path.iterdir()] == ["words.npz"]


@pytest.mark.parametrize("content", [b"", b"no vectors"])
def test_a_file_that_holds_no_vectors(tmp_path, content):
    (tmp_path / "words.npz").write_bytes(content)
    with pytest.raises(CaprError, match=r"holds no word vectors.*Fix"):
        Subwords.load(tmp_path / "words.npz")


def test_glove(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 0.5 1\nof 1 2\n. . 3 4\n")
    words = read_glove(path)
    assert list(words.words) == ["the", "of", ". ."]
    assert words.weight("of") > words.weight("the")
    (found,) = words.means(["of unseen"])
    assert found.tolist() == [0.5, 1]  # what is unknown counts as zeros
    path.write_text("2 2\nthe 0.5 1\n")
    assert list(read_glove(path).words) == ["the"]
    path.write_text("2 2 \nthe 0.5 1 \n. . 1 2\t\r\n")
    assert list(read_glove(path).words) == ["the", ". ."]


@pytest.mark.parametrize(
    ("text", "size", "said"),
    [
        ("the 1 2\nof 1\n", 0, r"line 2.*1 values instead of 2"),
        ("the 1 2\nof 1 2 3\n", 0, r"line 2.*more values than 2"),
        ("the 1 2\n\n", 0, r"line 2.*0 values instead of 2"),
        ("the\n", 0, r"line 1.*0 values instead of 1"),
        ("the 1 2\n 1 2\n", 0, r"line 2.*no 2 numbers after a word"),
        ("the 1 2\nof 1 1e99\n", 0, r"line 2.*no finite number"),
        ("the 1 2\nof 1 x\n", 0, r"line 2.*no 2 numbers"),
        ("the 1 2\n", 3, r"line 1"),
        ("the 1 nan\n", 0, r"line 1.*a value that is no finite number"),
        ("", 0, "empty"),
    ],
)
def test_a_vector_file_with_a_wrong_dimension(tmp_path, text, size, said):
    (tmp_path / "glove.txt").write_text(text)
    with pytest.raises(CaprError, match=f"{said}.*Fix"):
        read_glove(tmp_path / "glove.txt", size)


def test_gensim_and_we_agree(tmp_path):
    pytest.importorskip("gensim")
    from gensim.models import FastText

    lines = [["gout", "pain", "naïve"], ["gouty", "pain", "toe"]] * 20
    model = FastText(lines, vector_size=8, min_count=1, bucket=100, min_n=3, max_n=6, seed=1, workers=1, epochs=1)
    words = list(model.wv.index_to_key)
    ours = Subwords(words, model.wv.vectors, [1] * len(words), model.wv.vectors_ngrams)
    for word in ("gout", "gouts", "painful", "naïveté"):
        np.testing.assert_allclose(ours.vector(word), model.wv.get_vector(word), atol=1e-6)


def test_a_space_of_names(words):
    names = ["gout", "the gout", "gouty toe", "toe", "foot", "the foot"]
    space = Names.fitted(words, names, 2)
    found = space.vectors([*names, "", "?"])
    means = words.means(names, ("weighted",))
    np.testing.assert_allclose(found[:6], unit((means - means.mean(0)) @ space.projection), atol=1e-5)
    assert not found[6:].any()
    with pytest.raises(CaprError, match="span no space of 4"):
        Names.fitted(words, names, 4)
    with pytest.raises(CaprError, match="Fix: train the model again"):
        Names(words, np.zeros(4, np.float32), np.zeros((4, 2), np.float32))


def test_names_that_are_sketched(words):
    axes = np.eye(3, dtype=np.float32)
    space = Names(words, np.zeros(3, np.float32), axes, sketched=0.75)
    assert space.dimensions == 3  # one of the meaning, two of the sketch
    (found,) = space.vectors(["gout"])
    meant, said = np.sign(words.vector("gout")[0]), unit(signs("gout")[:2])
    np.testing.assert_allclose(found, [0.5 * meant, *(0.75**0.5 * said)], rtol=1e-5)
    assert not space.vectors(["..."]).any()
    # As far as it is linear, a sentence gets there in the same way.
    kinds = ("mean", "weighted", "sketch")
    way = words.means(["gout"], kinds) @ space.linear(kinds)
    np.testing.assert_allclose(way[0, 1:], 0.75**0.5 * signs("gout")[:2], rtol=1e-5)
    assert np.sign(way[0, 0]) == meant


@pytest.mark.parametrize(
    ("packer", "name"), [(gzip.compress, "gzip"), (bz2.compress, "bzip2"), (lzma.compress, "xz"), (zipped, "zip")]
)
def test_a_glove_file_that_is_packed(tmp_path, packer, name):
    (tmp_path / "glove.txt").write_bytes(packer(b"the 0.5 1\n"))
    with pytest.raises(CaprError, match=rf"glove\.txt is packed \({name}\), and no text\. Fix: unpack it"):
        read_glove(tmp_path / "glove.txt")
