"""Marked cases of clinical context: their form, and the F1 of the rules."""

import json
from pathlib import Path

import pytest

from capr.annotate import context
from capr.documents import Span

FLAGS = {"negated", "possible", "hypothetical", "historical", "family"}


def cases(split: str) -> list[dict]:
    lines = (Path(__file__).parent / "context" / f"{split}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_every_case_has_one_target_and_all_flags(split):
    for case in cases(split):
        assert case["text"].count("«") == case["text"].count("»") == 1
        assert case["text"].index("«") + 1 < case["text"].index("»")
        assert set(case) == {"text", "heading", *FLAGS}
        assert all(isinstance(case[flag], bool) for flag in FLAGS)


def test_every_flag_has_enough_cases():
    test = cases("test")
    assert len(test) >= 200
    assert all(sum(case[flag] for case in test) >= 30 for flag in FLAGS)


def test_splits_share_no_text():
    assert not {case["text"] for case in cases("dev")} & {case["text"] for case in cases("test")}


@pytest.mark.parametrize("flag", sorted(FLAGS))
def test_f1_on_held_out_cases(flag):
    correct = predicted = positive = 0
    for case in cases("test"):
        target = Span(case["text"].index("«"), case["text"].index("»") - 1)
        properties = context(case["text"].replace("«", "").replace("»", ""), target, case["heading"])
        correct += case[flag] and flag in properties
        predicted += flag in properties
        positive += case[flag]
    assert 2 * correct / (predicted + positive) >= 0.93
