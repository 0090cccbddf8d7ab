"""Tests of the inputs of rankers: words or word pieces of a query and a passage, with their sentences."""

import json

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from reference import tokenizer

from capr.documents import CaprError, Span
from capr.runtime.inputs import SENTENCES, UNKNOWN, Candidate, PieceInputs, WordInputs, sentence_numbers
from capr.runtime.ranker import OnnxRanker, RankerScores, rank

TEXT = "No fever. Cough since Monday."
CUT = (Span(0, 9), Span(10, 29))
WORDS = WordInputs({"fever": 1.5, "cough": 2.0}, query_words=2, passage_words=4)


def test_arrays_have_the_ids_and_the_idf_of_words():
    pairs = WORDS.pairs("fever or Cough?", [Candidate(TEXT, CUT), Candidate("cough")])
    arrays = WORDS.arrays(pairs)
    assert arrays["query_ids"].tolist() == [[2, UNKNOWN], [2, UNKNOWN]]  # at most two words of the query
    assert arrays["passage_ids"].tolist() == [[UNKNOWN, 2, 3, UNKNOWN], [3, 0, 0, 0]]
    assert arrays["query_idf"].tolist() == [[1.5, 2.0], [1.5, 2.0]]  # an unknown word has the highest IDF
    assert arrays["passage_idf"].tolist() == [[2.0, 1.5, 2.0, 2.0], [2.0, 0.0, 0.0, 0.0]]
    assert arrays[SENTENCES].tolist() == [[1, 1, 2, 2], [0, 0, 0, 0]]
    assert (len(WORDS), WORDS.vocabulary) == (4, ["fever", "cough"])


def test_texts_without_words_are_padding():
    arrays = WORDS.arrays(WORDS.pairs("?", [Candidate(""), Candidate("...")]))
    assert {name: array.tolist() for name, array in arrays.items()} == {name: [[0], [0]] for name in WORDS.names}


def test_a_vocabulary_is_fitted_saved_and_loaded(tmp_path):
    fitted = WordInputs.fitted(["Fever, fever.", "fever and cough", "rash"], least=1)
    assert fitted.vocabulary == ["fever", "and", "cough", "rash"]
    assert fitted.idf["fever"] == pytest.approx(np.log(1 + 1.5 / 2.5))  # two of three passages have it
    fitted.save(tmp_path)
    loaded = WordInputs.load(tmp_path)
    assert loaded.vocabulary == fitted.vocabulary
    assert loaded.idf == pytest.approx(fitted.idf, rel=1e-5)
    assert WordInputs.fitted(["Fever, fever.", "fever and cough", "rash"], least=2).vocabulary == ["fever"]


@pytest.mark.parametrize("line", ["fever", "fever\tmuch", ""])
def test_the_error_names_an_invalid_line_of_the_vocabulary(tmp_path, line):
    (tmp_path / "words.tsv").write_text(f"cough\t2\n{line}\nrash\t1\n")
    with pytest.raises(CaprError, match=r"words.tsv, line 2: .* is not a word and a number. Fix: "):
        WordInputs.load(tmp_path)


def test_pieces_have_the_numbers_of_their_sentences():
    inputs = PieceInputs(tokenizer())
    pairs = inputs.pairs("fever", [Candidate(TEXT, CUT), Candidate("no")])
    arrays = inputs.arrays(pairs)
    assert arrays["input_ids"].shape == arrays[SENTENCES].shape
    numbers, types = arrays[SENTENCES][0], arrays["token_type_ids"][0]
    assert set(numbers[types == 0]) == {0}  # the query is in no sentence of the passage
    assert set(numbers[types == 1]) >= {1, 2}
    assert not arrays[SENTENCES][1].any()
    alone = inputs.pairs("fever", [Candidate(TEXT)])
    assert inputs.arrays(alone)["input_ids"].tolist() == [pairs[0].ids[0].ids]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=6), st.lists(st.integers(0, 80), max_size=20))
def test_an_offset_is_in_the_sentence_that_contains_it(gaps, offsets):
    spans, end = [], 0
    for gap, length in gaps:
        spans.append(Span(end + gap, end + gap + length))
        end = spans[-1].end
    begins = np.array(sorted(offsets), np.int64)
    expected = [next((n for n, s in enumerate(spans, 1) if s.begin <= begin < s.end), 0) for begin in begins]
    assert sentence_numbers(begins, spans).tolist() == expected


