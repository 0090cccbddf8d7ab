"""A reader with a ranker's second opinion."""

import json
import math

import pytest

from capr.documents import CaprError, Span
from capr.search import models
from capr.search.ranked_reader import FILE, SUREST, Joint, RankedReader
from capr.search.reader import Reading

JOINT = Joint("capr ranker", 0.5, 0.25, -1.0, 0.4)


class FakeReader:
    name, threshold = "fake", 0.9

    def read(self, question, paragraphs, best=1):
        """As sure as the paragraph's number says, and half as sure of a second answer."""
        found = []
        for text in paragraphs:
            sure = float(text)
            found.append([Reading(Span(0, 1), sure), Reading(Span(1, 2), sure / 2)][:best] if sure else [])
        return found


class FakeRanker:
    def __init__(self):
        self.asked = []

    def scores(self, query, passages):
        self.asked.append((query, list(passages)))
        return [10 * (1 - float(text)) for text in passages]


def test_confidence_and_score_are_joined_as_the_formula_says():
    ranker = FakeRanker()
    reader = RankedReader(FakeReader(), ranker, JOINT)
    found, other = reader.read("Why?", ["0.8", "0.6"], best=2)
    for reading, confidence in zip(found, (0.8, 0.4), strict=True):
        value = 0.5 * math.log(confidence / (1 - confidence)) + 0.25 * (2 - 4) - 1
        assert reading.confidence == pytest.approx(1 / (1 + math.exp(-value)))
    assert [reading.span for reading in found] == [Span(0, 1), Span(1, 2)]
    assert other[0].confidence == pytest.approx(1 / (1 + math.exp(-(0.5 * math.log(0.6 / 0.4) - 1))))
    assert (reader.name, reader.threshold) == ("fake", 0.4)


def test_the_ranker_reads_the_surest_paragraphs_and_the_others_count_as_its_lowest():
    ranker = FakeRanker()
    texts = [f"0.{number}" for number in range(1, 10)] + ["0"]
    found = RankedReader(FakeReader(), ranker, JOINT).read("Why?", texts)
    assert ranker.asked == [("Why?", [f"0.{number}" for number in range(9, 9 - SUREST, -1)])]
    lowest = 10 * (1 - 0.9) - 10 * (1 - 0.4)
    assert found[0][0].confidence == pytest.approx(JOINT.joined(0.1, lowest))
    assert found[8][0].confidence == pytest.approx(JOINT.joined(0.9, lowest))
    assert found[-1] == []


def test_where_there_is_nothing_to_read_nobody_is_asked():
    ranker = FakeRanker()
    assert RankedReader(FakeReader(), ranker, JOINT).read("Why?", ["0", "0"]) == [[], []]
    assert RankedReader(FakeReader(), ranker, JOINT).read("Why?", []) == []
    assert ranker.asked == []


def test_what_is_written_is_read(tmp_path):
    assert Joint.read(tmp_path) is None
    JOINT.write(tmp_path)
    assert Joint.read(tmp_path) == JOINT


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"ranker": "r"}', '{"ranker": 1, "confidence": 1, "score": 1, "bias": 0, "threshold": 0.5}',
     json.dumps({"ranker": "r", "confidence": 1, "score": "x", "bias": 0, "threshold": 0.5}),
     '{"ranker": "r", "confidence": 1, "score": NaN, "bias": 0, "threshold": 0.5}',
     json.dumps({"ranker": "r", "confidence": 1, "score": 1, "bias": 0, "threshold": 0.5, "more": 1})],
)  # fmt: skip
def test_a_file_that_does_not_say_how_is_told_with_its_fix(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(CaprError, match=r"ranked\.json does not say how .* Fix: write an object with ranker, conf"):
        Joint.read(tmp_path)


def test_a_reader_is_joined_only_with_the_ranker_it_was_fitted_to(tmp_path, monkeypatch):
    ranker, folder = tmp_path / "ranker", tmp_path / "reader"
    ranker.mkdir()
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (ranker / name).write_bytes(b"")
    (ranker / "manifest.json").write_text(json.dumps({"name": "capr ranker", "kind": "ranker"}))
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    monkeypatch.setattr(models, "load_reader", lambda folder: FakeReader())
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
