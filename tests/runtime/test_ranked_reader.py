"""Tests of readers that join their confidence with the scores of a ranker."""

import json
import math

import pytest

from capr.documents import CaprError, Span
from capr.runtime.ranked_reader import FILE, SUREST, Joint, RankedReader
from capr.runtime.reader import ReadAnswer
from capr.search import models

JOINT = Joint("capr ranker", 0.5, 0.25, -1.0, 0.4)


class FakeReader:
    name, threshold = "fake", 0.9

    def read(self, question, paragraphs, best=1):
        """Return two answers: the confidence of the first is the text of the paragraph, the second has half of it."""
        answers = []
        for text in paragraphs:
            first = float(text)
            answers.append([ReadAnswer(Span(0, 1), first), ReadAnswer(Span(1, 2), first / 2)][:best] if first else [])
        return answers


class FakeRanker:
    def __init__(self):
        self.calls = []

    def scores(self, query, passages):
        self.calls.append((query, list(passages)))
        return [10 * (1 - float(text)) for text in passages]


def test_the_formula_joins_confidence_and_score():
    ranker = FakeRanker()
    reader = RankedReader(FakeReader(), ranker, JOINT)
    first, second = reader.read("Why?", ["0.8", "0.6"], best=2)
    for answer, confidence in zip(first, (0.8, 0.4), strict=True):
        value = 0.5 * math.log(confidence / (1 - confidence)) + 0.25 * (2 - 4) - 1
        assert answer.confidence == pytest.approx(1 / (1 + math.exp(-value)))
    assert [answer.span for answer in first] == [Span(0, 1), Span(1, 2)]
    assert second[0].confidence == pytest.approx(1 / (1 + math.exp(-(0.5 * math.log(0.6 / 0.4) - 1))))
    assert (reader.name, reader.threshold) == ("fake", 0.4)


def test_paragraphs_that_the_ranker_does_not_read_have_its_lowest_score():
    ranker = FakeRanker()
    texts = [f"0.{number}" for number in range(1, 10)] + ["0"]
    answers = RankedReader(FakeReader(), ranker, JOINT).read("Why?", texts)
    assert ranker.calls == [("Why?", [f"0.{number}" for number in range(9, 9 - SUREST, -1)])]
    lowest = 10 * (1 - 0.9) - 10 * (1 - 0.4)
    assert answers[0][0].confidence == pytest.approx(JOINT.joined(0.1, lowest))
    assert answers[8][0].confidence == pytest.approx(JOINT.joined(0.9, lowest))
    assert answers[-1] == []


def test_without_answers_the_ranker_reads_nothing():
    ranker = FakeRanker()
    assert RankedReader(FakeReader(), ranker, JOINT).read("Why?", ["0", "0"]) == [[], []]
    assert RankedReader(FakeReader(), ranker, JOINT).read("Why?", []) == []
    assert ranker.calls == []


def test_written_weights_are_read(tmp_path):
    assert Joint.read(tmp_path) is None
    JOINT.write(tmp_path)
    assert Joint.read(tmp_path) == JOINT


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"ranker": "r"}',
        '{"ranker": 1, "confidence": 1, "score": 1, "bias": 0, "threshold": 0.5}',
        json.dumps({"ranker": "r", "confidence": 1, "score": "x", "bias": 0, "threshold": 0.5}),
        '{"ranker": "r", "confidence": 1, "score": NaN, "bias": 0, "threshold": 0.5}',
        json.dumps({"ranker": "r", "confidence": 1, "score": 1, "bias": 0, "threshold": 0.5, "more": 1}),
    ],
)
def test_an_invalid_file_of_weights_is_an_error_with_a_fix(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(CaprError, match=r"ranked\.json does not say how .* Fix: write an object with ranker, conf"):
        Joint.read(tmp_path)


def test_only_the_ranker_of_the_fit_joins_the_reader(tmp_path, monkeypatch):
    ranker, folder = tmp_path / "ranker", tmp_path / "reader"
    ranker.mkdir()
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (ranker / name).write_bytes(b"")
    (ranker / "manifest.json").write_text(json.dumps({"name": "capr ranker", "kind": "ranker"}))
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    monkeypatch.setattr(models, "load_model", lambda folder, role: FakeReader())
    monkeypatch.setattr(models, "_shipped_ranker", lambda folder: FakeRanker())
    models._loaded_reader.cache_clear()
    assert isinstance(models.answer_reader(folder), FakeReader)
    JOINT.write(folder)
    models._loaded_reader.cache_clear()
    assert isinstance(models.answer_reader(folder), RankedReader)
    Joint("another", 1, 1, 0, 0.5).write(folder)
    models._loaded_reader.cache_clear()
    assert isinstance(models.answer_reader(folder), FakeReader)
    models._loaded_reader.cache_clear()
