"""Tests of the tagger: decoding, windows, TASTY's word features, and the built-in model."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

import capr
from capr.documents import CaprError
from capr.runtime.tagger import Tagger, decode, entities, shipped, transitions
from capr.runtime.tagger_windows import TaggerPieces
from capr.runtime.trigrams import FLAGS, Trigrams, flags, trigrams, vocabulary

FOLDER = Path(capr.__file__).parent / "weights" / "tagger"
LABELS = ("O", "B-X", "I-X", "B-Y", "I-Y")


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


def follows(label: str, before: str) -> bool:
    return not label.startswith("I-") or before[2:] == label[2:]


def allowed(path: list[str]) -> bool:
    return all(follows(label, before) for before, label in itertools.pairwise(["O", *path]))


SCORES = st.integers(0, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(-9, 9), min_size=5, max_size=5), min_size=n, max_size=n)
)


@given(SCORES)
def test_the_best_labels_equal_those_of_an_exhaustive_search(rows):
    scores = np.array(rows, np.float32).reshape(-1, 5)
    best = decode(scores, transitions(LABELS))
    paths = [p for p in itertools.product(range(5), repeat=len(rows)) if allowed([LABELS[i] for i in p])]
    assert tuple(best) in paths
    totals = [sum(row[i] for row, i in zip(rows, path, strict=True)) for path in paths]
    assert sum(row[i] for row, i in zip(rows, best, strict=True)) == max(totals)


@given(st.integers(0, 2**32 - 1), st.integers(1, 200))
@settings(max_examples=30)
def test_no_i_follows_o(seed, words):
    scores = np.random.default_rng(seed).normal(size=(words, 5)).astype(np.float32)
    assert allowed([LABELS[i] for i in decode(scores, transitions(LABELS))])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([], []),
        (["O", "O"], []),
        (["B-X"], [(0, 1, "X")]),
        (["B-X", "I-X", "I-X", "O", "B-X"], [(0, 3, "X"), (4, 5, "X")]),
        (["B-X", "B-X", "B-Y", "I-Y"], [(0, 1, "X"), (1, 2, "X"), (2, 4, "Y")]),
        (["O", "I-X", "I-X"], [(1, 3, "X")]),
        (["B-X", "I-Y"], [(0, 1, "X"), (1, 2, "Y")]),
    ],
)
def test_entities(labels, expected):
    assert entities(labels) == expected


SENTENCES = st.lists(
    st.lists(
        st.sampled_from(
            ["fever", "hyperparathyroidism", "\u200b", "\x07", "\ufeff", "心脏病", "é", "😀", "x" * 300, "."]
        )
        | st.text(st.characters(exclude_categories=("Zs", "Cc", "Cs")), min_size=1, max_size=8),
        max_size=12,
    ),
    max_size=6,
)


@given(cut=SENTENCES, length=st.integers(4, 20))
@example(cut=[["心" * 50, "fever"], [], ["\u200b"], ["fever"] * 40], length=10)
@example(cut=[["\u200b", "\u200b"], ["hyperparathyroidism"] * 3], length=4)
@example(cut=[[]], length=8)
@example(cut=[], length=8)
@settings(max_examples=60)
def test_windows_hold_every_word_once_and_are_not_too_long(tokenizer, cut, length):
    windows = list(TaggerPieces(tokenizer, "[unused1]", length).windows(cut))
    assert sum(len(window.firsts) for window in windows) == sum(map(len, cut))
    for pieces, firsts in windows:
        assert firsts
        assert 3 <= len(pieces) <= length
        assert [first for first in firsts if first >= 0] == sorted({*firsts} - {-1})
        assert all(first == -1 or 2 <= first < len(pieces) - 1 for first in firsts)


def test_the_first_piece_labels_its_word(tokenizer):
    words = ["severe", "hyperparathyroidism", "\u200b", "resolved"]
    ((pieces, firsts),) = TaggerPieces(tokenizer, "[unused1]", 64).windows([words])
    tokens = [tokenizer.id_to_token(pieces[first]) if first >= 0 else None for first in firsts]
    assert tokens[0] == "severe"
    assert words[1].startswith(tokens[1])
    assert tokens[2:] == [None, "resolved"]
    assert [tokenizer.id_to_token(i) for i in (pieces[0], pieces[1], pieces[-1])] == ["[CLS]", "[unused1]", "[SEP]"]


def test_short_sentences_share_a_window_and_a_long_one_has_several(tokenizer):
    pieces = TaggerPieces(tokenizer, "[unused1]", 23)
    assert [len(w.firsts) for w in pieces.windows([["fever"] * 8, ["fever"] * 8, ["fever"] * 8])] == [16, 8]
    assert [len(w.firsts) for w in pieces.windows([["fever"] * 50])] == [20, 20, 10]


def test_windows_are_padded(tokenizer):
    pieces = TaggerPieces(tokenizer, "[unused1]", 64)
    arrays = pieces.arrays([*pieces.windows([["fever"]]), *pieces.windows([["fever"] * 3])])
    assert arrays["attention_mask"].tolist() == [[1, 1, 1, 1, 0, 0], [1] * 6]
    assert arrays["input_ids"].shape == (2, 6)


def test_diseases_and_drugs_are_tagged():
    text = "😀 Metformin was stopped because of lactic acidosis.\n\nNo fever."
    mentions = [(tagged.span.of(text), tagged.type) for tagged in shipped().tag(text)]
    assert mentions[:2] == [("Metformin", "Chemical"), ("lactic acidosis", "Disease")]
    assert all(0 < tagged.confidence <= 1 for tagged in shipped().tag(text))


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\x00\x01", "...", "x" * 100_000, "心" * 1000, "\n\n\n"])
def test_texts_without_entities_have_no_mentions(text):
    assert shipped().tag(text) == []


@given(st.text(max_size=60))
@settings(max_examples=40)
@example("lactic\u200b acidosis")
@example("a\u200bb lactic acidosis\u200b \x07 metformin")
def test_tagged_spans_index_any_text(text):
    end = 0
    for span, _, _ in shipped().tag(text):
        assert end <= span.begin < span.end <= len(text)
        end = span.end


def test_a_character_that_the_tokenizer_drops_changes_nothing():
    plain, dirty = "She had lactic acidosis today.", "She had lactic\u200b acidosis today."
    assert [t.span.of(plain) for t in shipped().tag(plain)] == ["lactic acidosis"]
    (tagged,) = shipped().tag(dirty)
    assert tagged.span.of(dirty) == "lactic\u200b acidosis"
    assert tagged.confidence > 0.5


def test_every_word_of_any_sentence_has_a_label():
    cut = [["心" * 500, "lactic", "acidosis"], ["fever"] * 400, [], ["\u200b", "x"], ["a"]]
    sentences = shipped().label(cut)
    assert [len(labels) for labels in sentences] == [3, 400, 0, 2, 1]
    assert {label for labels in sentences for label, _ in labels} <= {*shipped().labels}
    assert all(allowed([label for label, _ in labels]) for labels in sentences)


def test_the_labels_of_a_sentence_do_not_depend_on_other_sentences():
    sentence = "Metformin was stopped because of lactic acidosis .".split()
    alone = [label for label, _ in shipped().label([sentence])[0]]
    assert alone == ["B-Chemical", "O", "O", "O", "O", "B-Disease", "I-Disease", "O"]
    assert [label for label, _ in shipped().label([["Rest", "."] * 90, sentence])[1]] == alone


def test_no_sentences_have_no_labels():
    assert shipped().label([]) == []
    assert shipped().label([[], []]) == [[], []]


@pytest.mark.parametrize("name", ["manifest.json", "model.onnx", "tokenizer.json"])
def test_a_folder_without_one_of_its_files_is_not_a_tagger(tmp_path, name):
    for file in FOLDER.iterdir():
        if file.name != name:
            (tmp_path / file.name).symlink_to(file)
    with pytest.raises(CaprError, match=rf"is not a tagger: it has no {name}\. Fix: name a folder that"):
        Tagger(tmp_path)


def test_a_folder_with_a_broken_manifest_is_not_a_tagger(tmp_path):
    for file in FOLDER.iterdir():
        (tmp_path / file.name).symlink_to(file)
    for content in ("{", "{}", "[]"):
        (tmp_path / "manifest.json").unlink()
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(CaprError, match="Fix: "):
            Tagger(tmp_path)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(CaprError, match=r"^there is no folder .*nowhere\. Fix: "):
        Tagger(tmp_path / "nowhere")


def test_an_unknown_guideline_is_an_error():
    guidelines = json.loads((FOLDER / "manifest.json").read_text())["guidelines"]
    with pytest.raises(CaprError, match=rf"guideline 'other'\. Fix: use {' or '.join(guidelines)}\."):
        Tagger(guideline="other")


def test_trigrams():
    assert trigrams("Flu") == ["#fl", "flu", "lu#"]
    assert trigrams("a") == ["#a#"]
    assert vocabulary(["flu", "flu", "fly"], at_least=2) == ["#fl", "flu", "lu#"]
    assert vocabulary([]) == []


@given(st.text(min_size=1, max_size=10))
def test_every_word_has_all_flags(word):
    assert len(flags(word)) == FLAGS
    assert all(isinstance(flag, bool) for flag in flags(word))


def test_the_flags_of_words():
    columns = [[i for i, flag in enumerate(flags(word)) if flag] for word in ("Flu", "MI", "flu", "12", "B12", ".")]
    assert columns == [[0, 4], [0, 2], [1, 3], [5, 6, 7, 8], [0, 2, 6, 8], [9, 10]]


def test_words_as_vectors():
    words = Trigrams(["#fl", "flu"])
    assert words.size == 2 + FLAGS + 2
    windows = list(words.windows([["flu", "x"], [], ["Flu"]]))
    assert [window.firsts for window in windows] == [[0, 1], [0]]
    arrays = words.arrays(windows)
    assert arrays["words"].shape == (2, 2, words.size)
    assert arrays["lengths"].tolist() == [2, 1]
    assert np.flatnonzero(arrays["words"][0, 0]).tolist() == [0, 1, 3, 5, words.size - 2]
    assert np.flatnonzero(arrays["words"][1, 0]).tolist() == [0, 1, 2, 6, words.size - 2, words.size - 1]
    assert not arrays["words"][1, 1].any()
