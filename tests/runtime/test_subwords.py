"""Tests of subword vectors: compared with gensim, if it is installed, and plain arithmetic; broken files."""

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest

from capr.documents import CaprError
from capr.runtime.query_spaces import WordSpace, unit
from capr.runtime.subwords import SKETCH, Subwords, bucket, grams, read_glove, signs


def zipped(content):
    with zipfile.ZipFile(file := io.BytesIO(), "w") as packed:
        packed.writestr("glove.txt", content)
    return file.getvalue()


@pytest.fixture
def words():
    rng = np.random.default_rng(0)
    vectors, buckets = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=(50, 3)).astype(np.float32)
    return Subwords(["the", "gout"], vectors, [990, 10], buckets)


def test_buckets_equal_those_of_fasttext():
    assert bucket("", 2**32) == 2166136261
    assert bucket("a", 2**32) == 0xE40C292C  # published for FNV-1a
    assert bucket("foobar", 2**32) == 0xBF9CF968


def test_a_known_word_has_its_own_vector_and_an_unknown_word_the_mean_of_its_ngrams(words):
    assert np.array_equal(words.vector("gout"), words.vectors[1])
    rows = [bucket(gram, 50) for gram in grams("gouty", 3, 6)]
    np.testing.assert_allclose(words.vector("gouty"), words.buckets[rows].mean(0), rtol=1e-6)


def test_means(words):
    the, gout = words.vectors
    (means,) = words.means(["The gout"], ("mean", "unit", "weighted"))
    rare, common = 1e-4 / (1e-4 + 0.01), 1e-4 / (1e-4 + 0.99)
    unit_the, unit_gout = the / np.linalg.norm(the), gout / np.linalg.norm(gout)
    np.testing.assert_allclose(means[:3], (the + gout) / 2, rtol=1e-5)
    np.testing.assert_allclose(means[3:6], (unit_the + unit_gout) / 2, rtol=1e-5)
    np.testing.assert_allclose(means[6:], (common * unit_the + rare * unit_gout) / (common + rare), rtol=1e-5)
    assert not words.means(["...", ""]).any()
    np.testing.assert_array_equal(words.means(["gout the the"], longest=1)[0], gout)


def test_a_sketch_identifies_the_words_of_a_text(words):
    the, gout, gouty = (signs(word) for word in ("the", "gout", "gouty"))
    rare, common = 1e-4 / (1e-4 + 0.01), 1e-4 / (1e-4 + 0.99)
    means = words.means(["The gout", "", "gouty"], ("weighted", "sketch"))
    assert means.shape == (3, 3 + SKETCH) == (3, words.size(("weighted", "sketch")))
    np.testing.assert_allclose(means[0, 3:], (common * the + rare * gout) / (common + rare), rtol=1e-5)
    np.testing.assert_allclose(means[2, 3:], gouty, rtol=1e-6)
    assert not means[1].any()
    # The vector of a word has length 1, is the same in every run, and is far from that of a similar word.
    assert np.linalg.norm(gout) == pytest.approx(1)
    bits = "".join("+" if sign > 0 else "-" for sign in gout[:16])
    assert bits == "+-+--+-+--+++---"  # the first bits of BLAKE2b with 128 bits
    assert abs(float(gout @ gouty)) < 0.35


def test_saved_vectors_are_loaded(words, tmp_path):
    words.save(tmp_path / "words.npz")
    loaded = Subwords.load(tmp_path / "words.npz")
    assert list(loaded.words) == ["the", "gout"]
    np.testing.assert_allclose(loaded.vector("gouty"), words.vector("gouty"), atol=2e-3)
    assert loaded.weight("gout") == words.weight("gout")
    assert [path.name for path in tmp_path.iterdir()] == ["words.npz"]


@pytest.mark.parametrize("content", [b"", b"no vectors"])
def test_a_file_without_vectors_is_an_error(tmp_path, content):
    (tmp_path / "words.npz").write_bytes(content)
    with pytest.raises(CaprError, match=r"holds no word vectors.*Fix"):
        Subwords.load(tmp_path / "words.npz")