def overlap_folder(folder, sentences=True):
    """Make a ranker over words: it counts the first word of the query, in the passage and in each sentence."""
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", size])
        for name, size in (("query_ids", "q"), ("passage_ids", "p"), ("sentence_numbers", "p"))
    ]
    constants = {"first": [0], "one": [1], "two": [2], "axis": [1], "middle": [0, 0, 2], "numbers": [[[1]], [[2]]]}
    nodes = [
        helper.make_node("Gather", ["query_ids", "first"], ["word"], axis=1),
        helper.make_node("Equal", ["passage_ids", "word"], ["same"]),
        helper.make_node("Cast", ["same"], ["hits"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["hits", "axis"], ["scores"], keepdims=1),
    ]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["pairs", 1])]
    if sentences:
        nodes += [
            helper.make_node("Unsqueeze", ["sentence_numbers", "first"], ["all"]),  # (1, pairs, words)
            helper.make_node("Equal", ["all", "numbers"], ["inside"]),  # (2, pairs, words)
            helper.make_node("Cast", ["inside"], ["share"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["share", "hits"], ["each"]),
            helper.make_node("ReduceSum", ["each", "two"], ["sums"], keepdims=0),  # (2, pairs)
            helper.make_node("Transpose", ["sums"], ["sentences"]),
        ]
        outputs.append(helper.make_tensor_value_info("sentences", TensorProto.FLOAT, ["pairs", 2]))
    else:
        inputs = inputs[:2]
    initializers = [onnx.numpy_helper.from_array(np.array(value, np.int64), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "overlap", inputs, outputs, initializers)
    folder.mkdir()
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "model.onnx"
    )
    (folder / "manifest.json").write_text(json.dumps({"name": "overlap", "kind": "ranker", "inputs": "words"}))
    WORDS.save(folder)
    return folder


def test_a_ranker_over_words_scores_passages_and_sentences(tmp_path):
    ranker = OnnxRanker(overlap_folder(tmp_path / "model"))
    candidates = [Candidate("fever, fever. no fever", (Span(0, 13), Span(14, 22))), Candidate("cough", (Span(0, 5),))]
    assert rank(ranker, "fever", candidates) == RankerScores([3.0, 0.0], [[2.0, 1.0], [0.0]])
    assert ranker.scores("fever", [candidate.text for candidate in candidates]) == [3.0, 0.0]
    assert ranker.scores("fever", []) == []


def test_a_ranker_of_passages_gives_no_scores_of_sentences(tmp_path):
    ranker = OnnxRanker(overlap_folder(tmp_path / "model", sentences=False))
    assert rank(ranker, "fever", [Candidate(TEXT, CUT)]) == RankerScores([1.0], None)

    class Plain:
        def scores(self, query, passages):
            return [float(len(text)) for text in passages]

    assert rank(Plain(), "fever", [Candidate("no", (Span(0, 2),))]) == RankerScores([2.0], None)


def test_inputs_that_cannot_be_made_are_an_error(tmp_path):
    folder = overlap_folder(tmp_path / "model")
    (folder / "manifest.json").write_text(json.dumps({"name": "overlap", "kind": "ranker", "inputs": "pieces"}))
    tokenizer().save(str(folder / "tokenizer.json"))
    with pytest.raises(
        CaprError, match=r"it needs passage_ids, query_ids\. Fix: export it with inputs among input_ids"
    ):
        OnnxRanker(folder)
    (folder / "manifest.json").write_text(json.dumps({"name": "overlap", "kind": "ranker", "inputs": "letters"}))
    with pytest.raises(CaprError, match=r"has inputs 'letters'. Fix: use pieces or words"):
        OnnxRanker(folder)
    (folder / "manifest.json").write_text(json.dumps({"name": "overlap", "kind": "ranker", "inputs": "words"}))
    (folder / "words.tsv").unlink()
    with pytest.raises(CaprError, match=r"is not a ranker: it has no words.tsv. Fix: "):
        OnnxRanker(folder)


def test_sentences_after_the_end_of_the_input_have_the_lowest_score(tmp_path):
    ranker = OnnxRanker(overlap_folder(tmp_path / "model"))  # it reads four words, and scores two sentences
    text = "Cough. Fever, fever. Fever again. No rash."
    cut = (Span(0, 6), Span(7, 20), Span(21, 33), Span(34, 42))
    assert rank(ranker, "fever", [Candidate(text, cut)]).sentences == [[0.0, 2.0, 0.0, 0.0]]