def test_a_glove_file_is_read(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 0.5 1\nof 1 2\n. . 3 4\n")
    words = read_glove(path)
    assert list(words.words) == ["the", "of", ". ."]
    assert words.weight("of") > words.weight("the")
    (mean,) = words.means(["of unseen"])
    assert mean.tolist() == [0.5, 1]  # an unknown word counts as zeros
    path.write_text("2 2\nthe 0.5 1\n")
    assert list(read_glove(path).words) == ["the"]
    path.write_text("2 2 \nthe 0.5 1 \n. . 1 2\t\r\n")
    assert list(read_glove(path).words) == ["the", ". ."]


@pytest.mark.parametrize(
    ("text", "size", "message"),
    [
        ("the 1 2\nof 1\n", 0, r"line 2.*1 values instead of 2"),
        ("the 1 2\nof 1 2 3\n", 0, r"line 2.*more values than 2"),
        ("the 1 2\n\n", 0, r"line 2.*0 values instead of 2"),
        ("the\n", 0, r"line 1.*0 values instead of 1"),
        ("the 1 2\n 1 2\n", 0, r"line 2.*no 2 numbers after a word"),
        ("the 1 2\nof 1 1e99\n", 0, r"line 2.*a value that is not a finite number"),
        ("the 1 2\nof 1 x\n", 0, r"line 2.*no 2 numbers"),
        ("the 1 2\n", 3, r"line 1"),
        ("the 1 nan\n", 0, r"line 1.*a value that is not a finite number"),
        ("", 0, "empty"),
    ],
)
def test_an_invalid_glove_file_is_an_error(tmp_path, text, size, message):
    (tmp_path / "glove.txt").write_text(text)
    with pytest.raises(CaprError, match=f"{message}.*Fix"):
        read_glove(tmp_path / "glove.txt", size)


def test_vectors_equal_those_of_gensim(tmp_path):
    pytest.importorskip("gensim")
    from gensim.models import FastText

    lines = [["gout", "pain", "naïve"], ["gouty", "pain", "toe"]] * 20
    model = FastText(lines, vector_size=8, min_count=1, bucket=100, min_n=3, max_n=6, seed=1, workers=1, epochs=1)
    words = list(model.wv.index_to_key)
    subwords = Subwords(words, model.wv.vectors, [1] * len(words), model.wv.vectors_ngrams)
    for word in ("gout", "gouts", "painful", "naïveté"):
        np.testing.assert_allclose(subwords.vector(word), model.wv.get_vector(word), atol=1e-6)


def test_a_space_is_fitted_to_names(words):
    names = ["gout", "the gout", "gouty toe", "toe", "foot", "the foot"]
    space = WordSpace.fitted(words, names, 2)
    vectors = space.vectors([*names, "", "?"])
    means = words.means(names, ("weighted",))
    np.testing.assert_allclose(vectors[:6], unit((means - means.mean(0)) @ space.projection), atol=1e-5)
    assert not vectors[6:].any()
    with pytest.raises(CaprError, match="span no space of 4"):
        WordSpace.fitted(words, names, 4)
    with pytest.raises(CaprError, match="Fix: train the model again"):
        WordSpace(words, np.zeros(4, np.float32), np.zeros((4, 2), np.float32))


def test_a_space_can_include_sketches(words):
    axes = np.eye(3, dtype=np.float32)
    space = WordSpace(words, np.zeros(3, np.float32), axes, sketched=0.75)
    assert space.dimensions == 3  # one of the projected mean, two of the sketch
    (vector,) = space.vectors(["gout"])
    projected, sketch = np.sign(words.vector("gout")[0]), unit(signs("gout")[:2])
    np.testing.assert_allclose(vector, [0.5 * projected, *(0.75**0.5 * sketch)], rtol=1e-5)
    assert not space.vectors(["..."]).any()
    # The linear map takes the means of a sentence to the same vector, up to scale.
    kinds = ("mean", "weighted", "sketch")
    mapped = words.means(["gout"], kinds) @ space.linear(kinds)
    np.testing.assert_allclose(mapped[0, 1:], 0.75**0.5 * signs("gout")[:2], rtol=1e-5)
    assert np.sign(mapped[0, 0]) == projected


@pytest.mark.parametrize(
    ("packer", "name"), [(gzip.compress, "gzip"), (bz2.compress, "bzip2"), (lzma.compress, "xz"), (zipped, "zip")]
)
def test_a_packed_glove_file_is_an_error(tmp_path, packer, name):
    (tmp_path / "glove.txt").write_bytes(packer(b"the 0.5 1\n"))
    with pytest.raises(CaprError, match=rf"glove\.txt is compressed \({name}\), not plain text\. Fix: unpack it"):
        read_glove(tmp_path / "glove.txt")
